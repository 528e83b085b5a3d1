"""The files that a task builds on, for its prompt: whole as far as the size allows, then outlines, then names."""

from __future__ import annotations

from dataclasses import dataclass

from lopen.git.trees import GITLINK
from lopen.loop.context import SessionContext
from lopen.loop.judged_work import is_own_document, kind
from lopen.prompts.parts import Part
from lopen.workflow.session import Session
from lopen.workspace.outlines import outline
from lopen.workspace.protection import ToolRefused

WHOLE_CHARS = 60_000  # of the files given whole, together
UNNAMED_CHARS = 20_000  # of those that the task does not name, where it names any
OUTLINE_CHARS = 20_000  # of the outlines
LISTED = 50  # files that are only named
LOOKED_AT = 200  # files that are read for the prompt
_ORDER = {"source": 0, "test": 1, "other": 2}


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The parts of a prompt that show files, and the paths of those that are shown whole."""

    parts: tuple[Part, ...] = ()
    whole: tuple[str, ...] = ()


def task_files(context: SessionContext) -> TaskFiles:
    """Return the present content of the files that the task in progress names or its component's work changed."""
    session = context.record.journal.session
    if session.task is None:
        return TaskFiles()
    whole: dict[str, Part] = {}
    outlines, named = [], []
    room, unnamed_room, outline_room = WHOLE_CHARS, WHOLE_CHARS, OUTLINE_CHARS
    paths = list(dict.fromkeys((*session.task.files, *_changed(context, session))))
    for path in paths[:LOOKED_AT]:
        text = _text(context, path)
        if text is None:
            continue
        wanted = path in session.task.files
        if wanted:
            unnamed_room = min(unnamed_room, UNNAMED_CHARS)
        if len(text) <= (room if wanted else min(room, unnamed_room)):
            room -= len(text)
            unnamed_room -= 0 if wanted else len(text)
            whole[path] = _part(f"File: {path}", text)
            continue
        shown = outline(path, text) if outline_room > 0 else None
        if shown and len(shown) <= outline_room:
            outline_room -= len(shown)
            outlines.append(_part(f"Outline of {path} ({len(text)} characters)", shown))
        else:
            outline_room = 0  # small files come first: what follows would hardly fit
            named.append(f"{path} ({len(text)} characters)")
    named += paths[LOOKED_AT:]
    if len(named) > LISTED:
        named[LISTED:] = [f"and {len(named) - LISTED} more"]
    rest = _part("Files of this component that are not shown", "\n".join(named))
    return TaskFiles((*whole.values(), *outlines, rest), tuple(whole))


def _part(title: str, text: str) -> Part:
    return Part(title, text, 4, data=True, rest="read_file gives it")


def _text(context: SessionContext, path: str) -> str | None:
    """The text of a file; None where it is missing, protected or not text."""
    try:
        return context.project.workspace.text(path)
    except ToolRefused:
        return None


def _changed(context: SessionContext, session: Session) -> list[str]:
    """The files that differ from the tree the component began with: source before tests before the rest, small first."""
    component = session.tree.component(session.selected or "")
    if component is None or component.base is None:
        return []
    repository = context.project.repository
    changes = repository.changes(component.base, context.project.verifier.tree())
    there = {c.path: c.after for c in changes if c.after and c.mode_after != GITLINK}
    sizes = repository.blob_sizes(there.values())
    paths = [p for p in there if not is_own_document(p, session.module)]
    return sorted(paths, key=lambda p: (_ORDER[kind(p)], sizes.get(there[p], 0), p))
