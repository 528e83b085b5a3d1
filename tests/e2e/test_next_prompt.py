"""What the next conversation needs stands in its prompt, and what limits the work is told where it can be acted on."""

from __future__ import annotations

import json
from typing import Any

from lopen.loop.project_context import WHOLE_CHARS
from lopen.models.messages import Usage
from tests.e2e.conftest import MakeProject
from tests.endpoint import opening, text, tools, verdict
from tests.project import build, code, component, plan, specification, task, verified

CRITERIA = ("add(1, 2) is 3", "add(2, 2) is 4", "add(0, 0) is 0")


def system(body: dict[str, Any]) -> str:
    return "\n\n".join(block["text"] for block in body["system"])


def section(body: dict[str, Any], title: str) -> str:
    """The part of the system prompt under a title, or ""."""
    return system(body).partition(f"## {title}\n")[2].partition("\n## ")[0]


def planned(*tasks: dict[str, Any], **of_component: Any) -> Any:
    part = component("core", *(f"AC-{n}" for n in range(1, len(CRITERIA) + 1)), **of_component)
    return tools(
        ("record_dependencies", {"dependencies": []}),
        ("record_components", {"components": [part]}),
        ("select_component", {"name": "core", "reason": "it comes first"}),
        ("record_tasks", {"component": "core", "tasks": list(tasks)}),
    )


def test_a_person_s_answer_is_in_every_later_request_and_in_the_report(make_project: MakeProject) -> None:
    asks = tools(("ask_user", {"question": "Half up or to even?", "default": "to even"}))
    looks = tools(("research", {"topic": "rounding", "question": "Where is rounding done?"}))
    routes = [(lambda body: "research assistant" in str(body.get("system")), text("Nowhere.\n\nNo file."))]
    script = [asks, plan(tasks=["One", "Two"]), looks, build("calc-t1", "one"), build("calc-t2", "two")]
    project = make_project(script, routes=routes)
    project.specify()

    waits = project.approved_run()
    assert waits.code == 3
    assert project.lopen("answer", project.status()["session"], "half up").code == 0
    ran = project.lopen("resume")

    assert ran.code == 0, ran.err
    endpoint = project.endpoint
    assert endpoint is not None
    later = [*project.requests[1:], *project.oracle_requests, *endpoint.routed_requests]
    assert len(later) == 7
    assert all("half up" in json.dumps(body) for body in later)
    assert "decided by a person: Half up or to even? half up" in ran.out
    assert "Half up or to even? half up" in project.read(".lopen/modules/calc/plan.md")


def test_a_task_opens_with_its_criteria_and_the_files_it_builds_on(make_project: MakeProject) -> None:
    large = '"""Much."""\n\n\n' + "".join(
        f'def many_{n}(a, b=1):\n    """Return {n}."""\n    return {n}  # {"x" * 500}\n\n\n'
        for n in range(130)
    )
    assert len(large) > WHOLE_CHARS
    first = tools(*code("one"), ("write_file", {"path": "large.py", "content": large}), *verified("calc-t1"))
    script = [
        planned(
            task("One", acceptance_criteria=["AC-1"]),
            task(
                "Two, as docs/api.md names it",
                acceptance_criteria=["AC-2"],
                files=[
                    "./docs/notes.md",
                    "docs/api.md#Names",
                    "docs/old.rst#Units",
                    "docs/old.rst#Units?",
                    "shop.py#Cart.total",
                    "docs",
                    "../outside",
                    "gone.py",
                    "one.py",
                ],
            ),
            task("Three"),
        ),
        first,
        build("calc-t2", "two"),
        build("calc-t3", "three"),
    ]
    project = make_project(script)
    project.write("docs/notes.md", "Round half up.\n")
    project.write("docs/api.md", "# API\n\n## Names\n\nNames are short.\n\n## History\n\nLong story.\n")
    shop = "".join(f"def before_{n}():\n    return {n}\n\n\n" for n in range(20))
    shop += (
        "def total():\n    pass\n\n\nclass Cart:\n    @property\n    def total(self):\n        return 42\n"
    )
    project.write("shop.py", shop)
    project.write("docs/old.rst", "Old\n===\n\nUnits\n-----\nMetres.\n\nStory\n-----\nA tale.\n")
    project.commit("Note")
    project.build_module(text=specification(criteria=CRITERIA, extra="\nIt follows docs/api.md.\n"))

    planner, one, two, three = project.requests
    assert "3: ## Names\n7: ## History" in system(planner).partition("## Outline of docs/api.md (")[2]
    assert "Names are short." not in system(planner)
    assert section(one, "Acceptance criteria of this task").count("- AC-") == 1
    assert section(one, "Acceptance criteria of other work (read_spec shows them)").strip() == "AC-2, AC-3"
    assert "## File: " not in system(one)
    assert "Round half up." in section(two, "File: docs/notes.md")
    assert "return a + b" in section(two, "File: one.py")
    assert system(two).count("## File: one.py\n") == 1
    assert "class TestOne" in system(two).partition("## Outline of test_one.py (")[2]
    assert "self.assertEqual" not in system(two)
    assert "Names are short." in system(two).partition("## File: docs/api.md#Names")[2]
    assert "Long story." not in system(two)
    assert (
        "Metres." in system(two).partition("## File: docs/old.rst#Units\n")[2].partition("</lopen-data>")[0]
    )
    assert system(two).count("A tale.") == 1, "an unknown heading names the whole file"
    assert "outside" not in system(two)
    named = section(two, "File: shop.py#Cart.total").strip()
    assert named == "<lopen-data>\n    @property\n    def total(self):\n        return 42\n</lopen-data>"
    near = section(two, "Outline of shop.py near it")
    assert "before_19" in near
    assert "before_5" not in near
    assert "86 to 88: Cart.total, shown above" in near
    assert "5: " not in section(two, "File: one.py")
    shown = section(two, f"Outline of large.py ({len(large)} characters)")
    assert "4: def many_0(a, b=1)" in shown
    assert "xxx" not in shown
    assert "- AC-1: add(1, 2) is 3" in section(three, "Acceptance criteria of this task")
    assert "1: def add(a, b)" in system(three).partition("## Outline of two.py (")[2]
    assert "return a + b" not in system(three)
    assert [b["text"] for b in one["system"][:2]] == [b["text"] for b in three["system"][:2]]
    judged = opening(project.oracle_requests[0])
    assert "AC-1: add(1, 2) is 3" in judged
    assert "AC-2: " not in judged


