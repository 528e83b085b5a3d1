"""Rebuilding sessions after a database was lost: as far as git trailers and `plan.md` allow.

See docs/reference/storage.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.git.commits import CommitInfo
from lopen.git.refs import BRANCH_PREFIX
from lopen.git.repository import Repository
from lopen.specification.modules import MAX_BYTES, is_module_name, spec_path
from lopen.specification.plan_file import parse_plan
from lopen.specification.spec import load_specification
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Plan, Session, is_session_id
from lopen.workflow.task_tree import State, TaskTree


def rebuild(root: Path, store: SessionStore) -> Iterator[str]:
    """Rebuild a session from each stored plan, its completed tasks from commits; yield a line per plan.

    Approvals are not rebuilt: a person approves again.
    """
    for plan in sorted((root / ".lopen" / "modules").glob("*/plan.md")):
        module = plan.parent.name
        if not is_module_name(module):  # not written by lopen
            continue
        tree = _tree(plan)
        if tree is None or not tree.components:
            yield f"{module}: its plan is unreadable; the next run plans it again"
            continue
        commits = _commits(root, BRANCH_PREFIX + module)
        session = rebuilt(root, store, module, tree, commits)
        store.save(session, session.created_at)
        tasks = list(session.tree.tasks)
        done = sum(t.state is State.COMPLETE for t in tasks)
        yield (
            f"{module}: rebuilt session {session.id}, {done} of {len(tasks)} tasks complete; "
            f"read its specification, then approve it again: lopen approve {module} --run"
        )


def _tree(plan: Path) -> TaskTree | None:
    """Return the task tree of a plan; None unless it is an ordinary file of limited size."""
    if plan.is_symlink() or not plan.is_file() or plan.stat().st_size > MAX_BYTES:
        return None
    return parse_plan(plan.read_text("utf-8", errors="replace"))


def rebuilt(
    root: Path, store: SessionStore, module: str, tree: TaskTree, commits: list[CommitInfo]
) -> Session:
    """Return a session that waits for approval; tasks with a commit are complete."""
    done = {c.task: c for c in commits if c.task}
    for task in tree.tasks:
        found = done.get(task.id)
        state = State.COMPLETE if found else State.PENDING
        tree = tree.with_task(replace(task, state=state, commit=found.sha if found else None, base=None))
    tree = TaskTree(tuple(replace(c, broken_down=bool(c.tasks), verified=False) for c in tree.components))
    now = datetime.now(UTC)
    # Anybody can write a trailer, and file names contain this id.
    ids = [c.session for t in tree.tasks if (c := done.get(t.id)) and is_session_id(c.session, module)]
    criteria = _criteria(root, module)
    # If the specification differs from the planned one, step 3 is repeated.
    same = set(criteria) == {i for c in tree.components for i in c.criteria}
    return Session(
        ids[-1] if ids else store.new_id(module, now),
        module,
        now,
        status="paused",
        plan=Plan(
            dependencies=(),
            tree=tree,
            criteria=criteria,
            original_scope=len(criteria) + len(tree.components) if same and criteria else None,
            planned_tasks=sum(not t.added for t in tree.tasks),
        ),
    )


def _commits(root: Path, branch: str) -> list[CommitInfo]:
    """Return lopen's commits on the module's branch, else from HEAD; empty without a repository."""
    try:
        repository = Repository.open(root, clock=SystemClock())
        return repository.session_commits(within=branch if repository.branch_tip(branch) else "HEAD")
    except LopenError:
        return []


def _criteria(root: Path, module: str) -> dict[str, str]:
    try:
        return {c.id: c.text for c in load_specification(spec_path(root, module), module=module).criteria}
    except LopenError:
        return {}
