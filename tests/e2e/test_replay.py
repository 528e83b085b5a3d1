"""A recorded session played again: in another project, and rebuilt in a scratch clone."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeProject
from tests.e2e.test_plan_with_the_draft import PLAN, SPEC, WRITE, drafted
from tests.endpoint import text, tools
from tests.fake_api import Answer
from tests.project import Project, build, code, plan, specification, verified
from tests.ran import Ran

FAILING_TEST = """\
import unittest


class Old(unittest.TestCase):
    def test_old(self):
        self.fail()
"""

AGAIN = specification(extra="\nZero is a number.\n")


def _recorded(make_project: MakeProject, script: list[object], **given: object) -> Project:
    """A finished module whose exchanges were recorded."""
    project = make_project(script, **given)
    project.run_module()
    return project


def _everything(project: Project) -> tuple[str, ...]:
    """The checkout and the repository as a person sees them."""
    looks = (
        "status --porcelain --ignored",
        "for-each-ref",
        "symbolic-ref HEAD",
        "worktree list",
        "config --list",
    )
    return tuple(project.git(*look.split()) for look in looks)


def _said(ran: Ran) -> str:
    return ran.out + ran.err


class TestInAnotherProject:
    def test_a_recording_builds_the_same_files_or_says_where_it_does_not_fit(
        self, make_project: MakeProject
    ) -> None:
        first = _recorded(make_project, [plan(), tools(*code(), ("verify_tests", {})), build("calc-t1")])
        [file] = (first.root / ".lopen" / "recordings").iterdir()

        second = make_project(name="another")
        second.specify()
        ran = second.approved_run("calc", "--model", f"replay:{file}", "--json")

        assert ran.code == 0, _said(ran)
        assert second.git("rev-parse", "lopen/calc^{tree}") == first.git("rev-parse", "lopen/calc^{tree}")
        assert second.endpoint is not None
        assert second.endpoint.requests == []
        assert [e["passed"] for e in ran.named("verification_ran")] == [True]

        third = make_project(name="a project whose tests fail")
        third.write("test_old.py", FAILING_TEST)
        third.git("add", "-A")
        third.git("commit", "-qm", "A test that fails")
        third.specify()
        ran = third.approved_run("calc", "--model", f"replay:{file}")

        assert ran.code == 1
        assert "tool call 3 verify_tests: passed was True in the recording, is False now" in ran.err


class TestInAScratchClone:
    def test_a_later_session_gives_the_same_tree_and_the_checkout_is_not_touched(
        self, make_project: MakeProject
    ) -> None:
        again = tools(*code("sub"), *verified("calc-t2"))
        project = _recorded(make_project, [plan(), build("calc-t1"), plan(tasks=("Subtract",)), again])
        assert project.lopen("run", "calc", "--new").code == 0
        session = project.status()["session"]
        project.write("README.md", "Changed by hand, and not committed.\n")
        project.write(".lopen/.gitignore", "*\n")
        before = _everything(project)

        ran = project.lopen("replay", session, "--json")

        assert ran.code == 0, _said(ran)
        assert ran.named("replayed")[0]["same"] is True
        assert ran.named("replayed")[0]["tree"] == project.git("rev-parse", "lopen/calc^{tree}")
        assert _everything(project) == before
        assert project.endpoint is not None
        assert project.endpoint.left == 0

    @pytest.mark.parametrize(
        ("script", "then"),
        [
            ([tools(WRITE, *PLAN)], ""),
            ([tools(WRITE), text("It is written."), plan()], ""),
            ([tools(WRITE, *PLAN), plan()], "edited by hand"),
            ([tools(WRITE, *PLAN), tools(("write_spec", {"content": AGAIN}), *PLAN)], "drafted again"),
        ],
    )
    def test_a_build_whose_specification_was_drafted_begins_with_the_draft(
        self, make_project: MakeProject, script: list[Answer], then: str
    ) -> None:
        project = drafted(make_project, *script, build("calc-t1"))
        if then == "edited by hand":
            project.write(SPEC, AGAIN)
        elif then:
            assert project.lopen("spec", "calc", "-p", "Say what zero is.").code == 0
        assert project.approved_run().code == 0

        ran = project.lopen("replay", "calc", "--json")

        assert ran.code == 0, _said(ran)
        assert ran.named("replayed")[0]["same"] is True
        assert ran.named("spec_approved")

    def test_another_tree_and_a_missing_recording_are_said(self, make_project: MakeProject) -> None:
        project = make_project([plan(tasks=["Add", "Test"]), build("calc-t1"), build("calc-t2", "calc2")])
        project.specify()
        assert project.lopen("run", "calc").code == 3
        early = project.lopen("replay", "calc")
        assert early.code == 1
        assert "was never approved" in early.err

        assert project.approved_run().code == 0
        assert project.lopen("revert", "--to", "calc-t1").code == 0
        reverted = project.lopen("replay", "calc")
        assert (reverted.code, "different tree" in reverted.err) == (1, True), reverted.err
        assert project.lopen("revert", "calc", "--undo").code == 0
        assert project.lopen("replay", "calc").code == 0

        project.git("stash", "-q", "-u", "--", "specs")
        project.git("switch", "-q", "lopen/calc")
        project.write("calc.py", "def add(a, b):\n    return b + a\n")
        project.git("commit", "-q", "-a", "--amend", "--no-edit")
        changed = project.lopen("replay", "calc")
        assert changed.code == 1
        assert "gives a different tree: calc.py differs" in changed.err

        for recording in (project.root / ".lopen" / "recordings").iterdir():
            recording.unlink()
        gone = project.lopen("replay", "calc")
        assert gone.code == 1
        assert "has no recording" in gone.err