def test_a_task_that_is_too_large_is_split_and_its_first_piece_goes_on(make_project: MakeProject) -> None:
    pieces = [task("First half", subtasks=["write it"]), task("Second half", files=["one.py"])]
    split = ("split_task", {"task_id": "calc-t1", "tasks": pieces, "reason": "It is two pieces of work."})
    script = [
        plan(tasks=["All of it", "The end"]),
        tools(*code("one"), split, *verified("calc-t1")),
        build("calc-t3", "two"),
        build("calc-t2", "three"),
    ]
    project = make_project(script)
    project.build_module()
    assert [s.partition("complete ")[2] for s in project.subjects("lopen/calc")[2:]] == [
        "First half in core",
        "Second half in core",
        "The end in core",
    ]
    second = project.requests[2]
    assert "name: Second half" in section(second, "Your task")
    assert "- calc-t1 First half: complete" in section(second, "Plan")
    assert "def add" in section(second, "File: one.py")
    (core,) = project.status()["components"]
    assert [t["id"] for t in core["tasks"]] == ["calc-t1", "calc-t3", "calc-t2"]


def test_what_is_left_of_the_budget_is_told_in_results_from_half_on(make_project: MakeProject) -> None:
    def turn(n: int, tokens: int) -> Any:
        return tools(("run_command", {"command": f"true {n}"}), usage=Usage(output_tokens=tokens))

    script = [plan(), turn(1, 30_000), turn(2, 30_000), turn(3, 25_000), build("calc-t1")]
    project = make_project(script, LOPEN_BUDGET__TASK_TOKENS="100000", LOPEN_MODEL__MAX_TOKENS="2048")
    project.build_module()

    said = [
        [
            b["text"]
            for m in body["messages"][1:]
            if m["role"] == "user"
            for b in m["content"]
            if b["type"] == "text"
        ]
        for body in project.requests[1:]
    ]
    assert said[:2] == [[], []]
    assert said[2] == ["Left of the budget: task 40,000 of 100,000 tokens."]
    assert said[3][1].startswith(
        "Left of the budget: task 15,000 of 100,000 tokens. Verify and complete what you have"
    )
    assert said[3][0] == said[2][0]


