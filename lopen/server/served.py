"""The projects that a server serves. Each has one worker thread, which owns its database connection.

Routes share the parameters by which a request names a project and a part of a list.
The server reads what running sessions write, and acts through the functions that the commands use.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, StringConstraints

from lopen.application.command_context import CommandContext, has_queue
from lopen.application.open_store import NOWHERE, open_store, settled_limits
from lopen.application.overview import Reading
from lopen.core.errors import LopenError
from lopen.limits.store import LimitsStore
from lopen.settings.schema import Settings
from lopen.store.sessions import SessionStore

if TYPE_CHECKING:
    from lopen.queue.shared import Placed

T = TypeVar("T")
P = ParamSpec("P")
SETTINGS_FRESH_S = 2.0


class NoSuchProject(LopenError):
    """The server serves no project of that name."""


@dataclass
class OpenProject:
    """A project's state, for use in its worker thread."""

    context: CommandContext
    store: SessionStore
    settings: Settings
    reading: Reading | None = None

    def read(self) -> Reading:
        """Return a new reading of the project, which knows what the last one read."""
        last = self.reading or Reading(self.context, self.store, self.settings)
        self.reading = last.again(self.store, self.settings)
        return self.reading

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.context.root

    @property
    def has_queue(self) -> bool:
        """True where builds may be in a queue."""
        return has_queue(self.root, self.settings)

    def orders(self) -> list[Placed]:
        """Return the orders in the queue, none where there is no queue. Raises `StorageError`."""
        if not self.has_queue:
            return []
        from lopen.queue.opening import open_shared

        with closing(open_shared(self.context)) as shared:
            return shared.placed()

    @contextmanager
    def limits(self) -> Iterator[LimitsStore]:
        """Open the store of budgets and circuits."""
        with settled_limits(self.context, self.settings, self.store.database) as store:
            yield store


class ServedProject:
    """One project: its name in URLs, its folder, and the thread that does its work."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.root = root
        self.ending = False  # streams end as soon as they see it
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"project-{name}")
        self._open: OpenProject | None = None
        self._identity: tuple[int, int] | None = None
        self._settings_read = 0.0

    @property
    def has_queue(self) -> bool:
        """True where builds may be in a queue, as far as the project has been opened."""
        return self._open is not None and self._open.has_queue

    async def run(
        self, work: Callable[Concatenate[OpenProject, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Return what `work` returns, called with the open project in its worker thread."""

        def call() -> T:
            return work(self._opened(), *arguments, **named)

        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def run_limits(
        self, work: Callable[Concatenate[LimitsStore, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Return what `work` returns, called with the open store of budgets and circuits."""

        def call(opened: OpenProject) -> T:
            with opened.limits() as store:
                return work(store, *arguments, **named)

        return await self.run(call)

    async def decide(
        self,
        decision: Callable[Concatenate[CommandContext, SessionStore, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Return what a decision returns, taken on the open project's sessions."""
        return await self.run(lambda opened: decision(opened.context, opened.store, *arguments, **named))

    def _opened(self) -> OpenProject:
        """Open the state; again if its file was replaced, or created since."""
        identity = _identity(self.root / ".lopen" / "state.db")
        if (
            self._open is None
            or identity != self._identity
            or (identity is not None and self._open.store.database.path == NOWHERE)
        ):
            self._close()
            context = CommandContext(self.root)
            self._open = OpenProject(context, open_store(context), context.load().settings)
            self._identity = _identity(self.root / ".lopen" / "state.db")
            self._settings_read = monotonic()
        elif monotonic() - self._settings_read > SETTINGS_FRESH_S:
            self._open.settings = self._open.context.load().settings
            self._settings_read = monotonic()
        return self._open

    def _close(self) -> None:
        if self._open is not None:
            self._open.store.database.close()
            self._open = None

    async def close(self) -> None:
        """Close the database and end the worker thread."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
        self._executor.shutdown(wait=True)


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


class ServedProjects:
    """All projects of a server, by name; the first one is meant where a request names none."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._projects: dict[str, ServedProject] = {}
        for root in dict.fromkeys(roots):
            name, number = root.name or "project", 2
            while name in self._projects:
                name, number = f"{root.name}-{number}", number + 1
            self._projects[name] = ServedProject(name, root)

    def __iter__(self) -> Iterator[ServedProject]:
        return iter(self._projects.values())

    @property
    def several(self) -> bool:
        """True if an address has to name the project."""
        return len(self._projects) > 1

    def named(self, name: str | None) -> ServedProject:
        """Return the project of that name, the first one for None; raises `NoSuchProject`."""
        if name is None:
            return next(iter(self))
        if name not in self._projects:
            raise NoSuchProject(f"there is no project {name!r}", hint="GET /api/projects lists them")
        return self._projects[name]


MOST_SKIPPED = 10_000_000
MOST_LISTED = 1_000

ProjectName = Annotated[
    str | None,
    Query(max_length=255, description="Project of a server with several; the first one if left out."),
]
Offset = Annotated[int, Query(ge=0, le=MOST_SKIPPED, description="Entries to skip.")]
Limit = Annotated[int, Query(ge=1, le=MOST_LISTED, description="Most entries to return.")]


async def _chosen(request: Request, project: ProjectName = None) -> ServedProject:
    projects: ServedProjects = request.app.state.projects
    return projects.named(project)


Chosen = Annotated[ServedProject, Depends(_chosen)]


def page(entries: Sequence[T], offset: int, limit: int) -> Sequence[T]:
    """Return the part of a list that a request asks for."""
    return entries[offset : offset + limit]


Text = Annotated[str, StringConstraints(max_length=10_000)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]


class Order(BaseModel):
    """The body of a request that changes something; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")
