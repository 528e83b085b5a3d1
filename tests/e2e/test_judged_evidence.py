"""What the judge is shown where headings changed, or nothing was built: sections and files, never none."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.e2e.test_drift import Edited, system
from tests.endpoint import tools
from tests.project import build, code, component, specification, task, verified


def shown(request: dict[str, Any]) -> str:
    """All that the judge is shown."""
    return "\n".join(block["text"] for block in request["messages"][0]["content"])


def test_the_front_matter_is_named_and_a_renamed_heading_leaves_the_judge_the_component_s(
    make_project: MakeProject,
) -> None:
    edited = Edited()
    part = component("core", "AC-1", spec_sections=["Behaviour"])
    planned = tools(
        ("record_dependencies", {"dependencies": []}),
        ("record_components", {"components": [part]}),
        ("select_component", {"name": "core", "reason": "it comes first"}),
        (
            "record_tasks",
            {
                "component": "core",
                "tasks": [task("Write it", spec_sections=["Rounding"]), task("Subtract")],
            },
        ),
    )
    renamed = [("description: The module calc", "description: Another"), ("### Rounding", "### Cents")]
    script = [planned, edited.before(tools(*code(), *verified("calc-t1")), *renamed), build("calc-t2", "sub")]
    edited.project = project = make_project(script)
    project.specify()

    ran = project.approved_run("calc", "--json")

    assert ran.code == 0, ran.err
    [drift] = ran.named("drift")
    assert (drift["changed"], drift["removed"]) == (["front matter"], ["Behaviour > Rounding"])
    assert "changed: front matter" in system(project, 2)
    for asked in project.oracle_requests:
        sections = shown(asked).partition("# Sections of the specification")[2]
        assert "Functions live in one file." in sections.partition("\n# ")[0]
        assert "(none)" not in sections.partition("\n# ")[0]


def test_a_component_found_done_is_judged_on_the_files_named(make_project: MakeProject) -> None:
    done = component("core", "AC-1", state="done", evidence=["calc.py", "tests/"])
    first = tools(
        ("record_dependencies", {"dependencies": []}), ("record_components", {"components": [done]})
    )
    project = make_project([first])
    project.write("calc.py", "def add(a, b):\n    return a + b\n")
    project.write("tests/test_calc.py", "ASSERTED = True\n")
    project.write("other.py", "UNNAMED = True\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "By hand")
    project.specify(text=specification(commands={"verify-tests": "true"}))

    ran = project.approved_run("calc")

    assert ran.code == 0, ran.err
    asked = shown(project.oracle_requests[0])
    files = asked.partition("# Final source of the files that step 3 named as evidence")[2]
    assert "return a + b" in files
    assert "ASSERTED = True" in files
    assert "UNNAMED" not in asked