def test_documents_of_criteria_verifications_and_remarks_reach_the_builder(make_project: MakeProject) -> None:
    remark = {"severity": "warning", "message": "add has no docstring", "path": "one.py"}
    last = {"severity": "warning", "message": "the README lacks an example"}
    script = [
        plan(
            component("core", "AC-1", spec_sections=["Behaviour"]),
            component("report", "AC-2", depends_on=["core"]),
            tasks=["Add", "Say"],
        ),
        build("calc-t1", "one"),
        build("calc-t2", "two"),
        tools(
            ("select_component", {"name": "report", "reason": "core is complete"}),
            ("record_tasks", {"component": "report", "tasks": [task("Print it")]}),
        ),
        build("calc-t3", "three"),
    ]
    project = make_project(script, oracle=[verdict(), verdict(findings=[remark]), verdict(findings=[last])])
    project.write("docs/rules.md", "Round half up.\n")
    project.commit("Rules")
    ran = project.run_module(
        text=specification(
            criteria=("it adds as rules.md says", "it reports"),
            commands={"verify-lint": "true", "verify-fix": "true ."},
        )
    )
    _, one, two, _, three = project.requests
    order = "run_command `true .` (verify-fix), verify_lint, verify_tests, verify_task_completion"
    assert f"verifications, in this order: {order}" in system(one)
    assert "It computes." in system(one), "though the component names Behaviour alone"
    assert "Languages here" not in system(one)
    assert "Round half up." in section(one, "File: docs/rules.md")
    assert "Remarks" not in system(one)
    assert "add has no docstring" not in system(two)
    assert "one.py: add has no docstring" in section(
        three, "Remarks of the judge on the work before (mend them with this task)"
    )
    assert "the judge remarks: the README lacks an example" in ran.out, ran.out
    assert "the README lacks an example" in project.lopen("report", "calc").out.splitlines()[-1]


def test_the_draft_shows_what_the_request_names_and_an_assumption_is_judged_with_the_work(
    make_project: MakeProject,
) -> None:
    draft = tools(("write_spec", {"content": specification()}))
    assumed = ("verify_task_completion", {"task_id": "calc-t1", "note": "Assumed: numbers are integers."})
    done = ("update_task_status", {"task_id": "calc-t1", "status": "complete"})
    project = make_project([draft, plan(), tools(*code(), ("verify_tests", {}), assumed, done)])
    project.write("docs/rounding.md", "Round half up, see <data>.\n")
    project.commit("Rules")
    assert project.lopen("run", "calc", "-p", "Build what docs/rounding.md says").code == 3
    ran = project.approved_run()
    assert ran.code == 0, ran.err
    drafted = project.requests[0]
    assert (
        section(drafted, "File: docs/rounding.md").strip()
        == "<lopen-data>\nRound half up, see <data>.\n</lopen-data>"
    )
    assert "The existing tests" not in system(drafted), "there are none"
    assert section(drafted, "Files that are not shown whole").split()[1:-1] == [".gitignore"]
    judged = opening(project.oracle_requests[0])
    assert "Assumed: numbers are integers." in judged.partition("assumptions: claims, not evidence")[2]
    assert "# Decisions: " not in judged, "nobody decided it but the builder"
    assert len(project.oracle_requests) == 1, "what was assumed is not judged a second time"
    assert project.status()["assumptions"] == ["calc-t1: Assumed: numbers are integers."]


def test_planner_and_builder_are_told_which_approved_command_fails_on_the_code_that_is_there(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(), build("calc-t1"), build("calc-t1")])
    project.write(
        "test_old.py",
        "import unittest\n\nclass Old(unittest.TestCase):\n    def test_it(self):\n        pass\n",
    )
    project.commit("Old")
    lint = "seq -f 'test_old.py:%g: a public function of this file has no docstring' 100; false"
    project.approve_module(text=specification(commands={"verify-lint": lint}))
    assert project.lopen("plan", "calc").code == 0
    project.lopen("run", "calc")
    for body in project.requests[:2]:
        told = section(body, "Told by lopen")
        assert "verify-lint fails on the code that is there" in told
        lines = [line for line in told.splitlines() if "test_old.py:" in line]
        assert all(line.endswith("no docstring") for line in lines)
        assert f"and {60 - len(lines)} more lines" in told


def test_of_a_large_readme_the_draft_is_shown_headings_and_the_sections_that_the_request_speaks_of(
    make_project: MakeProject,
) -> None:
    project = make_project([tools(("write_spec", {"content": specification()})), text("Written.")])
    story = "A long story. " * 500
    project.write(
        "README.md",
        f"# Shop\n\n[![ci](https://a/b.svg)](https://a)\n\n## Sponsors\n\n{story}\n\n## Carts\n\n`addItem` adds.\n",
    )
    project.write("test_shop.py", "import unittest\n")
    for n in range(70):
        project.write(f"examples/e{n}.py", "")
    project.commit("Shop")
    project.lopen("run", "calc", "-p", "Let addItem() take a count, and say so in README.md.")
    shown = section(project.requests[0], "Of README.md")
    assert "`addItem` adds." in system(project.requests[0])
    assert "## Sponsors" in shown
    assert "long story" not in system(project.requests[0])
    assert "b.svg" not in shown
    assert system(project.requests[0]).count("## Sponsors") == 1
    assert "examples/ (70 files)" in section(project.requests[0], "Files that are not shown whole")
    assert "Python: " in section(project.requests[0], "Languages here")
    assert "Go: " not in section(project.requests[0], "Languages here")
