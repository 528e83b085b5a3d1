"""Opening a project's queue, and the person's git, over which workers exchange code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.application.open_store import NOWHERE, newest_session, now, open_store
from lopen.application.workplaces import clone_of, workplace_of
from lopen.core.errors import LopenError
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.git.errors import GitError
from lopen.git.refs import BRANCH_PREFIX, HEADS
from lopen.limits.records import decoded
from lopen.queue.shared import EXPIRED, LEASE_S, UNDER_WAY, BuildOrder, SharedQueue
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.store.archives import archive_session, archived_sessions
from lopen.store.changed_rows import restore
from lopen.store.database import Database
from lopen.store.folder import module_lock, require_free, state_folder
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.session import Approval

if TYPE_CHECKING:
    from lopen.queue.engine import Executions

GIT_S = 300.0
LEAST_FREE = 32 * 1024**2  # bytes in the cache folder, without which no build goes on


def project_id(root: Path) -> str:
    """Return what all clones of a project have in common: its first commits."""
    try:
        roots = git(root, "rev-list", "--max-parents=0", "HEAD").split()
    except GitError as error:
        raise LopenError(
            f"{root} is not in a git repository with a commit; the queue knows a project by its first commit",
            hint="change to a clone of the project, or name one: lopen -C FOLDER",
        ) from error
    return content_hash(" ".join(sorted(roots)))[:12]


def remote_address(context: CommandContext) -> str:
    """Return the address that code travels over: the remote's, or the project itself where it has no such remote."""
    with suppress(GitError):
        return git(context.root, "remote", "get-url", context.load().settings.queue.remote)
    return str(context.root)


def git(folder: Path, *arguments: str) -> str:
    """Run the person's git, with the credentials that it has; return its output. No hook of the folder runs.

    Raises:
        GitError: git failed, or took too long.
    """
    try:
        ran = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_S,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took more than {GIT_S:.0f} s", hint=f"in {folder}") from error
    if ran.returncode:
        raise GitError(f"git {arguments[0]}: {ran.stderr.strip()}", hint=f"in {folder}")
    return ran.stdout.strip()


def disk_is_full() -> bool:
    """Return True if the disk of the cache folder, where builds have their clones, has no room left."""
    folder = required(cache_folder())
    folder.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(folder).free < LEAST_FREE


@dataclass
class OpenQueue:
    """A project's queue: its tables and its executions."""

    shared: SharedQueue
    executions: Executions

    def sessions_before(self, store: SessionStore, module: str) -> list[str]:
        """Return the ids of the module's sessions here and in its last checkpoint: none of these is a new build's."""
        kept = (body for kind, body in self.shared.checkpointed(module) if kind == "sessions")
        old = (each.session for each in archived_sessions(store.database) if each.module == module)
        return sorted({*store.ids(module=module), *old, *(json.loads(body)["id"] for body in kept)})

    def begin_ready(self) -> None:
        """Give each order whose earlier modules are complete an execution."""
        for placed in self.shared.ready():
            self.executions.add(placed)

    def take_over_dead(self, *, whole: bool) -> Iterator[str]:
        """Give the builds of dead workers new executions; yield their modules.

        `whole`: read the whole queue, for workers that died before they had the lease, or behind the build's last word.
        """
        executions = self.executions.open() if whole else {}
        for placed in self.shared.placed(only=UNDER_WAY if whole else EXPIRED):
            waits = executions.pop(self.executions.id(placed), "")
            silent_s = LEASE_S if placed.state == "queued" else 0.0
            if not waits and placed.left_s < -silent_s and (again := self.shared.queue(placed)) is not None:
                self.executions.cancel(self.executions.id(placed))
                self.executions.add(again)
                yield placed.order.module
        for execution in executions:  # its order has ended, or has another one
            self.executions.cancel(execution)

    def close(self) -> None:
        """Close all connections."""
        self.executions.close()
        self.shared.close()


def open_shared(context: CommandContext) -> SharedQueue:
    """Open the tables of the queue that the settings name, for a process that orders and executes nothing."""
    url = context.load().settings.queue.url or f"sqlite:///{state_folder(context.root) / 'queue.db'}"
    return SharedQueue(url, project_id(context.root))


