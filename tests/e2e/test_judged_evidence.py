"""What the judge is shown where headings changed, or nothing was built: sections and files, never none."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.e2e.test_drift import Edited, system
from tests.endpoint import tools, verdict
from tests.project import build, code, component, plan, specification, task, verified


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
    files = asked.partition("# Final source of the files that the work names")[2]
    assert "return a + b" in files
    assert "ASSERTED = True" in files
    assert "UNNAMED" not in asked


def test_the_judge_sees_files_named_its_earlier_findings_and_the_task(make_project: MakeProject) -> None:
    wrong = {"severity": "error", "message": "the sum is off by one", "path": "calc.py", "line": 2}
    turns = [tools(*code(value=value), *verified("calc-t1")) for value in ("a + b + 0", "a + b")]
    project = make_project(
        [plan(component("core", "AC-1", "AC-2")), *turns], oracle=[verdict(findings=[wrong]), verdict()]
    )
    criteria = ("add(1, 2) is 3, as the README says", "usage.md and pkg/other.py stay as they are")
    project.write("docs/usage.md", "UNCHANGED USAGE\n")
    project.write("pkg/other.py", "OTHER = 1\n")
    project.write("pkg/unnamed.py", "UNNAMED = 1\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Before")
    project.specify(text=specification(criteria=criteria))

    ran = project.drive()

    assert ran.code == 0, ran.err
    first, second = map(shown, project.oracle_requests)
    assert "off by one" not in first
    assert "off by one" in second.partition("# Found by the last verdict on this work")[2]
    for asked in (first, second):
        named = asked.partition("# Final source of the files that the work names")[2]
        assert all(text in named for text in ("A project.", "UNCHANGED USAGE", "OTHER = 1"))
        assert "UNNAMED" not in asked
        assert "Write it, with its tests." in asked, "the task of a module with one task"
        assert "It computes." in asked, "the specification's overview"
