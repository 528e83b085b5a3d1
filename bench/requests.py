"""What a whole small build asks of the endpoint: requests, input tokens, bytes, and the share read from cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench.rows import Row
from bench.session import approved
from lopen.loop import project_context
from lopen.loop.run import drive
from tests.endpoint import tools
from tests.project import build, code, component, plan, specification, task, verified

PEER_INPUT_TOKENS = 7_100  # mini-swe-agent on a module of this size, as measured by the field
SECTIONS, SECTION_CHARS = 60, 4_000
TASKS = 6
BATCHED_TASKS = 8


def rows() -> Iterator[Row]:
    """A module of one task; a task of a long specification; a build of six tasks."""
    with approved([plan(), build("calc-t1")], specification()) as (run, endpoint):
        assert drive(run.loop).finished
        asked = len(endpoint.requests) + len(endpoint.oracle_requests)
        state = next(s for s in run.loop.guards.meter.states() if s.budget_type == "session")
        spent = [e.event for e in run.loop.record.store.events(run.loop.record.journal.session.id)]
        taken = sum(
            e.input_tokens + e.cache_read_tokens + e.cache_write_tokens  # type: ignore[attr-defined]  # turn_ended
            for e in spent
            if e.name == "turn_ended"
        )
        yield Row("requests for a module of one component with one task", asked, 3, "")
        detail = f"{taken:,} tokens in, {state.tokens_used:,} billed"
        yield Row("input tokens of the same against a peer's", taken / PEER_INPUT_TOKENS, 2, detail=detail)
    yield _context()
    yield _cached()
    yield _batched()
    yield _read()


def _long_specification() -> str:
    line = "The part answers every request within its limit and says so in its log.\n"
    body = line * (SECTION_CHARS // len(line))
    sections = "".join(f"\n## Part {n}\n{body}" for n in range(SECTIONS))
    return specification(extra=sections)


def _context() -> Row:
    text = _long_specification()
    one = component("core", "AC-1", spec_sections=["Part 7"])
    script = [
        tools(
            ("record_dependencies", {"dependencies": []}),
            ("record_components", {"components": [one]}),
            ("select_component", {"name": "core", "reason": "it is the only one"}),
            ("record_tasks", {"component": "core", "tasks": [task("Write it", spec_sections=["Part 7"])]}),
        ),
        build("calc-t1"),
    ]
    with approved(script, text) as (run, endpoint):
        assert drive(run.loop).finished
        sent = len(json.dumps(endpoint.requests[1]))
        share = sent / (sent + len(text))
        return Row(
            "first request for a task, of that with the whole specification",
            share * 100,
            25,
            "%",
            detail=f"{sent:,} bytes",
        )


def _cached() -> Row:
    names = tuple(f"Write part {n}" for n in range(1, TASKS + 1))
    script: list[Any] = [plan(tasks=names)]
    for n in range(1, TASKS + 1):
        # Five turns a task, as a model that looks before it writes and tests before it claims takes them.
        script += [
            tools(("read_file", {"path": "README.md"}), ("read_spec", {"section": "Behaviour"})),
            tools(("search_files", {"pattern": f"part{n}"}), ("list_files", {"glob": "*.py"})),
            tools(*code(f"part{n}")),
            tools(("verify_tests", {})),
            tools(*verified(f"calc-t{n}")),
        ]
    with approved(script, specification()) as (run, _):
        assert drive(run.loop).finished
        turns = [
            r.event
            for r in run.loop.record.store.events(run.loop.record.journal.session.id)
            if r.event.name == "turn_ended"
        ]
        read = sum(t.cache_read_tokens for t in turns)  # type: ignore[attr-defined]  # turn_ended
        whole = read + sum(t.input_tokens + t.cache_write_tokens for t in turns)  # type: ignore[attr-defined]
        return Row(
            f"input read from cache over a build of {TASKS} tasks",
            100 * read / whole,
            85,
            "%",
            at_least=True,
            detail=f"{read:,} of {whole:,}",
        )


def _batched() -> Row:
    names = tuple(f"Write part {n}" for n in range(1, BATCHED_TASKS + 1))
    script = [plan(tasks=names), *(build(f"calc-t{n}", f"part{n}") for n in range(1, BATCHED_TASKS + 1))]
    with approved(script, specification()) as (run, endpoint):
        assert drive(run.loop).finished
        asked = len(endpoint.requests) + len(endpoint.oracle_requests)
    most = 1 + BATCHED_TASKS + BATCHED_TASKS + 1  # plan, builds, their verdicts, the module's
    return Row(f"requests for a module of {BATCHED_TASKS} tasks, batched", asked, most, "")


def _read() -> Row:
    """Builds where a task begins with its component's files against builds where the model reads them."""
    with_files = _input_of_later_tasks()
    looked_at, project_context.LOOKED_AT = project_context.LOOKED_AT, 0
    try:
        without = _input_of_later_tasks()
    finally:
        project_context.LOOKED_AT = looked_at
    return Row(
        "input tokens of a later task, with its files in the prompt",
        with_files / without,
        0.6,
        detail=f"{with_files:,} against {without:,} tokens a task",
    )


def _input_of_later_tasks() -> int:
    """Input tokens a task, from the second on, of a model that reads the source, then the tests that it lacks."""
    names = tuple(f"Write part {n}" for n in range(1, TASKS + 1))
    parts = iter([f"part{n}" for n in range(1, TASKS + 1)])
    written: list[str] = []

    def script(body: Any) -> Any:
        if not written and len(body["messages"]) == 1 and "record_tasks" in json.dumps(body["tools"]):
            return plan(tasks=names)
        shown = json.dumps([body["system"], body["messages"]])
        for wanted in (written[:-1:2], written[1::2]):
            if missing := [p for p in wanted if f"File: {p}" not in shown and f'"path": "{p}"' not in shown]:
                return tools(*(("read_file", {"path": p}) for p in missing))
        name = next(parts)
        written.extend((f"{name}.py", f"test_{name}.py"))
        return build(f"calc-t{len(written) // 2}", name)

    with approved(script, specification()) as (run, _):
        assert drive(run.loop).finished
        told = run.loop.record.store.events(run.loop.record.journal.session.id)
        iteration, taken = 0, 0
        for event in (r.event for r in told):
            iteration += event.name == "iteration_started"
            if event.name == "turn_ended" and iteration > 2 and event.purpose == "turn":  # type: ignore[attr-defined]
                taken += event.input_tokens + event.cache_read_tokens + event.cache_write_tokens  # type: ignore[attr-defined]
    return taken // (TASKS - 1)
