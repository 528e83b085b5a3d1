"""Circuits through the real command: what trips, what is waited out, and how a person lets it go on.

The rules have tests of their own in `tests/limits`.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from tests.e2e.behaviours import numbered, run
from tests.e2e.conftest import MakeProject
from tests.e2e.stores import kept_in
from tests.endpoint import Turn, text, tools
from tests.fake_api import Answer
from tests.project import Project, build, plan
from tests.ran import Ran

__all__ = ["kept_in"]  # a fixture

FAST = {"LOPEN_CIRCUIT__TOOL_FAILURE__COOLDOWN_BASE": "0.1"}


def then(*first: Turn) -> Any:
    """These turns in order; the last one again and again."""
    turns = itertools.chain(first[:-1], itertools.repeat(first[-1]))

    def answer(body: Any) -> Answer:
        turn = next(turns)
        return turn(body) if callable(turn) else turn

    return answer


def circuit(project: Project) -> dict[str, Any]:
    shown = project.lopen("circuit", "status", "--json")
    assert shown.code == 0, shown.err
    return shown.named("circuit")[0]


def acknowledged(project: Project, ran: Ran) -> None:
    """Give the command that the last line names, as it stands there."""
    assert ran.last_line.startswith("next: lopen circuit ack session:"), ran.last_line
    acked = project.lopen(*ran.last_line.removeprefix("next: lopen ").split())
    assert acked.code == 0, acked.err


def opened(ran: Ran) -> list[str]:
    """The rules that opened the circuit, in order."""
    trips = [e for e in ran.named("guardrail") if e["guard"] == "circuit_breaker"]
    return [e["reason"].partition(":")[0] for e in trips]


def waits(ran: Ran) -> list[float]:
    return [e["seconds"] for e in ran.named("waiting")]


def test_of_forty_identical_failing_calls_four_are_made(
    kept_in: dict[str, str], make_project: MakeProject
) -> None:
    failing = run("echo once >> tried; false")
    together = not kept_in  # all in one turn, or one a turn
    stuck = tools(*[failing] * (40 if together else 1))
    project = make_project([plan(), *[stuck] * (1 if together else 5), build("calc-t1")], **kept_in)
    project.write(".gitignore", "__pycache__/\ntried\n")
    project.git("commit", "-qam", "Ignore it")
    ran = project.build_module(code=3)
    assert (project.clone() / "tried").read_text().splitlines() == ["once"] * 4
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "circuit"
    assert "run_command was called 5 times in a row with the same arguments" in paused["message"]
    assert "Instead: " not in paused["message"]  # which is the model's
    state = circuit(project)
    assert (state["state"], state["rule"], state["needs_ack"], state["trips"]) == (
        "open",
        "duplicate_call",
        True,
        1,
    )
    assert [e["alert_type"] for e in ran.named("alert")] == ["circuit_tripped"]

    acknowledged(project, ran)
    resumed = project.resume()

    assert resumed.code == 0, resumed.out[-2000:] + resumed.err
    assert circuit(project)["state"] == "closed"
    assert circuit(project)["incidents_24h"] == {"ack": 1, "duplicate_call": 1}


def test_cooldowns_climb_until_the_fifth_asks_a_person(make_project: MakeProject) -> None:
    missing = numbered(lambda n: [("read_file", {"path": f"missing{n}.py"})])
    script = then(plan(), *[missing] * 8, build("calc-t1"))
    project = make_project(script, **FAST)
    ran = project.build_module(code=3)
    # Four failures trip it; each probe after a cooldown fails and climbs a rung. A wait that is over is not told.
    rungs = [0.1, 0.2, 0.6, 1.2]
    assert waits(ran) == sorted(waits(ran))
    assert all(seconds <= rung for seconds, rung in zip(waits(ran)[::-1], rungs[::-1], strict=False))
    assert opened(ran) == ["tool_failure"] * 5
    assert [e["alert_type"] for e in ran.named("alert")] == ["circuit_tripped"]
    state = circuit(project)
    assert (state["trips"], state["needs_ack"]) == (5, True)

    acknowledged(project, ran)
    resumed = project.resume()
    assert resumed.code == 0, resumed.out[-2000:] + resumed.err


def researching(body: Any) -> bool:
    return "research assistant" in json.dumps(body["system"])


def asking(*topics: str) -> Answer:
    return tools(*[("research", {"topic": t, "question": f"What is {t}?"}) for t in topics])


def test_sub_agents_wait_for_their_turn_and_are_counted(make_project: MakeProject) -> None:
    looks = [tools(("list_files", {"glob": f"*{n}"})) for n in range(12)]  # many, but one a turn
    answers = [text("It is so."), *looks, text("It is not.")]
    project = make_project(
        [plan(), asking("one", "two"), asking("three"), build("calc-t1")],
        routes=[(researching, answers)],
        LOPEN_RESOURCES__AGENT_SPAWN_COOLDOWN_S="0.9",
        LOPEN_RESOURCES__MAX_AGENTS_PER_SESSION="2",
    )
    ran = project.build_module(code=3)
    done = [e["outcome"] for e in ran.named("tool_ended") if e["tool"] == "research"]
    assert done == ["ok", "ok", "refused"]
    assert len(waits(ran)) <= 1  # the second waited for its turn, unless the first took that long
    assert all(0 < seconds <= 0.9 for seconds in waits(ran))
    state = circuit(project)
    assert (state["rule"], state["resources"]["agents_spawned"], state["resources"]["agents_running"]) == (
        "agent_spawn",
        2,
        0,
    )
    acknowledged(project, ran)
    resumed = project.resume()
    assert resumed.code == 0, resumed.out[-2000:] + resumed.err


def test_sudo_parallel_in_the_prompt_lifts_the_spawn_limits_and_is_logged(make_project: MakeProject) -> None:
    topics = [f"topic{n}" for n in range(7)]  # six within ten turns would trip
    project = make_project(
        [plan(), asking(*topics), build("calc-t1")],
        routes=[(researching, text("It is so."))],
        LOPEN_RESOURCES__MAX_AGENTS_PER_SESSION="2",
    )
    project.approve_module()

    ran = project.lopen("run", "calc", "-p", "Look around, SUDO PARALLEL", "--json")

    assert ran.code == 0, ran.out[-2000:] + ran.err
    assert waits(ran) == []
    assert [e for e in ran.named("notice") if "limits on starting sub-agents are lifted" in e["message"]]
    assert circuit(project)["incidents_24h"] == {"override": 1}
