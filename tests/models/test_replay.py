"""A recording played as a model: it fits, or says in one line where it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lopen.models.messages import Json, Model, Request, Response, ToolSpec
from lopen.models.recording import (
    RecordedCall,
    Recorder,
    Recording,
    RecordingModel,
    load,
    masked,
)
from lopen.models.replay import ReplayMismatch, ReplayModel, first_difference
from tests.endpoint import Message, ScriptedEndpoint, text, tools, verdict
from tests.fakes import FakeClock
from tests.models.conftest import Reach, ignore, request
from tests.models.test_anthropic_model import raw_tool_call
from tests.models.test_recording import exchange

SUBMIT = ToolSpec("submit_verdict", "", {"type": "object"})
ORACLE = request("Judge.", tools=[SUBMIT], tool_choice="submit_verdict", purpose="oracle")
STEP = "iterate_through_tasks"


def grown(history: list[Json], reply: Response, result: str) -> list[Json]:
    outcome = [{"type": "tool_result", "tool_use_id": use.id, "content": result} for use in reply.tool_uses]
    return [*history, {"role": "assistant", "content": reply.content}, {"role": "user", "content": outcome}]


def drive(
    model: Model, result: str = '{"ok": true, "passed": true, "exit_code": 0, "seconds": 1.5}'
) -> list[Response]:
    """A small run: a turn, the oracle's request, the turn after."""
    history = list(request().messages)
    first = model.send(request(), ignore)
    judged = model.send(ORACLE, ignore)
    return [first, judged, model.send(request(messages=grown(history, first, result)), ignore)]


def replaying(recording: Recording, step: str = STEP) -> ReplayModel:
    return ReplayModel(recording, step=lambda: step)


@pytest.fixture
def recorded(reach: Reach, tmp_path: Path) -> Recording:
    """What `drive` gave against an endpoint."""
    script = [tools(("write_file", {"path": "a.py", "content": "x"}), say="Writing."), text("Done.")]
    recorder = Recorder(tmp_path / "r", "m", redact=lambda t: t, clock=FakeClock())
    with ScriptedEndpoint(script, oracle=verdict(False)) as endpoint:
        drive(RecordingModel(reach(endpoint.url), recorder, lambda: STEP, lambda _: None))
    return load(tmp_path / "r")


class TestPlaying:
    def test_a_run_that_fits_gets_the_recorded_answers(self, recorded: Recording) -> None:
        model = replaying(recorded)
        streamed: list[str] = []
        first, judged, last = drive(model)
        assert (first.text, last.text, model.left) == ("Writing.", "Done.", 0)
        assert first.tool_uses[0].input == {"path": "a.py", "content": "x"}
        assert judged.tool_uses[0].name == "submit_verdict"
        assert first.usage == recorded.exchanges[0].response.usage
        replaying(recorded).send(request(), lambda text, tool="": streamed.append(tool or text))
        assert streamed == ["Writing.", "write_file"]

    @pytest.mark.parametrize(
        ("result", "said"),
        [
            ('{"ok": false, "passed": true, "exit_code": 0}', "ok was True in the recording, is False now"),
            ('{"ok": true, "passed": false, "exit_code": 0}', "passed was True"),
            ('{"ok": true, "passed": true, "exit_code": 2}', "exit_code was 0 in the recording, is 2 now"),
        ],
    )
    def test_another_outcome_of_a_tool_is_named(self, recorded: Recording, result: str, said: str) -> None:
        with pytest.raises(ReplayMismatch) as caught:
            drive(replaying(recorded), result)
        assert caught.value.message.startswith("exchange 3: tool call 1 write_file: ")
        assert said in caught.value.message

    def test_another_step_order_or_number_of_requests_is_named(self, recorded: Recording) -> None:
        with pytest.raises(ReplayMismatch, match="the step was 'iterate"):
            drive(replaying(recorded, "repeat"))
        model = replaying(recorded)
        with pytest.raises(ReplayMismatch, match="exchange 1: the kind of request was 'turn'"):
            model.send(ORACLE, ignore)
        assert model.left == 3
        drive(model)
        with pytest.raises(ReplayMismatch, match="the recording has ended"):
            model.send(request(), ignore)

    def test_a_call_whose_input_broke_off_breaks_off_again(self, reach: Reach, tmp_path: Path) -> None:
        recorder = Recorder(tmp_path / "r", "m", redact=lambda t: t, clock=FakeClock())
        with ScriptedEndpoint([raw_tool_call('{"content": "half', "max_tokens")]) as endpoint:
            RecordingModel(reach(endpoint.url), recorder, lambda: STEP, lambda _: None).send(
                request(), ignore
            )
        response = replaying(load(tmp_path / "r")).send(request(), ignore)
        assert response.tool_uses[0].input is None
        assert response.stop_reason == "max_tokens"