def open_queue(context: CommandContext) -> OpenQueue:
    """Open the queue that the settings name."""
    from lopen.queue.engine import Executions  # takes a second

    shared = open_shared(context)
    return OpenQueue(shared, Executions(shared.url, shared.project))


def approve_again(store: SessionStore, order: BuildOrder) -> None:
    """Seal the order's approval here, also in the session that has it."""
    text = order.documents.get(f"specs/{order.module}/SPECIFICATION.md", "")
    approval = store.approve(order.module, decoded(Approval, order.approval), text)
    session = store.latest(module=order.module)
    if session is not None:
        store.save(changes.renew_approval(session, approval), now())


def hand_over(context: CommandContext, store: SessionStore, module: str, *, new: bool) -> None:
    """Archive the unfinished session of a module that is ordered: a module is built here or by workers, never by both.

    Raises:
        LopenError: it is being built here, or (unless `new`) has begun a task, for which workers would pay again.
    """
    require_free(context.root, module)
    own = store.latest(module=module, unfinished=True)
    if own is None:
        return
    if not new and any(task.base or task.commit for task in own.tree.tasks):
        raise LopenError(
            f"{own.id} has begun to build {module} here, and workers would begin anew",
            hint=f"to go on here: lopen resume {own.id}, or to begin anew: lopen queue add {module} --new",
        )
    with module_lock(context.root, module):
        if clone_of(context.root, module) is not None:
            place = workplace_of(context, store, own, KnownSecrets(context.root, os.environ))
            place.publish_backup(place.repository.backup(own.id))
            place.close()
        archive_session(store, own.id, now(), unfinished=True)
    context.say(f"{own.id}, which waited here, is archived: workers build {module}, from its beginning")


def bring_home(context: CommandContext, module: str | None, *, drives: bool = False) -> None:
    """Archive the sessions of builds that are complete here, with their branches; `module`: that of one alone.

    Raises:
        LopenError: the module is not complete, and no session of this project's own tells anything of it, or a command
            `drives` it.
    """
    with closing(open_shared(context)) as shared:
        for placed in shared.placed(module):
            name, session = placed.order.module, placed.told.get("session")
            store = open_store(context, new=True)
            own = newest_session(store, name)
            here = {*store.ids(), *(archived.session for archived in archived_sessions(store.database))}
            if placed.state != "complete" and (own is None or drives) and module is not None:
                worker = f" on {placed.worker}" if placed.worker else ""
                instead = f"; to build it here: lopen queue remove {name}" if drives else ""
                raise LopenError(
                    f"{name} is in the queue, not complete: {placed.state}{worker}",
                    hint=f"lopen queue list, and its log: lopen log {name}{instead}",
                )
            if placed.state != "complete" or session in here:  # what was begun here since stays as it is
                continue
            if own is not None and not own.finished:
                try:
                    hand_over(context, store, name, new=False)
                except LopenError:  # the session here goes further than what was ordered elsewhere, or runs
                    continue
            branch, address = HEADS + BRANCH_PREFIX + name, remote_address(context)
            if address != str(context.root):
                git(context.root, "fetch", "--quiet", "--no-tags", address, f"{branch}:{branch}")
            kept = SessionStore(Database(NOWHERE), archives=store.archives)
            rows = shared.checkpointed(name)
            restore(kept.database, rows)
            restore(store.database, (r for r in rows if r[0] == "budgets" and f'"module:{name}"' in r[1]))
            if store.approval(name) is None:
                approve_again(store, placed.order)
            for older in store.ids(module=name):
                archive_session(store, older, now(), unfinished=True)
            archive_session(kept, str(session), now())
            [row] = kept.database.connection.execute("SELECT * FROM archived")
            store.database.write("INSERT OR REPLACE INTO archived VALUES (?, ?, ?, ?, ?, ?)", tuple(row))
            context.say(f"{name} was built by a worker: its branch and its session are here now")


def kept_sessions(context: CommandContext, module: str) -> SessionStore | None:
    """Return the sessions of a module as of its last checkpoint, wherever it is built; None if it has none."""
    store = SessionStore(Database(NOWHERE))
    with closing(open_shared(context)) as shared:
        restore(store.database, shared.checkpointed(module))
    return store if store.ids() else None
