"""What a session says is committed, held against the repository."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lopen.core.events import TaskChanged
from lopen.git.repository import Repository
from lopen.loop.facts import Observed, observe
from lopen.specification.spec import parse_specification
from lopen.workflow.session import Plan, Session
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.git.conftest import begin, clock, repository, root, run_git
from tests.git.test_commits import commit, task_message
from tests.project import specification

__all__ = ["clock", "repository", "root"]  # fixtures
BRANCH = "lopen/m"


@pytest.fixture
def session(repository: Repository) -> Session:
    """Two tasks, both committed."""
    start = begin(repository, BRANCH).commit
    shas = [commit(repository, task_message(task), BRANCH) for task in ("t1", "t2")]
    tasks = tuple(
        Task(f"t{n}", f"Task {n}", "", state=State.COMPLETE, commit=sha) for n, sha in enumerate(shas, 1)
    )
    tree = TaskTree((Component("c", "Core", tasks=tasks, broken_down=True),))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Session("m-20260101-1", "m", now, plan=Plan(tree=tree), branch=BRANCH, start_commit=start)


def looked(session: Session, repository: Repository) -> Observed:
    spec = parse_specification(specification("m"), module="m", path=Path("specs/m/SPECIFICATION.md"))
    return observe(session, spec, None, repository)


def reopened(found: Observed) -> list[str]:
    return [e.task for e in found.events if isinstance(e, TaskChanged)]


def test_a_task_whose_commit_is_gone_is_open_again(
    root: Path, session: Session, repository: Repository
) -> None:
    assert not reopened(looked(session, repository))
    run_git(root, "reset", "-q", "--hard", "HEAD^")

    assert reopened(looked(session, repository)) == ["t2"]


def test_a_tip_that_moves_under_way_is_not_taken_for_another(
    root: Path, session: Session, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(root, "reset", "-q", "--hard", "HEAD^")
    real = Repository.branch_tip

    def then_moved(self: Repository, name: str) -> str | None:
        tip = real(self, name)
        run_git(root, "reset", "-q", "--hard", "ORIG_HEAD")
        return tip

    monkeypatch.setattr(Repository, "branch_tip", then_moved)
    assert reopened(looked(session, repository)) == ["t2"]
