"""`lopen answer`, `confirm`, `skip` and `pause`: a person decides on a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import (
    NO_REASON,
    OptionalSession,
    ReasonOption,
    TaskArgument,
    modules,
)
from lopen.core.errors import ExitCode, WrongUsage

if TYPE_CHECKING:
    from lopen.workflow.session import Session

# One argument is the text; of several, the first is the module (or session), the others are the text's words
OptionalOwner = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE",
        show_default=False,
        help="Module, or session id; TEXT alone where only one fits.",
        autocompletion=modules,
    ),
]
OptionalText = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="In your words.", show_default=False)
]
KeepOption = Annotated[
    bool,
    typer.Option(
        "--keep", help="Leave the task's uncommitted work for the next task, whose commit then holds it."
    ),
]
NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="Note for the model's next prompt.")]


@command
def answer(context: CommandContext, wanted: OptionalOwner = None, words: OptionalText = None) -> ExitCode:
    """Answer the model's question, also while a terminal shows it. Until a run takes it, a new answer replaces it."""
    from lopen.application import decisions
    from lopen.application.meant import the_session
    from lopen.application.open_store import open_store
    from lopen.workflow.pauses import Question

    store = open_store(context)
    named, text = _named_text(wanted, words)
    asks = "waits for an answer"
    session = the_session(context, store, named, lambda found: isinstance(found.pause, Question), asks).id
    question, taken = decisions.answer(context, store, session, text)
    instead = "" if question.answer is None else f" (replaces: {question.answer})"
    text = question.chosen(text)
    context.say(f"answered: {question.text} {text}{question.taken_as(text)}{instead}")
    context.emit("answered", session=session, question=question.text, answer=text)
    context.say(
        f"the run takes it and goes on: lopen attach {session}" if taken else f"next: lopen resume {session}"
    )
    return ExitCode.OK


def _named_text(wanted: str | None, words: list[str] | None) -> tuple[str | None, str]:
    if wanted is None:
        raise WrongUsage(
            "Missing argument 'TEXT'", hint="give it in your words, after the module where several wait"
        )
    return (wanted, " ".join(words)) if words else (None, wanted)


@command
def confirm(context: CommandContext, session: OptionalSession = None, note: NoteOption = "") -> ExitCode:
    """Confirm what a paused session asks: `lopen resume` then continues it.

    This accepts finished work of which the judge could not tell whether it passes, or lets the session go on after
    attempts that were not accepted, with added tasks, or with most of the budget used.
    """
    from lopen.application import decisions
    from lopen.application.meant import the_session
    from lopen.application.open_store import open_store

    store = open_store(context)

    def asks(found: Session) -> bool:
        return found.pause is not None and found.pause.kind in ("confirmation", "person")

    session = the_session(context, store, session, asks, "waits for a confirmation").id
    pause = decisions.confirm(context, store, session, note)
    context.say(f"confirmed: {pause.message}")
    context.emit("confirmed", session=session, pause=pause.kind, note=note)
    context.say(f"next: lopen resume {session}")
    return ExitCode.OK


@command
def skip(
    context: CommandContext, task: TaskArgument, reason: ReasonOption = NO_REASON, keep: KeepOption = False
) -> ExitCode:
    """Skip a task. Its criteria stay open, and the report says so. A running session does it after its turn.

    What the task left uncommitted is put aside: lopen show shows it, lopen revert --undo brings task and work back.
    """
    from lopen.application import decisions
    from lopen.application.open_store import open_store
    from lopen.application.reports import held_criteria, present_verdicts
    from lopen.workflow.next_step import stuck

    store = open_store(context)
    session, done = decisions.skip(context, store, task, reason, keep=keep)
    found, owner = session.tree.task(task), session.tree.owner(task)
    assert found is not None
    held = held_criteria(session, present_verdicts(store, session))
    criteria = ", ".join(i for i in owner.open_criteria if i not in held) if owner else ""
    named = f"{task} ({found.name})"
    told = (
        f"skipped {named}"
        if done
        else f"{named} is skipped when its present attempt ends, unless it passes; until then lopen status says so"
    )
    context.say(f"{told}; open criteria: {criteria or 'none'}")
    if found.aside:
        context.say(f"its uncommitted work is put aside in {found.aside}; to see it: lopen show {task}")
    if done:
        context.say(f"to undo this: lopen revert {session.module} --undo")
    context.emit("skipped", session=session.id, task=task, reason=reason, done=done, backup=found.aside)
    if done and (halt := stuck(session)):
        context.say(halt.message)
    if done:
        context.say(f"next: {halt.command if halt else f'lopen resume {session.id}'}")
    return ExitCode.OK


@command
def tell(context: CommandContext, wanted: OptionalOwner = None, words: OptionalText = None) -> ExitCode:
    """Tell the model something with its next turn, in your words; also the judge is shown it.

    It is kept as a decision of yours. Where nothing runs, the next turn after `lopen resume` brings it.
    """
    from lopen.application import decisions
    from lopen.application.meant import the_session
    from lopen.application.open_store import open_store

    store = open_store(context)
    named, said = _named_text(wanted, words)
    found = the_session(context, store, named, lambda session: not session.finished, "is unfinished")
    running = decisions.tell(context, store, found.id, said)
    context.say(f"the model hears it with the next turn of {found.id}")
    context.emit("told", session=found.id, text=said, running=running)
    if not running:
        context.say(f"next: lopen resume {found.id}")
    return ExitCode.OK


@command
def pause(context: CommandContext, session: OptionalSession = None) -> ExitCode:
    """Stop a running session at its next safe point; it ends with exit code 3, and `lopen resume` continues it."""
    from lopen.application.decisions import ask_to_pause
    from lopen.application.open_store import one_session, open_store

    store = open_store(context)
    found = ask_to_pause(context, store, one_session(context, store, session).id)
    context.say(f"{found.id} stops at its next safe point, after the current turn")
    context.emit("pause_requested", session=found.id)
    context.say(f"to continue it: lopen resume {found.id}")
    return ExitCode.OK
