"""What the judge is shown: sections and files, never none; claims, decisions, and nothing hidden."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.e2e.test_verdicts import complete
from tests.endpoint import last_result, opening, tools, verdict
from tests.fake_api import Message
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
    named = first.partition("# Final source of the files that the work names")[2]
    assert all(text in named for text in ("A project.", "UNCHANGED USAGE", "OTHER = 1"))
    assert "return a + b" in second.partition("# Final source of the files that the last verdict names")[2]
    assert "can be read with the tools" in second
    for asked in (first, second):
        assert "UNNAMED" not in asked
        assert "Write it, with its tests." in asked, "the task of a module with one task"
        assert "It computes." in asked, "the specification's overview"


def test_after_a_rejection_the_judge_is_shown_the_change_since_then_and_what_that_verdict_answered(
    make_project: MakeProject,
) -> None:
    seen = {"id": "AC-1", "holds": "yes", "evidence": "calc.py:2 adds"}
    lacks = {"id": "AC-2", "holds": "no", "evidence": "names.py has no third name"}
    found: list[dict[str, Any]] = [
        {"severity": "warning", "message": "the first name is short", "path": "names.py", "line": 1},
        {"severity": "info", "message": "tidy all in all"},
    ]
    names = "".join(f"NAME_{n} = {n}\n" for n in range(40))
    tidy = ("run_command", {"command": "true --tidy"})
    first = (
        *code(),
        ("write_file", {"path": "names.py", "content": names}),
        tidy,
        tidy,
        *verified("calc-t1"),
    )
    mended = ("edit_file", {"path": "names.py", "old_text": "NAME_39 = 39\n", "new_text": "NAME_39 = 3\n"})
    silent = verdict(False, criteria=[lacks], findings=found)
    answered = verdict(False, criteria=[seen, lacks], findings=found)
    again = ("write_file", {"path": "more.py", "content": "MORE = 1\n"})
    script = [plan(component("core", "AC-1", "AC-2")), tools(*first), tools(mended, *verified("calc-t1"))]
    project = make_project(
        [*script, tools(again, *verified("calc-t1"))], oracle=[silent, answered, verdict()]
    )
    project.build_module(text=specification(criteria=("add(1, 2) is 3", "names.py has a third name")))
    whole, second, third = map(shown, project.oracle_requests)

    assert whole.count("AC-1: ") == 1
    assert "answer each of these" in whole
    assert whole.count("The part core.") == 1
    assert whole.count("true --tidy") == 1
    assert "def add" in second, "a verdict that left a criterion without an answer did not see it all"
    assert "# What the last verdict answered" not in second
    assert "# Diff since the last verdict on this work" in third
    assert "MORE = 1" in third
    assert "def add" not in third
    assert '"calc.py": ' in third.partition("# Not shown")[2]
    assert "NAME_39 = 3" in third.partition("# Final source")[2], "the rejection names it"
    answers = third.partition("# What the last verdict answered")[2].partition("\n# ")[0]
    assert "AC-1: yes: calc.py:2 adds" in answers
    assert "AC-2: no: names.py has no third name" in answers
    asked = third.partition("# Found by the last verdict on this work")[2].partition("\n# ")[0]
    assert "the first name is short" in asked
    assert "tidy all in all" not in asked


def test_where_git_has_no_more_what_was_rejected_the_work_is_judged_as_a_whole(
    make_project: MakeProject,
) -> None:
    """Another worker, which takes the build over, never had it."""

    def mended(_: object) -> Message:
        [rejected] = project.status("calc")["verdicts"]
        with closing(sqlite3.connect(project.root / ".lopen" / "state.db")) as database, database:
            database.execute("UPDATE verdicts SET body = replace(body, ?, ?)", (rejected["tree"], "0" * 40))
        return tools(("write_file", {"path": "more.py", "content": "MORE = 1\n"}), *verified("calc-t1"))

    no = {"id": "AC-1", "holds": "no", "evidence": "calc.py:2 takes away"}
    project = make_project(
        [plan(), tools(*code(value="a + b + 0"), *verified("calc-t1")), mended],
        oracle=[verdict(False, criteria=[no]), verdict()],
    )
    project.build_module(text=specification())
    assert "# Diff since the work began" in shown(project.oracle_requests[1])


def test_of_a_large_document_that_the_work_did_not_change_the_judge_is_shown_what_the_work_names(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(), *[tools(*code(), *verified("calc-t1"))]])
    story = "A long story.\n" * 3_000
    project.write("docs/guide.md", f"# Guide\n\n## Story\n\n{story}\n## Adding\n\n`addAll` adds.\n")
    project.write(
        "test_old.py",
        "import unittest\n\nclass Old(unittest.TestCase):\n    def test_it(self):\n        pass\n",
    )
    project.commit("Before")
    lint = "test -e calc.py || { echo no such code; false; }"
    project.build_module(
        text=specification(criteria=("addAll() adds as guide.md says",), commands={"verify-lint": lint})
    )
    asked = shown(project.oracle_requests[0])
    named = asked.partition("# Final source of the files that the work names")[2]
    assert "3008 `addAll` adds." in named
    assert "3 ## Story" in named
    assert "A long story." not in asked
    assert "of 3008 lines are shown; read_file gives the rest" in named
    before = asked.partition("# Failed before the work began")[2].partition("\n# ")[0]
    assert "verify-lint fails on the code that is there" in before
    assert "no such code" in before


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
    assert "claims, not evidence" in shown
    assert note in shown
    assert '"Half up?" -> "half up it is"' in shown
    ran_by_builder = shown.partition("# Commands that the builder ran")[2]
    assert "import calc" in ran_by_builder
    assert "exit code: 0\n| 3333\n" in ran_by_builder
    assert shown.index("half up it is") < shown.index(note) < shown.index("Diff since the work began")
