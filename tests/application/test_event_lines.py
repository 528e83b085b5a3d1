"""Plain and JSON lines: the line of every event, without control characters."""

from __future__ import annotations

import io
import json
import unicodedata
from dataclasses import MISSING, fields
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lopen.application.event_lines import STEP_TITLES, STEPS, line, rows
from lopen.cli.rendering.views import mode_for, safe_json, subscriber
from lopen.core import events as e
from lopen.workflow.steps import Step, number

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

GOLDEN: list[tuple[e.Event, str | None]] = [
    (
        e.SessionPaused("gate", "the specification waits", "lopen approve calc"),
        "paused: the specification waits",
    ),
    (
        e.SessionComplete("calc", 1, 2, 2, 0.5, 12_345, "lopen/calc", ("UTC",)),
        "calc is complete: 1 component, 2 tasks, 2 commits, 12,345 tokens, $0.50; branch lopen/calc",
    ),
    (
        e.SessionComplete("calc", 1, 2, 2, None, None, ""),
        "calc is complete: 1 component, 2 tasks, 2 commits, tokens and cost unknown",
    ),
    (
        e.TurnEnded(2, "m", "tool_use", 100, 50, 2_000, 300, 0.0123, 4.25, "text"),
        "turn 2: 2,400 tokens in (2,000 cached), 50 out, $0.01, 4.2 s, tool_use",
    ),
    (
        e.ToolEnded("c", "write_file", "../x", "refused", 0.0, "it leaves the project"),
        "write_file ../x: refused, 0.0 s: it leaves the project",
    ),
    (
        e.VerificationRan("verify_lint", "ruff", False, 1, 0.5),
        "verify_lint `ruff`: failed (exit 1), 0.5 s",
    ),
    (
        e.VerdictGiven("task", "T1", True, "high", "All there.", 0, cached=True),
        "verdict on task T1: passed (as before): All there.",
    ),
    (
        e.DriftFound(("Overview",), (), ("Notes", "Old"), "nothing is redone"),
        "the specification differs from the plan: changed: Overview; removed: Notes, Old; nothing is redone",
    ),
    (
        e.TaskChanged("T1", "Terms", "Parser", "failed", "tests fail"),
        "task T1 Terms in Parser: failed, tests fail",
    ),
    (
        e.Committed("0123456789abcdef", "feat: x", "lopen/calc"),
        "commit 0123456789ab on lopen/calc: feat: x",
    ),
    (
        e.QuestionAsked("Round?", (), "up", "up", assumed=True),
        "question: Round?; assumed: up",
    ),
]


def test_events_are_told_in_a_line_each() -> None:
    for event, expected in GOLDEN:
        assert line(event) == expected


def test_every_step_has_a_title() -> None:
    assert set(STEP_TITLES) == set(Step)
    assert number(Step.REPEAT) == STEPS


def _sample(cls: type[e.Event], text: str) -> e.Event:
    values = {
        f.name: {
            "str": text,
            "int": 1,
            "float": 1.0,
            "float | None": None,
            "int | None": None,
            "bool": True,
        }.get(str(f.type), (text,) if "tuple" in str(f.type) else text)
        for f in fields(cls)
        if f.default is MISSING or f.name != "seq"
    }
    return cls(**values)


@given(st.sampled_from(sorted(e.EVENTS)), st.text(st.characters(exclude_categories=["Cs"])))
def test_json_lines_are_one_line_each_and_lose_nothing(name: str, text: str) -> None:
    recorded = e.Recorded(NOW, "s", _sample(e.EVENTS[name], text))
    written = safe_json(recorded)
    assert len(written.splitlines()) == 1
    assert not any(unicodedata.category(c) == "Cc" for c in written)
    found = json.loads(written)
    assert (found["ts"], found["event"], found["session"]) == ("2026-01-02T03:04:05.000Z", name, "s")
    assert set(found) == {"ts", "event", "session"} | {f.name for f in fields(e.EVENTS[name])}
    assert found == json.loads(recorded.to_json())


