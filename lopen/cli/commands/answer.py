"""`lopen answer`: answer the model's pending question."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode
from lopen.cli.command import command
from lopen.cli.parameters import SessionArgument

TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="Your answer.")]


@command
def answer(context: CommandContext, session: SessionArgument, text: TextArgument) -> ExitCode:
    """Answer the question that a session waits for. Until `lopen resume`, a new answer replaces it."""
    from lopen.application import decisions
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person

    require_person("answer", context.root)
    question = decisions.answer(context, open_store(context), session, text)
    instead = "" if question.answer is None else f" (replaces: {question.answer})"
    context.say(f"answered: {question.text}{instead}")
    context.emit("answered", session=session, question=question.text, answer=text)
    context.say(f"next: lopen resume {session}")
    return ExitCode.OK