class TestResearchSideBySide:
    def test_each_conversation_is_followed_on_its_own(self, reach: Reach, tmp_path: Path) -> None:
        """Recorded a1 b1 b2 a2, played b1 a1 a2 b2."""
        recorder = Recorder(tmp_path / "r", "m", redact=lambda t: t, clock=FakeClock())

        def answer(body: Any) -> Message:
            topic = body["messages"][0]["content"][0]["text"]
            return (
                tools(("write_file", {"about": topic}))
                if len(body["messages"]) == 1
                else text(f"about {topic}")
            )

        with ScriptedEndpoint(answer) as endpoint:
            model = RecordingModel(reach(endpoint.url), recorder, lambda: STEP, lambda _: None)
            a, b = (model.send(research(topic), ignore) for topic in ("apples", "birds"))
            model.send(research("birds", b), ignore)
            model.send(research("apples", a), ignore)
        replay = replaying(load(tmp_path / "r"))
        b, a = (replay.send(research(topic), ignore) for topic in ("birds", "apples"))
        assert replay.send(research("apples", a), ignore).text == "about apples"
        assert replay.send(research("birds", b), ignore).text == "about birds"
        assert replay.left == 0


def research(topic: str, reply: Response | None = None) -> Request:
    opening = request(topic, purpose="research")
    if reply is None:
        return opening
    return replace(opening, messages=grown(list(opening.messages), reply, '{"ok": true}'))


class TestComparing:
    @pytest.mark.parametrize(
        ("then", "now"),
        [
            ("at 2026-01-01T10:00:00Z", "at 2027-02-03 11:22:33.456+02:00"),
            ("commit 3f2a9c1", "commit 77b0e4d8c2"),
            ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174999"),
            ("see /tmp/pytest-1/a.txt.", "see /var/folders/x1/y/T/b."),
            ("took 1.25s", "took 30 seconds"),
            ("12 ms", "7ms"),
        ],
    )
    def test_what_changes_from_run_to_run_is_masked(self, then: str, now: str) -> None:
        assert masked(then) == masked(now)

    @pytest.mark.parametrize(
        ("then", "now"),
        [
            ("a.py", "b.py"),
            ("defaced", "effaced"),
            ("1234567", "1234568"),
            ("/home/a", "/home/b"),
            ("x = 3", "x = 4"),
        ],
    )
    def test_what_means_something_is_not(self, then: str, now: str) -> None:
        assert masked(then) != masked(now)

    @pytest.mark.parametrize(
        ("then", "now", "said"),
        [
            ({"path": "a.py"}, {"path": "b.py"}, "input.path was 'a.py' in the recording, is 'b.py' now"),
            ({"path": "a"}, {}, "input.path was 'a' in the recording, is '(nothing)' now"),
            ({}, {"path": "a"}, "input.path was '(nothing)' in the recording, is 'a' now"),
            ({"n": [1, {"x": 2}]}, {"n": [1, {"x": 3}]}, "input.n was [1, {'x': 2}] in the recording, is [1, {'x': 3}] now"),
            ({"odd key\x1b": 1}, {"odd key\x1b": 2}, r"input.odd key\x1b was 1"),
            ({"text": "\x1b[2J" + "x" * 500}, {"text": ""}, r"input.text was '\x1b[2Jxxx"),
        ],
    )  # fmt: skip
    def test_the_first_difference_of_an_input_is_named_inert_and_short(
        self, then: Json, now: Json, said: str
    ) -> None:
        found = difference([RecordedCall("edit_file", then, True)], [RecordedCall("edit_file", now, True)])
        assert found is not None
        assert found.startswith(f"tool call 1 edit_file: {said}")
        assert len(found) < 250
        assert found.isprintable()

    def test_other_tools_on_offer_are_named(self) -> None:
        assert "the tool 'b' was not offered" in str(offers(["a"], ["a", "b"]))
        assert "the tool 'a' was offered in the recording, is not now" in str(offers(["a"], []))
        assert "another order" in str(offers(["a", "b"], ["b", "a"]))
        assert offers(["a", "b"], ["a", "b"]) is None


def difference(then: list[RecordedCall], now: list[RecordedCall]) -> str | None:
    recorded = exchange(1, calls=tuple(then))
    return first_difference(recorded, purpose="turn", step="s", offered=["a"], calls=now)


def offers(then: list[str], now: list[str]) -> str | None:
    recorded = exchange(1, calls=(), offered=tuple(then))
    return first_difference(recorded, purpose="turn", step="s", offered=now, calls=[])
