"""What a session says is committed, held against the repository: looked up once, and again when either changed."""

from __future__ import annotations

from dataclasses import replace
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
from tests.sessions import changed

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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits whose history git was asked for."""
    commits: list[str] = []
    real = Repository.commit_ids

    def commit_ids(self: Repository, within: str, *, since: str | None = None) -> frozenset[str]:
        commits.append(within)
        return real(self, within, since=since)

    monkeypatch.setattr(Repository, "commit_ids", commit_ids)
    return commits


def looked(session: Session, repository: Repository) -> Observed:
    spec = parse_specification(specification("m"), module="m", path=Path("specs/m/SPECIFICATION.md"))
    return observe(session, spec, None, repository)


def reopened(found: Observed) -> list[str]:
    return [e.task for e in found.events if isinstance(e, TaskChanged)]


def test_the_same_commits_below_the_same_tip_are_looked_up_once(
    session: Session, repository: Repository, asked: list[str]
) -> None:
    session = looked(session, repository).session
    assert not reopened(looked(session, repository))
    assert asked == [repository.branch_tip(BRANCH)]


def test_a_tip_that_moved_is_looked_at_again(
    root: Path, session: Session, repository: Repository, asked: list[str]
) -> None:
    session = looked(session, repository).session
    before = repository.branch_tip(BRANCH)
    run_git(root, "reset", "-q", "--hard", "HEAD^")

    found = looked(session, repository)

    assert reopened(found) == ["t2"]
    assert asked == [before, repository.branch_tip(BRANCH)]


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


def test_a_task_that_names_another_commit_is_looked_at_again(
    session: Session, repository: Repository
) -> None:
    session = looked(session, repository).session
    (core,) = session.tree.components
    forged = replace(core.tasks[0], id="t9", commit="1" * 40)
    session = changed(session, tree=TaskTree((replace(core, tasks=(*core.tasks, forged)),)))

    assert reopened(looked(session, repository)) == ["t9"]
