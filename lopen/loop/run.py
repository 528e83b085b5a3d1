"""The loop: a session driven step by step until it is complete or waits for a person. One iteration, one screen."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from lopen.core.errors import LopenError, PersonNeeded, Stopped, StorageError
from lopen.core.events import IterationEnded, Notice, SessionPaused, Waiting
from lopen.files.skipped_work import skip
from lopen.guardrails.pipeline import GUARDRAILS, Passed, events
from lopen.guardrails.pipeline import run as run_guardrails
from lopen.judge.judging import open_remarks
from lopen.judge.verdict import rejection
from lopen.loop.context import SessionContext
from lopen.loop.continuation import continue_conversation, continues
from lopen.loop.conversation import Conversation
from lopen.loop.facts import guard_facts
from lopen.loop.guidance import take_guidance
from lopen.loop.iteration import (
    advance_without_model,
    begin,
    bench_for,
    conversation_for,
    look,
    stored_conversation,
)
from lopen.loop.model_calls import CallPaused
from lopen.loop.project_context import remark_line
from lopen.loop.startup import completed, try_commands
from lopen.store.audit import last_failure
from lopen.store.journal import drop_request, requested, take_requests
from lopen.workflow import changes
from lopen.workflow.next_step import Outcome, decide, idle
from lopen.workflow.pauses import Halt, Pause, asks_now, interrupted, pause_asked_for
from lopen.workflow.session import Session
from lopen.workflow.steps import Step

SAVE_TRIES = 3
IDLE_ROUNDS = 2  # how often a run may come back to the same state without asking a model


def drive(context: SessionContext, until: frozenset[Step] = frozenset()) -> Session:
    """Iterate until the session is complete, waits, or stands in a step of `until`. Always saved.

    Raises `Stopped` after saving on a signal, and `PersonNeeded` where nothing can be saved: no model call
    is paid for that cannot be kept.
    """
    failures = 0
    since_model: list[Session] = []  # after each iteration since a model was asked last
    while True:
        try:
            session = iterate(context)
            failures = 0
        except StorageError as error:
            failures += 1
            if failures > SAVE_TRIES:
                raise unsaved(error) from error
            wait_for_storage(context, error)
            continue
        except Stopped:
            stopped(context)
            raise
        if session.finished:
            finish(context)
        if session.status != "running" or session.step in until:
            return session
        if since_model and since_model[-1].limits.iterations != session.limits.iterations:
            since_model.clear()
        since_model.append(session)
        if since_model.count(session) > IDLE_ROUNDS:
            return pause(context, idle(session))


def wait_for_storage(context: SessionContext, error: StorageError) -> None:
    """Try until everything can be saved again; `PersonNeeded` where it cannot."""
    for n in range(1, SAVE_TRIES + 1):
        context.clock.sleep(0.25 * 2**n)  # a full disk or a busy database says nothing when it is well again
        try:
            context.record.journal.save(context.record.journal.reload())
            context.record.write_plan()
        except StorageError as again:
            error = again
        else:
            return
    raise unsaved(error) from error


def unsaved(error: StorageError) -> PersonNeeded:
    """Return the error for state that cannot be saved: the path, the system's message, and what to do."""
    return PersonNeeded(error.message, command="lopen resume", hint=error.hint)


def iterate(context: SessionContext) -> Session:
    """One iteration: observe and assess, do what needs no model, check, converse, decide, save."""
    if asked := heed(context):
        return pause(context, asked)
    try:
        needed = look(context) or advance_without_model(context)
    except CallPaused as held:  # the judge, at a boundary
        needed = held.pause
    if isinstance(needed, Pause):
        return pause(context, needed)
    if needed is None or context.record.journal.session.finished:
        return context.record.journal.session
    passed = check(context)
    if passed.pause is not None:
        return pause(context, passed.pause, passed.corrections)
    try_commands(context)
    talk = conversation(context, passed.corrections)
    if isinstance(talk, Pause):
        return pause(context, talk)
    number = context.record.journal.session.limits.iterations
    try:
        outcome = talk.run()
    finally:
        if not talk.counts.answers:
            give_back(context)
    return settle(context, number, outcome)


def heed(context: SessionContext) -> Pause | None:
    """Carry out a person's requests to the running session; return the pause that they asked for."""
    journal = context.record.journal
    if not requested(journal.database, journal.session.id):
        return None
    with journal.transaction():
        take_guidance(journal)
        asked = take_requests(journal.database, journal.session.id, "pause")
        for late in take_requests(journal.database, journal.session.id, "answer"):
            journal.tell(Notice("warning", f"no question is open for this answer: {late.body['text']}"))
    for request in requested(journal.database, journal.session.id, "skip"):  # each saves on its way
        _skip(context, request.body)
        drop_request(journal.database, journal.session.id, request)
    context.record.write_plan()
    return pause_asked_for(journal.session.id, asked[0].body.get("why", "")) if asked else None


