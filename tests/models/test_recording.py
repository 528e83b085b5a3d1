"""Recordings: what is written is read again, a crash loses one exchange, and a damaged file is only an error."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lopen.core.events import Event, Notice
from lopen.models.messages import Json, ModelError, Response, ToolUse, Usage
from lopen.models.recording import (
    RecordedCall,
    RecordedExchange,
    RecordedResponse,
    Recorder,
    RecordingModel,
    UnreadableRecording,
    load,
    member,
)
from tests.fakes import FakeClock, ScriptedModel
from tests.models.conftest import ignore, request

SECRET = "sk-ant-api03-very-secret"


def redact(text: str) -> str:
    return text.replace(SECRET, "[secret]")


def recorder(path: Path) -> Recorder:
    return Recorder(path, "invoices", redact=redact, clock=FakeClock())


def response(*content: Json, unparsed: str = "") -> Response:
    uses = tuple(
        ToolUse(b["id"], b["name"], None if b["id"] == unparsed else b["input"])
        for b in content
        if b["type"] == "tool_use"
    )
    return Response("msg", "claude-real", content, uses, "tool_use", Usage(1, 2, 3, 4))


def call(number: int, **given_: Any) -> Json:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "write_file", "input": given_}


def answered(history: list[Json], reply: Response, *results: str) -> list[Json]:
    """The conversation after the tools ran."""
    outcome = [
        {"type": "tool_result", "tool_use_id": use.id, "content": text}
        for use, text in zip(reply.tool_uses, results, strict=True)
    ]
    return [*history, {"role": "assistant", "content": reply.content}, {"role": "user", "content": outcome}]


class TestRecording:
    def test_two_turns_and_an_oracle_request_are_read_as_they_were(self, tmp_path: Path) -> None:
        path = tmp_path / "recordings" / "s.jsonl.gz"
        writing = recorder(path)
        first = response({"type": "text", "text": "On it."}, call(1, path="a"), call(2, path="b"))
        writing.record(request(), first, step="iterate_through_tasks")
        history = answered(
            list(request().messages), first, '{"ok": true, "bytes": 1}\ntext', '{"ok": false, "exit_code": 2}'
        )
        second = response({"type": "text", "text": "Done."})
        writing.record(request(purpose="oracle", tools=()), second, step="iterate_through_tasks")
        writing.record(request(messages=history), second, step="iterate_through_tasks")
        read = load(path)
        assert (read.module, read.created) == ("invoices", "2026-01-01T00:00:00+00:00")
        turn, oracle, later = read.exchanges
        assert (turn.n, oracle.n, later.n) == (1, 2, 3)
        assert (turn.purpose, oracle.purpose) == ("turn", "oracle")
        assert (turn.after, later.after) == (0, 1)
        assert (turn.offered, oracle.offered) == (("write_file",), ())
        assert list(turn.response.content) == list(first.content)
        assert turn.response.usage == Usage(1, 2, 3, 4)
        assert turn.calls == ()
        assert later.calls == (
            RecordedCall("write_file", {"path": "a"}, True),
            RecordedCall("write_file", {"path": "b"}, False, None, 2),
        )

    def test_secrets_are_taken_out_everywhere_and_ids_stay(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl.gz"
        reply = response(
            {"type": "thinking", "thinking": f"use {SECRET}", "signature": "s"},
            {"type": "text", "text": f"key {SECRET}"},
            call(1, content=f"KEY={SECRET}", deep=[{"x": SECRET}]),
        )
        writing = recorder(path)
        writing.record(request(), reply, step="s")
        writing.record(
            request(messages=answered(list(request().messages), reply, '{"ok": true}')), reply, step="s"
        )
        assert SECRET.encode() not in gzip.decompress(path.read_bytes())
        exchange = load(path).exchanges[1]
        assert exchange.calls[0].input == {"content": "KEY=[secret]", "deep": [{"x": "[secret]"}]}
        assert exchange.response.content[2]["id"] == "toolu_1"
        assert exchange.after == 1
        assert path.stat().st_mode & 0o777 == 0o600


class TestCrash:
    def test_wherever_the_file_is_cut_the_whole_exchanges_before_are_there(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl.gz"
        writing = recorder(path)
        for n in range(2):
            writing.record(request(), response(call(n)), step="s")
        before = path.stat().st_size
        writing.record(request(), response(call(2)), step="s")
        data = path.read_bytes()
        for cut in range(before, len(data)):
            path.write_bytes(data[:cut])
            assert [e.n for e in load(path).exchanges] == [1, 2]

    def test_after_a_crash_the_recording_goes_on(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl.gz"
        writing = recorder(path)
        for n in range(2):
            writing.record(request(), response(call(n)), step="s")
        path.write_bytes(path.read_bytes()[:-5])
        recorder(path).record(request(), response(call(9)), step="s")
        assert [(e.n, e.response.content[0]["id"]) for e in load(path).exchanges] == [
            (1, "toolu_0"),
            (2, "toolu_9"),
        ]


GOOD_HEADER = {"lopen_recording": 1, "module": "m", "created": "2026"}
GOOD_LINE: dict[str, Any] = {
    "n": 1,
    "purpose": "turn",
    "step": "s",
    "model": "m",
    "offered": ["a"],
    "calls": [{"tool": "a", "input": {}, "ok": True, "passed": None, "exit_code": 0}],
    "after": 0,
    "opening": "",
    "response": {
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1, "cache_write_tokens": 0, "cache_read_tokens": 0},
        "unparsed": [],
    },
}


def spoiled(**changes: Any) -> dict[str, Any]:
    return GOOD_LINE | changes


class TestDamagedFiles:
    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"", "r is empty: no exchange was recorded"),
            (b"plain text", "r is damaged"),
            (member({"lopen_recording": 2, "module": "m"}), "r:1: not a recording that this version of lopen reads"),
            (member({"module": "m"}), "r:1"),
            (member(GOOD_HEADER) + b"garbage" * 10, "r is damaged"),
            (member(GOOD_HEADER) + gzip.compress(b"{\n"), "r:2: Invalid JSON"),
            (member(GOOD_HEADER) + member(spoiled(n="1")), "r:2: n: Input should be a valid integer"),
            (member(GOOD_HEADER) + member(spoiled(calls=[{"tool": "a"}])), "calls.0.input: Field required"),
        ],
        ids=lambda value: value if isinstance(value, str) else "file",
    )  # fmt: skip
    def test_what_is_no_recording_is_refused_with_its_line(
        self, tmp_path: Path, data: bytes, said: str
    ) -> None:
        path = tmp_path / "r"
        path.write_bytes(data)
        with pytest.raises(UnreadableRecording) as caught:
            load(path)
        assert said in caught.value.message


def exchange(n: int, **changes: Any) -> RecordedExchange:
    plain = RecordedExchange(
        n=n,
        purpose="turn",
        step="s",
        model="m",
        offered=("a",),
        calls=(RecordedCall("a", {"x": [1]}, True),),
        response=RecordedResponse(({"type": "text", "text": "é"},), "end_turn", Usage(1, 1)),
    )
    return replace(plain, **changes)


class TestRecordingModel:
    def model(self, path: Path, *answers: Response | ModelError) -> tuple[RecordingModel, list[Event]]:
        events: list[Event] = []
        inner = ScriptedModel(list(answers))
        return RecordingModel(inner, recorder(path), lambda: "the step", events.append), events

    def test_a_recording_that_cannot_be_written_does_not_stop_the_run(self, tmp_path: Path) -> None:
        path = tmp_path / "r"
        model, events = self.model(path, *[response(call(1))] * 3)
        path.unlink()
        path.mkdir()
        for _ in range(3):
            model.send(request(), ignore)
        assert [isinstance(e, Notice) and e.level for e in events] == ["warning"]
