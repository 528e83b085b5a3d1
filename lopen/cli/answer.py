"""`lopen answer`: the answer to the model's one pending question."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from lopen.cli.completion import SessionArgument
from lopen.cli.context import CommandContext, command
from lopen.errors import ExitCode, LopenError

TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="Your answer.")]


@command
def answer(context: CommandContext, session: SessionArgument, text: TextArgument) -> ExitCode:
    """Answer the question a session waits with; then `lopen resume` goes on."""
    from lopen.cli.person import require_person
    from lopen.cli.store import alone, open_store

    require_person("answer", context.root)
    store = open_store(context)
    with alone(context.root, store.load(session).module):
        found = store.load(session)
        if found.question is None or found.question.answer is not None:
            raise LopenError(f"{session} has no question open", hint=f"lopen status {found.module}")
        question = replace(found.question, answer=text)
        note = f"You asked: {question.text} The person answered: {text}"
        store.save(replace(found, question=question, notes=(*found.notes, note)), datetime.now(UTC))
    context.say(f"answered: {question.text}")
    context.emit("answered", session=session, question=question.text, answer=text)
    context.say(f"go on with: lopen resume {session}")
    return ExitCode.OK