def _skip(context: SessionContext, wanted: Mapping[str, str]) -> None:
    """Skip the task, unless a killed process has; what stands against it is told."""
    journal = context.record.journal
    task = journal.session.tree.task(wanted["task"])
    if task is not None and task.given_up:
        return
    try:
        skip(journal, context.project.place, wanted["task"], wanted["reason"], keep=bool(wanted["keep"]))
    except LopenError as error:
        journal.tell(Notice("warning", f"not skipped: {error.message}"))


def conversation(context: SessionContext, corrections: tuple[str, ...]) -> Conversation | Pause:
    """Continue the conversation that an interruption cut off, or begin an iteration with a fresh one."""
    if stored := stored_conversation(context):
        return continue_conversation(context, stored)
    begun = begin(context, corrections)
    return begun if isinstance(begun, Pause) else conversation_for(context, bench_for(context))


def settle(context: SessionContext, number: int, outcome: Outcome) -> Session:
    """Save the session after the outcome of iteration `number`; a conversation that goes on later stays stored."""
    record = context.record
    decision = decide(record.journal.session, outcome)
    ended = IterationEnded(number, outcome.kind, outcome.reason, outcome.turns)
    with record.journal.transaction():
        record.journal.save(decision.session, *decision.events, ended)
        if outcome.pause is None or not continues(outcome.pause):
            record.conversations.clear()
    record.write_plan()
    return record.journal.session if outcome.pause is None else pause(context, outcome.pause)


def give_back(context: SessionContext) -> None:
    """Do not count an iteration without a model response, as far as that can be saved."""
    with suppress(StorageError):
        context.record.journal.save(changes.give_iteration_back(context.record.journal.session))


def check(context: SessionContext) -> Passed:
    """The guardrails' word on going on; warnings and blocks are told, and a wait is sat out."""
    passed = run_guardrails(GUARDRAILS, guard_facts(context))
    told = events(passed.results)
    if told:
        context.record.journal.tell(*told)
    if passed.wait_s and not passed.pause:
        why = next(result.reason for result in passed.results if result.wait_s)
        context.record.journal.tell(Waiting(why, passed.wait_s))
        context.clock.sleep(passed.wait_s)
    return passed


def finish(context: SessionContext) -> None:
    """Report the built work, and draw the plan a last time."""
    context.record.journal.tell(*context.guards.meter.settle_up())
    remarks = open_remarks(context.record.store, context.record.journal.session)
    told = [Notice("info", f"the judge remarks: {remark_line(remark)}") for remark in remarks]
    journal = context.record.journal
    for late in take_requests(journal.database, journal.session.id, "tell"):
        told.append(Notice("warning", f"the build was complete before the model heard: {late.body['text']}"))
    if left := context.project.place.close():
        told.append(Notice("info", left))
    context.record.journal.tell(*told, completed(context))
    context.record.write_plan()


def stopped(context: SessionContext) -> None:
    """Save that a signal ended the run; what a person was being asked stays open."""
    session = context.record.journal.session
    if session.pause is None or not asks_now(session.pause):
        pause(context, interrupted(session.id))
        return
    pause(context, session.pause)
    asked = "approval" if session.pause.kind == "gate" else "question"
    how = "give it" if session.pause.kind == "gate" else "answer it"
    told = f"the {asked} stays open; {how} with: {session.pause.command}"
    context.record.journal.tell(Notice("info", told))


def pause(context: SessionContext, why: Pause, corrections: tuple[str, ...] = ()) -> Session:
    """Save that the session waits, and tell the command that lets it go on; the model hears `corrections` then."""
    context.record.journal.tell(*context.guards.meter.settle_up())
    session = context.record.journal.session
    if isinstance(why, Halt) and why.kind == "circuit":
        why = replace(why, message=f"{why.message}; {context.guards.meter.spent_in_words()}")
    session = changes.pause_for(session, why, corrections)
    lines = rejection(context.record.store.verdicts(session.id), getattr(why, "reason", None))
    failure = last_failure(context.record.store.database, session.id)
    ways = getattr(why, "ways", "")
    output = "\n".join([*lines, *([failure.excerpt()] if failure else []), *([ways] if ways else [])])
    saved = context.record.journal.save(session, SessionPaused(why.kind, why.message, why.command, output))
    context.record.write_plan()
    return saved
