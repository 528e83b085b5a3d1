"""Opening a project's queue, and the person's git, over which workers exchange code."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.application.open_store import NOWHERE
from lopen.core.errors import LopenError
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.git.errors import GitError
from lopen.queue.checkpoint import restore
from lopen.queue.shared import LEASE_S, SharedQueue
from lopen.store.database import Database
from lopen.store.folder import state_folder
from lopen.store.sessions import SessionStore

if TYPE_CHECKING:
    from lopen.queue.engine import Executions

GIT_S = 300.0
LEAST_FREE = 32 * 1024**2  # bytes in the cache folder, without which no build goes on


def project_id(root: Path) -> str:
    """Return what all clones of a project have in common: its first commits."""
    roots = git(root, "rev-list", "--max-parents=0", "HEAD").split()
    return content_hash(" ".join(sorted(roots)))[:12]


def remote_address(root: Path, remote: str) -> str:
    """Return the address that code travels over: the remote's, or the project itself where it has no such remote."""
    with suppress(LopenError):
        return git(root, "remote", "get-url", remote)
    return str(root)


def git(folder: Path, *arguments: str) -> str:
    """Run the person's git, with the credentials that it has; return its output. No hook of the folder runs.

    Raises:
        GitError: git failed.
    """
    ran = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=GIT_S,
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
    )
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

    def begin_ready(self) -> None:
        """Give each order whose earlier modules are complete an execution."""
        for placed in self.shared.ready():
            self.executions.add(placed)

    def take_over_dead(self, *, claimed: bool) -> Iterator[str]:
        """Give the builds of dead workers new executions; yield their modules.

        `claimed`: also those of workers that died between their claim and their lease, which reads the whole queue.
        """
        lost = self.shared.placed(state="running", expired_s=0.0)
        if claimed:
            unclaimed = self.executions.unclaimed()
            queued = self.shared.placed(state="queued", expired_s=LEASE_S)
            lost += [placed for placed in queued if self.executions.id(placed) not in unclaimed]
        for placed in lost:
            if (again := self.shared.queue(placed)) is not None:
                self.executions.cancel(self.executions.id(placed))
                self.executions.add(again)
                yield placed.order.module
        if claimed:  # a worker that died behind the last word of its build has not ended the execution
            left = [*self.shared.placed(state="running"), *self.shared.placed(state="queued")]
            for execution in {*self.executions.claimed()} - {self.executions.id(each) for each in left}:
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


def kept_sessions(context: CommandContext, module: str) -> SessionStore | None:
    """Return the sessions of a module as of its last checkpoint, wherever it is built; None if it has none."""
    with closing(open_shared(context)) as shared:
        rows = shared.checkpointed(module)
    if not any(kind == "sessions" for kind, _ in rows):
        return None
    store = SessionStore(Database(NOWHERE))
    restore(store.database, rows)
    return store
