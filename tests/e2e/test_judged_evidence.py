"""What the judge is shown: sections and files, never none; claims, decisions, and nothing hidden."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.e2e.test_verdicts import complete
from tests.endpoint import last_result, opening, tools, verdict
from tests.project import code, component, plan, specification, verified


def shown(request: dict[str, Any]) -> str:
    """All that the judge is shown."""
    return "\n".join(block["text"] for block in request["messages"][0]["content"])


def test_a_component_found_done_is_judged_on_the_files_named(make_project: MakeProject) -> None:
    done = component("core", "AC-1", state="done", evidence=["calc.py", "tests/"])
    first = tools(
        ("record_dependencies", {"dependencies": []}), ("record_components", {"components": [done]})
    )
    project = make_project([first])
    project.write("calc.py", "def add(a, b):\n    return a + b\n")
    project.write("tests/test_calc.py", "ASSERTED = True\n")
    project.write("other.py", "UNNAMED = True\n")
    project.commit("By hand")
    project.run_module(text=specification(commands={"verify-tests": "true"}))
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
    project.commit("Before")
    project.build_module(text=specification(criteria=criteria))
    first, second = map(shown, project.oracle_requests)
    assert "off by one" not in first
    assert "off by one" in second.partition("# Found by the last verdict on this work")[2]
    for asked in (first, second):
        named = asked.partition("# Final source of the files that the work names")[2]
        assert all(text in named for text in ("A project.", "UNCHANGED USAGE", "OTHER = 1"))
        assert "UNNAMED" not in asked
        assert "Write it, with its tests." in asked, "the task of a module with one task"
        assert "It computes." in asked, "the specification's overview"


def test_what_the_judge_cannot_be_shown_blocks(make_project: MakeProject) -> None:
    made = """zeros=$(printf '%040d' 0 | sed 's/0/\\\\000/g'); printf "echo 1 #$zeros" | tee tool.sh >data.bin
    printf "x = 1 #$zeros" | tr '\\000' '\\377' >latin.py; : >"$(printf 'caf\\351.txt')\""""
    again = tools(("run_command", {"command": "rm tool.sh latin.py caf*"}), *verified("calc-t1"))
    first = tools(*code(), ("run_command", {"command": made}), *verified("calc-t1")[:2])
    project = make_project([plan(), first, again])
    project.build_module()
    told = last_result(project.requests[2], "verify_task_completion").data
    assert not told["passed"]
    blocked = {f["path"]: f["message"] for f in told["findings"] if f["severity"] == "error"}
    assert sorted(blocked) == ["caf\udce9.txt", "latin.py", "tool.sh"]
    assert "rename it" in blocked.pop("caf\udce9.txt")
    assert all("Save it as UTF-8" in message for message in blocked.values())
    assert "data.bin" in project.git("show", "--stat", "lopen/calc")


def test_the_judge_is_told_the_note_as_a_claim_and_what_the_person_answered(
    make_project: MakeProject,
) -> None:
    note = "Rounding is exact; see calc.py line 2."
    asked = ("ask_user", {"question": "Half up?", "default": "no"})
    planned = [dict(block) for block in plan().content]
    calls = [(block["name"], block["input"]) for block in planned]
    built = tools(
        *code(),
        ("run_command", {"command": "python3 -c 'import calc; print(calc.add(1, 2) * 1111)'"}),
        ("verify_tests", {}),
        ("verify_task_completion", {"task_id": "calc-t1", "note": note}),
        complete("calc-t1"),
    )
    project = make_project([tools(asked), tools(*calls), built])
    ran = project.build_module(code=3)
    assert project.lopen("answer", ran.named("session_paused")[0]["session"], "half up it is").code == 0

    resumed = project.resume()

    assert resumed.code == 0, resumed.err
    shown = opening(project.oracle_requests[0])
    assert "a claim, not evidence" in shown
    assert note in shown
    assert '"Half up?" -> "half up it is"' in shown
    ran_by_builder = shown.partition("# Commands that the builder ran")[2]
    assert "import calc" in ran_by_builder
    assert "exit code: 0\n| 3333\n" in ran_by_builder
    assert shown.index("half up it is") < shown.index(note) < shown.index("Diff since the work began")
