"""Routes of projects, modules and sessions. Answers are the objects that the commands print with `--json`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import Field

from lopen import __version__
from lopen.application import decisions
from lopen.application.command_context import CommandContext
from lopen.application.detached import start_detached
from lopen.application.open_store import store_with
from lopen.application.reports import (
    TaskDetails,
    archived_row,
    built_session,
    details,
    module_object,
    no_details,
    read_session,
)
from lopen.core.errors import ExitCode, LopenError, StoreUnreachable
from lopen.limits.admin_actions import NoSuch
from lopen.server.served import (
    Chosen,
    Limit,
    Offset,
    OpenProject,
    Order,
    Said,
    ServedProject,
    ServedProjects,
    Text,
    page,
)
from lopen.specification.modules import find_modules
from lopen.store.archives import archived_sessions
from lopen.store.folder import is_worked_on
from lopen.workflow.pauses import Question

routes = APIRouter(tags=["sessions"])
SessionId = Annotated[str, Path(max_length=255, description="As `GET /api/sessions` lists it.")]
ModuleName = Annotated[str, Path(max_length=255, description="The name of its folder in specs/.")]
LONGEST_REASON = 2_000
TaskId = Annotated[str, Path(max_length=255, description="As a session's components list it.")]


class ConfirmRequest(Order):
    """A confirmation."""

    note: Annotated[Text, Field(description="Told to the model.")] = ""


class AnswerRequest(Order):
    """The answer to the model's question."""

    text: Said


class TellRequest(Order):
    """A person's words for the model."""

    text: Said


class SkipRequest(Order):
    """A task that a person gives up."""

    reason: Said
    keep: Annotated[bool, Field(description="Leave its uncommitted work for the next task.")] = False


@routes.get("/healthz")
async def healthz() -> dict[str, Any]:
    """Say that the server answers."""
    return {"status": "ok", "version": __version__}


@routes.get("/api/projects")
async def list_projects(request: Request) -> dict[str, Any]:
    """List the projects of this server."""
    projects: ServedProjects = request.app.state.projects
    found = [{"project": p.name, "root": str(p.root)} for p in projects]
    return {"projects": found, "total": len(found)}