@given(st.sampled_from(sorted(e.EVENTS)), st.text())
def test_no_text_of_an_event_breaks_out_of_its_line(name: str, text: str) -> None:
    words = line(_sample(e.EVENTS[name], text))
    assert words is None or len(words.splitlines()) == 1


def _shown(mode: str, *events: e.Event, verbose: bool = False) -> list[str]:
    out = io.StringIO()
    assert mode in ("plain", "quiet", "json")
    with subscriber(mode, out, verbose=verbose, redact=lambda s: s.replace("sk-1", "[secret]")) as view:  # type: ignore[arg-type]  # narrowed above
        for event in events:
            view(e.Recorded(NOW, "s", event))
    return out.getvalue().splitlines()


def test_the_model_s_text_follows_its_turn() -> None:
    turn = e.TurnEnded(1, "m", "end_turn", 1, 1, 0, 0, 0.0, 1.0, "one\ntwo sk-1\x1b[2J")
    shown = _shown("plain", turn, verbose=True)
    assert [text[9:] for text in shown[1:]] == ["| one", "| two [secret]␛[2J"]


def test_the_log_tells_work_and_its_results_and_details_only_where_asked() -> None:
    details = (
        e.StepEntered("repeat", 7, "building", "x"),
        e.IterationEnded(2, "recorded", turns=6),
        e.TurnEnded(1, "m", "end_turn", 1, 1, 0, 0, 0.0, 1.0, "text"),
        e.ToolEnded("c", "edit_file", "a.py", "ok", 0.0),
        e.VerdictGiven("task", "T1", True, "high", "As before.", 0, cached=True),
        e.ModelRetry("busy", 2, 0.5, 8),
    )
    failed = e.VerdictGiven("task", "T1", False, "high", "No.", 1, reasons=("the judge, error: a.py:1: off",))
    begun = e.TaskChanged("T1", "Terms", "Parser", "in_progress")
    shown = [text.split(" ", 1)[1].strip() for text in _shown("plain", begun, *details, failed)]
    assert shown == [
        "task T1 Terms in Parser: in progress",
        "verdict on task T1: rejected: No.",
        "| the judge, error: a.py:1: off",
    ]
    assert len(_shown("plain", *details, verbose=True)) == len(details) + 1


def test_quiet_keeps_what_a_person_has_to_see() -> None:
    shown = _shown(
        "quiet",
        e.StepEntered("repeat", 7, "building", "x"),
        e.Notice("info", "hello"),
        e.Notice("error", "bad"),
        e.SessionFailed("gone"),
    )
    assert [text.split(" ", 1)[1] for text in shown] == ["error: bad", "failed: gone"]


def test_secrets_stay_out_of_json_lines() -> None:
    (shown,) = _shown("json", e.Notice("info", "key sk-1"))
    assert json.loads(shown)["message"] == "key [secret]"


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_the_mode_follows_from_stream_and_options() -> None:
    terminal = _Terminal(io.BytesIO(), "utf-8")
    for stream, term, json_wanted, quiet, mode in (
        (terminal, "xterm", False, False, "live"),
        (terminal, "dumb", False, False, "plain"),
        (io.StringIO(), "xterm", False, False, "plain"),
        (terminal, "xterm", False, True, "quiet"),
        (terminal, "xterm", True, True, "json"),
    ):
        assert mode_for(stream, json=json_wanted, quiet=quiet, environ={"TERM": term}) == mode


def test_the_end_names_each_decision_on_a_line_of_its_own() -> None:
    told = tuple(f"question {n}? yes" for n in range(6))
    event = e.SessionComplete("calc", 1, 1, 1, 0.5, 1, "", ("UTC",), answers=told)
    _, *below = rows(e.Recorded(NOW, "calc-1", event, 1))
    assert below[0] == "         | decided by a person: question 0? yes"
    assert (len(below), below[-1]) == (6, "         | and 2 more: lopen report calc")
