"""What enters no commit is said: ignored files, what verify commands left; and what verify-setup's failure does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.judge.judged_work import left_out
from lopen.sandbox.command import CommandResult
from tests.models.prompts.examples import planned
from tests.tools.examples import Bench, bench, git

SETUP = {"verify-setup": "install", "verify-tests": "run-tests"}


def leaving(path: str, content: str) -> Callable[[str, Path], CommandResult]:
    def act(_: str, folder: Path) -> CommandResult:
        (folder / path).write_text(content, "utf-8")
        return CommandResult(exit_code=0, output="1 passed")

    return act


@pytest.fixture
def ignoring(root: Path) -> Path:
    (root / ".gitignore").write_text("lib/\n*.log\n", "utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Ignore")
    return root


def test_a_file_that_git_ignores_is_written_and_said(ignoring: Path) -> None:
    at = bench(ignoring, planned())

    ignored = at.call("write_file", path="lib/calc.py", content="x = 1\n")
    kept = at.call("write_file", path="calc.py", content="x = 1\n")

    assert ignored.ok
    assert "git ignores lib/calc.py: it enters no commit" in ignored.fields["note"]
    assert "note" not in kept.fields
    (finding,) = left_out(at.at.evidence.ignored)
    assert (finding.severity, finding.path) == ("warning", "lib/calc.py")


def test_a_tracked_file_is_not_ignored_whatever_the_patterns_say(ignoring: Path) -> None:
    (ignoring / "kept.log").write_text("one\n", "utf-8")
    git(ignoring, "add", "-f", "kept.log")
    git(ignoring, "commit", "-qm", "Keep it")

    edited = bench(ignoring, planned()).call("edit_file", path="kept.log", old_text="one", new_text="two")

    assert edited.ok
    assert "note" not in edited.fields


def test_what_a_verify_command_left_is_named_and_enters_no_commit(root: Path) -> None:
    at = bench(root, planned())
    at.sandbox.act = leaving("snap.txt", "golden\n")
    before = at.at.project.verifier.tree()

    result = at.call("verify_tests")

    assert result.fields["left_uncommitted"] == ["snap.txt"]
    assert at.at.project.verifier.tree() == before
    assert not (root / "snap.txt").exists()


def setting_up(at: Bench, codes: list[int]) -> None:
    left = iter(codes)

    def act(command: str, _: Path) -> CommandResult:
        if command == "install":
            return CommandResult(exit_code=next(left), output="no network")
        return CommandResult(exit_code=0, output="1 passed")

    at.sandbox.act = act


def test_a_failing_setup_fails_what_needs_it_and_is_tried_again(root: Path) -> None:
    at = bench(root, planned(), commands=SETUP)
    setting_up(at, [7, 0])

    first, second, third = (at.call("verify_tests") for _ in range(3))

    assert first.fields["passed"] is False
    assert first.fields["output"] == (
        "not run, because verify-setup (install) failed with exit code 7:\nno network"
    )
    assert "runs again before the next verification" in first.fields["hint"]
    assert second.fields["passed"] is third.fields["passed"] is True
    # What passed on this tree is not run again
    assert at.sandbox.ran == ["install", "install", "run-tests"]
