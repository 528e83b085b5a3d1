"""Parameters that routes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request

from lopen.server.served import ServedProject, ServedProjects

T = TypeVar("T")
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
