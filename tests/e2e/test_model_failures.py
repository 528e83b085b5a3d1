"""What the endpoint does wrong, and what lopen makes of it (docs/reference/model.md)."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import (
    cut_stream,
    error_event,
    reset,
    status,
    tools,
    verdict,
)
from tests.project import build, component, plan, specification
from tests.ran import Ran

TOO_LONG = "prompt is too long: 250000 tokens > 200000 maximum"


def paid(ran: Ran) -> int:
    """Tokens of all turns that came whole, as budgets count them."""
    turns = ran.named("turn_ended")
    whole = ("input_tokens", "output_tokens", "cache_write_tokens")
    return sum(sum(t[n] for n in whole) + round(t["cache_read_tokens"] * 0.1) for t in turns)


def prompt_size(body: dict[str, Any]) -> int:
    return len(json.dumps(body["system"])) + len(json.dumps(body["messages"]))


def test_what_passes_is_tried_again_and_broken_answers_are_charged(make_project: MakeProject) -> None:
    evil = tools(("write_file", {"path": "evil.py", "content": "never"}))
    script = [
        status(408),
        status(409),
        status(429),
        status(500, "internal"),
        status(529, "Overloaded"),
        error_event(),
        reset(),
        cut_stream(plan()),
        plan(),
        cut_stream(evil),
        build("calc-t1"),
    ]
    project = make_project(script)
    ran = project.build_module()
    retries = ran.named("model_retry")
    assert [r["attempt"] for r in retries] == [1, 2, 3, 4, 5, 6, 7, 8, 1]
    said = " ".join(r["reason"] for r in retries)
    for word in ("408", "409", "429", "500", "529", "overloaded_error", "connection"):
        assert word in said
    assert len(ran.named("plan_recorded")) == 4  # the cut one recorded nothing
    assert not (project.root / "evil.py").exists()
    assert len(ran.named("turn_ended")) == 3  # plan, build, oracle
    charged = ran.named("session_complete")[0]["tokens"]
    assert charged > paid(ran)  # three answers began and broke off; the others brought nothing
    assert (
        len([n for n in ran.named("notice") if "cut off counts as ≤" in json.dumps(n, ensure_ascii=False)])
        == 3
    )


def test_when_every_model_stays_away_the_session_waits_and_resume_goes_on(make_project: MakeProject) -> None:
    away = [status(529, "Overloaded")] * 4  # the model and the fallback, each with one retry
    project = make_project([plan(), *away, build("calc-t1")], LOPEN_MODEL__MAX_RETRIES="1")
    ran = project.build_module(code=3)
    session = ran.events[-1]["session"]
    assert ran.last_line == f"next: lopen resume {session}"
    assert project.status()["status"] == "paused"
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    assert project.subjects()[-1] == "feat(calc): complete Write it in core"
    used = resumed.named("session_complete")[0]["tokens"]
    assert used == paid(ran) + paid(resumed)


SET_A_KEY = "to set a key: export ANTHROPIC_API_KEY=sk-ant-...; to try it: lopen doctor --online"


def test_a_refused_request_fails_with_what_to_do_and_is_saved(make_project: MakeProject) -> None:
    refusals = {401: f"\n  {SET_A_KEY}\n", 404: "claude-sonnet-5-5"}
    script = [*(status(refused, "no such thing") for refused in refusals), plan(), build("calc-t1")]
    project = make_project(script)
    project.specify()

    for number, (refused, hint) in enumerate(refusals.items()):
        ran = project.resume() if number else project.drive()
        assert ran.code == 1, (refused, ran.err)
        assert str(refused) in ran.err
        assert hint in ran.err
        assert not ran.named("model_retry")
        assert "Traceback" not in ran.err
        assert ran.named("session_failed")
    finished = project.resume()
    assert finished.code == 0, finished.err


def test_a_prompt_that_is_too_long_starts_again_smaller(make_project: MakeProject) -> None:
    notes = "## Notes\n" + "The sum of two numbers is found by adding them.\n" * 200
    reading = tools(("read_file", {"path": "README.md"}))
    script = [
        plan(component("core", "AC-1", spec_sections=["Notes"])),
        reading,
        status(400, TOO_LONG),
        status(413, "Request exceeds the maximum size"),
        build("calc-t1"),
    ]
    project = make_project(script)
    ran = project.build_module(text=specification(extra=notes))
    _, first, second, third, fourth = project.requests
    assert len(second["messages"]) == 3
    assert len(third["messages"]) == 1  # nothing of the conversation before it
    assert prompt_size(first) > 1.5 * prompt_size(third) > 1.5 * prompt_size(fourth)
    assert "read_spec section='Notes'" in json.dumps(fourth["system"])  # what was cut can be had
    outcomes = [e["outcome"] for e in ran.named("iteration_ended")]
    assert outcomes == ["recorded", "overflow", "overflow", "recorded"]


def test_an_oracle_that_is_away_pauses_with_the_work_kept(make_project: MakeProject) -> None:
    oracle = [status(529)] * 4
    project = make_project(
        [plan(), build("calc-t1")],
        oracle=[*oracle, verdict()],
        LOPEN_MODEL__MAX_RETRIES="1",
    )
    project.build_module(code=3)
    assert (project.clone() / "calc.py").exists()
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    assert len(project.requests) == 2, "the turn goes on with the call that waited for the oracle"
