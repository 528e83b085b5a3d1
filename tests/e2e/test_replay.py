"""A recorded session played again: in another project, and rebuilt in a scratch clone."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.endpoint import status, tools
from tests.project import Project, build, code, plan, verified
from tests.ran import Ran

FAILING_TEST = """\
import unittest


class Old(unittest.TestCase):
    def test_old(self):
        self.fail()
"""


def _recorded(make_project: MakeProject, script: list[object], **given: object) -> Project:
    """A finished module whose exchanges were recorded."""
    project = make_project(script, **given)
    project.specify()
    ran = project.approved_run()
    assert ran.code == 0, ran.out + ran.err
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
        assert [e["passed"] for e in ran.named("verification_ran")] == [True, True]

        third = make_project(name="a project whose tests fail")
        third.write("test_old.py", FAILING_TEST)
        third.git("add", "-A")
        third.git("commit", "-qm", "A test that fails")
        third.specify()
        ran = third.approved_run("calc", "--model", f"replay:{file}")

        assert ran.code == 1
        assert "tool call 3 verify_tests: passed was True in the recording, is False now" in ran.err

    def test_a_file_that_is_no_recording_is_named(self, make_project: MakeProject) -> None:
        project = make_project()
        project.specify()
        ran = project.lopen("run", "calc", "--model", "replay:README.md")
        assert ran.code == 1
        assert "README.md is damaged, or not a recording" in ran.err


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

    def test_a_session_with_a_question_a_failure_and_two_resumptions_is_replayed_as_far_as_it_came(
        self, make_project: MakeProject
    ) -> None:
        question = tools(("ask_user", {"question": "Whole numbers only?", "default": "yes"}))
        unfinished = tools(*code("sub", "a - b"))
        script = [question, plan(tasks=("Add", "Subtract")), build("calc-t1"), unfinished, status(400, "no")]
        project = make_project([*script, build("calc-t2", "sub")])
        project.specify()
        assert project.approved_run().code == 3
        session = project.status()["session"]
        assert project.lopen("answer", session, "no").code == 0
        assert project.lopen("resume").code == 1

        assert "gives the same tree" in project.lopen("replay", session).out

        assert project.lopen("resume").code == 0
        whole = project.lopen("replay", session)
        assert whole.code == 0, _said(whole)
        assert "gives the same tree" in whole.out

    def test_a_killed_session_is_replayed_as_far_as_it_came(self, make_project: MakeProject) -> None:
        project = make_project([status(400, "no"), plan(), build("calc-t1")])
        project.specify()
        assert project.approved_run().code == 1
        session = project.status()["session"]
        [file] = (project.root / ".lopen" / "recordings").iterdir()
        nothing = project.lopen("replay", session)
        assert (nothing.code, "gives the same tree" in nothing.out) == (0, True)
        other = make_project(name="another")
        other.specify()
        unplayed = other.approved_run("calc", "--model", f"replay:{file}")
        assert (unplayed.code, "the recording has no exchange" in unplayed.err) == (1, True)
        for _ in range(2):  # after the plan, and within the task
            killed = project.ended_at("after:lopen.loop.model_calls:ModelCalls._settle", "resume", session)
            assert killed.code < 0
            replayed = project.lopen("replay", session)
            assert (replayed.code, "gives the same tree" in replayed.out) == (0, True), _said(replayed)

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
