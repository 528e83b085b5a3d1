"""Rebuilding sessions after a database was lost: as far as git trailers and `plan.md` allow.

See docs/reference/storage.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from lopen.base.clock import SystemClock
from lopen.base.errors import LopenError
from lopen.documents.plan_file import parse_plan
from lopen.documents.source import MAX_BYTES
from lopen.documents.spec import is_module_name, load_specification, spec_path
from lopen.git.commits import CommitInfo
from lopen.git.repository import Repository
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session, is_session_id
from lopen.workflow.task_tree import State, TaskTree


def rebuild(root: Path, store: SessionStore, branch_prefix: str) -> Iterator[str]:
    """Sessions from the plans that lie there, with completed tasks from the commits; a line each on what was found.

    Approvals are not rebuilt: a person opens the gate again.
    """
    for plan in sorted((root / ".lopen" / "modules").glob("*/plan.md")):
        module = plan.parent.name
        if not is_module_name(module):  # whoever wrote it, lopen did not
            continue
        tree = _tree(plan)
        if tree is None or not tree.components:
            yield f"{module}: its plan cannot be read; a new run plans it again"
            continue
        commits = _commits(root, branch_prefix + module)
        session = rebuilt(root, store, module, tree, commits)
        store.save(session, session.created_at)
        tasks = list(session.tree.tasks)
        done = sum(t.state is State.COMPLETE for t in tasks)
        yield (
            f"{module}: rebuilt session {session.id}, {done} of {len(tasks)} tasks complete; "
            f"read its specification and approve it again: lopen approve {module} --run"
        )


def _tree(plan: Path) -> TaskTree | None:
    """The work that a plan holds; None for anything but a plain file of bearable size."""
    if plan.is_symlink() or not plan.is_file() or plan.stat().st_size > MAX_BYTES:
        return None
    return parse_plan(plan.read_text("utf-8", errors="replace"))


def rebuilt(
    root: Path, store: SessionStore, module: str, tree: TaskTree, commits: list[CommitInfo]
) -> Session:
    """A session that stands before the gate, its tasks complete where their commits are."""
    done = {c.task: c for c in commits if c.task}
    for task in tree.tasks:
        found = done.get(task.id)
        state = State.COMPLETE if found else State.PENDING
        tree = tree.with_task(replace(task, state=state, commit=found.sha if found else None, base=None))
    tree = TaskTree(tuple(replace(c, broken_down=bool(c.tasks), verified=False) for c in tree.components))
    now = datetime.now(UTC)
    # Anybody can write a trailer, and files are called by this id.
    ids = [c.session for t in tree.tasks if (c := done.get(t.id)) and is_session_id(c.session, module)]
    criteria = _criteria(root, module)
    # Where the specification is not the one that was planned, step 3 is recorded again.
    same = set(criteria) == {i for c in tree.components for i in c.criteria}
    return Session(
        ids[-1] if ids else store.new_id(module, now),
        module,
        now,
        status="paused",
        dependencies=(),
        tree=tree,
        criteria=criteria,
        original_scope=len(criteria) + len(tree.components) if same and criteria else None,
        planned_tasks=sum(not t.added for t in tree.tasks),
    )


def _commits(root: Path, branch: str) -> list[CommitInfo]:
    """lopen's commits on the module's branch; from HEAD where it is gone, none where there is no repository."""
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