@routes.get("/api/modules")
async def list_modules(project: Chosen, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """List modules that have a specification."""

    def work(opened: OpenProject) -> dict[str, Any]:
        names = find_modules(opened.root)
        shown, counted = page(names, offset, limit), {}
        with suppress(StoreUnreachable), opened.limits() as limits:  # modules are shown without it too
            for name in shown:
                for budget in limits.budgets(f"module:{name}"):
                    counted[name] = budget
        found = [
            module_object(opened.root, opened.store, name, counted.get(name))
            | {"worked_on": is_worked_on(opened.root, name)}
            for name in shown
        ]
        return {"modules": found, "total": len(names)}

    return await project.run(work)


@routes.get("/api/sessions")
async def list_sessions(project: Chosen, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """List sessions, newest first; archived ones last."""
    found, total = await project.run(listed_sessions, offset, limit)
    return {"sessions": found, "total": total}


def listed_sessions(opened: OpenProject, offset: int, limit: int) -> tuple[list[dict[str, Any]], int]:
    """Return sessions as rows of a list, and the number of all."""
    ids, old = opened.store.ids(), archived_sessions(opened.store.database)
    wanted = page(ids, offset, limit)
    rest = page(old, max(0, offset - len(ids)), limit - len(wanted))
    found = [read_session(opened.root, opened.store, s).row() for s in opened.store.readable(wanted)]
    return [*found, *map(archived_row, rest)], len(ids) + len(old)


@routes.get("/api/sessions/{session_id}")
async def get_session(project: Chosen, session_id: SessionId) -> dict[str, Any]:
    """Return a session with its task tree, also an archived one."""

    def work(opened: OpenProject) -> dict[str, Any]:
        store = store_with(opened.store, session_id)
        session = store.load(session_id)
        question = session.pause if isinstance(session.pause, Question) else None
        return read_session(opened.root, store, session).to_json() | {
            "question": None if question is None else asdict(question)
        }

    return await project.run(work)


@routes.get("/api/modules/{module}/tasks/{task}")
async def get_task(project: Chosen, module: ModuleName, task: TaskId) -> dict[str, Any]:
    """Return a task: its description, diff, verifications, verdict, tokens and cost."""

    def work(opened: OpenProject) -> dict[str, Any]:
        found = details(opened.context, opened.store, task)
        if not isinstance(found, TaskDetails) or found.module != module:
            raise no_details(opened.context, opened.store, task)
        return found.fields() | {"verifications": [asdict(v) | {"name": v.name} for v in found.verifications]}

    return await project.run(work)


@routes.post("/api/sessions/{session_id}/confirm")
async def confirm(project: Chosen, session_id: SessionId, order: ConfirmRequest) -> dict[str, Any]:
    """Let a session continue that asks for confirmation, or that a person paused."""
    pause = await project.decide(decisions.confirm, session_id, order.note)
    return _decided(session_id, f"confirmed: {pause.message}")


@routes.post("/api/sessions/{session_id}/answer")
async def answer(project: Chosen, session_id: SessionId, order: AnswerRequest) -> dict[str, Any]:
    """Answer the model's question. Until the session continues, a new answer replaces it."""
    question, taken = await project.decide(decisions.answer, session_id, order.text)
    said = f"answered: {question.text}{question.taken_as(question.chosen(order.text))}"
    return _decided(session_id, said, done=not taken)


@routes.post("/api/sessions/{session_id}/tell")
async def tell(project: Chosen, session_id: SessionId, order: TellRequest) -> dict[str, Any]:
    """Tell the model something with the session's next turn; `done` where no process works on the session."""
    running = await project.decide(decisions.tell, session_id, order.text)
    return _decided(session_id, "the model hears it with its next turn", done=not running)


@routes.post("/api/sessions/{session_id}/pause")
async def pause(project: Chosen, session_id: SessionId) -> dict[str, Any]:
    """Stop a running session at its next safe point. It ends with exit code 3."""
    await project.decide(decisions.ask_to_pause, session_id)
    return _decided(session_id, "stops at its next safe point", done=False)


@routes.post("/api/sessions/{session_id}/resume")
async def resume(project: Chosen, session_id: SessionId) -> dict[str, Any]:
    """Continue a session that does not run, in a process of its own that outlives this server."""

    def work(opened: OpenProject) -> str:
        session = opened.store.load(session_id)
        if session.finished:
            raise LopenError(f"{session_id} is complete", hint=f"lopen status {session_id}")
        return session.module

    return await _started(project, await project.run(work), "resume", session_id)


@routes.post("/api/modules/{module}/run")
async def run(project: Chosen, module: ModuleName) -> dict[str, Any]:
    """Build an approved module, in a process of its own that outlives this server."""

    def work(opened: OpenProject) -> None:
        if module not in find_modules(opened.root):
            raise NoSuch(f"there is no module {module}", hint="GET /api/modules lists them")
        if opened.store.approval(module) is None:
            raise LopenError(f"{module} is not approved", hint=f"lopen approve {module}")
        if built_session(opened.root, opened.store, module):
            raise LopenError(f"{module} is complete", hint=f"to build it anew: lopen run {module} --new")

    await project.run(work)
    return await _started(project, module, "run", module)


async def _started(project: ServedProject, module: str, *arguments: str) -> dict[str, Any]:
    """Start a command that drives the module; return when its first iteration begins, or when it has ended."""
    found = CommandContext(project.root)
    begun = await asyncio.to_thread(
        start_detached, found, module, (*arguments, "-C", str(project.root), "--no-color")
    )
    failed = begun.code not in (None, ExitCode.OK, ExitCode.PERSON_NEEDED)

    def work(opened: OpenProject) -> dict[str, Any]:
        session = opened.store.latest(module=module)
        still = read_session(opened.root, opened.store, session).waits if session is not None else None
        if failed and still is not None and still.kind == "failed" and still.message:
            raise LopenError(still.message, hint=still.mend)
        if failed:
            raise LopenError(begun.printed[-LONGEST_REASON:], hint=f"the whole output: {begun.output}")
        state = "runs" if begun.code is None else "is complete" if begun.code == ExitCode.OK else "waits"
        ended = still if begun.code == ExitCode.PERSON_NEEDED else None
        return {
            "session": session.id if session is not None else "",
            "message": f"{module} {state}: {ended.message}" if ended is not None else f"{module} {state}",
            "done": True,
            "command": ended.command if ended is not None else "",
        }

    return await project.run(work)


@routes.post("/api/tasks/{task}/skip")
async def skip(project: Chosen, task: TaskId, order: SkipRequest) -> dict[str, Any]:
    """Skip a task; its criteria stay open, and the report says so."""
    session, done = await project.decide(decisions.skip, task, order.reason, keep=order.keep)
    found = session.tree.task(task)
    aside = f"; its work is put aside in {found.aside}" if found and found.aside else ""
    return _decided(session.id, f"skipped: {found.name if found else task}{aside}", done=done)


def _decided(session_id: str, message: str, *, done: bool = True) -> dict[str, Any]:
    """Return the effect of a decision; a skip of an open task waits for the running session's next safe point."""
    command = f"lopen resume {session_id}" if done else ""
    return {"session": session_id, "message": message, "done": done, "command": command}
