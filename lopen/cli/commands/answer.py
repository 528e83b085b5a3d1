"""`lopen answer`: answer the model's pending question."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError, WrongUsage
from lopen.cli.command import command
from lopen.cli.parameters import SessionArgument

if TYPE_CHECKING:
    from lopen.workflow.session import Question

TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="Your answer.")]


@command
def answer(context: CommandContext, session: SessionArgument, text: TextArgument) -> ExitCode:
    """Answer the question that a session waits for. Until `lopen resume`, a new answer replaces it."""
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person
    from lopen.base.events import QuestionAsked
    from lopen.sandbox.known_secrets import KnownSecrets
    from lopen.storage.lock import module_lock

    require_person("answer", context.root)
    store = open_store(context)
    with module_lock(context.root, store.load(session).module):
        found = store.load(session)
        question = found.question
        if question is None:  # a run closes the question when it uses the answer
            raise LopenError(f"{session} has no open question", hint=f"lopen status {found.module}")
        if not text.strip():
            raise _empty(session, question)
        answered = replace(question, answer=text)
        notes = tuple(n for n in found.notes if question.answer is None or n != _note(question))
        pause = None if found.pause is not None and found.pause.kind == "question" else found.pause
        event = QuestionAsked(question.text, question.options, question.default, text)
        body = KnownSecrets(context.root, os.environ).redact(event.body())
        now = datetime.now(UTC)
        with store.database.transaction():
            store.save(replace(found, question=answered, notes=(*notes, _note(answered)), pause=pause), now)
            store.append_event(session, now, event.name, body)
    instead = "" if question.answer is None else f" (replaces: {question.answer})"
    context.say(f"answered: {question.text}{instead}")
    context.emit("answered", session=session, question=question.text, answer=text)
    context.say(f"next: lopen resume {session}")
    return ExitCode.OK


def _note(question: Question) -> str:
    """Return the note on the answer for the model's next prompt."""
    return f"You asked: {question.text} The person answered: {question.answer}"


def _empty(session: str, question: Question) -> WrongUsage:
    default = question.default
    hint = f"to use the default: lopen answer {session} {shlex.quote(default)}" if default.strip() else ""
    return WrongUsage(f"the answer is empty; the question is: {question.text}", hint=hint)
