"""What a person tells the model unasked: while a build runs, while none does, and when the run is killed meanwhile."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.fake_api import Answer
from tests.project import build, code, plan, verified

SAID = "The person says: use integers,\n  no floats"


def _texts(body: dict[str, Any]) -> str:
    """The texts of the last message, without results of tools."""
    return "\n".join(block["text"] for block in body["messages"][-1]["content"] if block["type"] == "text")


def test_guidance_reaches_the_next_turn_and_the_judge(make_project: MakeProject) -> None:
    def writing(_: dict[str, Any]) -> Answer:
        told = project.lopen("tell", "use integers,\nno floats")
        assert (told.code, "next: lopen resume" in told.out) == (0, False), told.err
        return tools(*code())

    project = make_project(
        [
            plan(tasks=["Write it", "Document it"]),
            writing,
            tools(*verified("calc-t1")),
            build("calc-t2", "more"),
        ]
    )
    assert project.lopen("tell", "anything").code == 2
    project.run_module()

    writes, verifies, second = project.requests[1:4]
    assert (SAID in str(writes).replace("\\n", "\n"), SAID in _texts(verifies)) == (False, True)
    assert SAID in str(second["system"]).replace("\\n", "\n")
    assert _texts(second).count("The person says") == 0
    assert "use integers, no floats" in " ".join(
        str(project.oracle_requests[0]).replace("\\\\n", " ").split()
    )
    assert {"question": "Guidance:", "answer": "use integers,\nno floats"} in project.status()["answers"]
    assert "the model's next turn is told: use integers" in project.lopen("log").out
    after = project.lopen("tell", "calc", "too late")
    assert (after.code, "is complete" in after.err) == (1, True)


def test_guidance_while_nothing_runs_is_told_once_whenever_the_run_is_killed(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(), tools(*code()), tools(*verified("calc-t1"))])
    project.approve_module()
    assert project.lopen("plan", "calc").code == 0
    project.ended_at("before:lopen.loop.conversation:Conversation._use_tools", "run", "calc")
    told = project.lopen("tell", "calc", "use", "integers")
    assert told.last_line.startswith("next: lopen resume calc-")
    for point in ("before:lopen.workflow.changes:add_guidance", "after:lopen.loop.guidance:take_guidance"):
        assert project.ended_at(point, "resume").code == -9
    assert project.status()["answers"] == []

    assert project.ended_at("after:lopen.loop.run:heed", "resume").code == -9
    assert project.lopen("resume").code == 0

    assert len(project.status()["answers"]) == 1
    assert str(project.requests[2]["messages"]).count("The person says: use integers") == 1
    assert len(project.requests) == 3
