"""The loop: a session driven step by step until it is complete or waits for a person. One iteration, one screen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from lopen.base.errors import PersonNeeded, Stopped, StorageError
from lopen.base.events import IterationEnded, Notice, SessionPaused, Waiting
from lopen.guardrails.guard import GuardResult
from lopen.guardrails.pipeline import Passed, events, selected
from lopen.guardrails.pipeline import run as run_guardrails
from lopen.guardrails.resource_limits import level_in
from lopen.loop.context import Ports
from lopen.loop.guard_facts import guard_facts
from lopen.loop.iteration import advance_alone, begin, bench_for, conversation_for, look
from lopen.loop.model_calls import CallPaused
from lopen.loop.startup import completed
from lopen.workflow.decide import decide
from lopen.workflow.pauses import confirm_command, interrupted_pause
from lopen.workflow.session import Pause, Session
from lopen.workflow.steps import Step

SAVE_TRIES = 3


def drive(ports: Ports, until: frozenset[Step] = frozenset()) -> Session:
    """Iterate until the session is complete, waits, or stands in a step of `until`. Always saved.

    Raises `Stopped` after saving on a signal, and `PersonNeeded` where nothing can be saved: no model call
    is paid for that cannot be kept.
    """
    failures = 0
    while True:
        try:
            session = iterate(ports)
            failures = 0
        except StorageError as error:
            failures += 1
            if failures > SAVE_TRIES:
                raise unsaved(error) from error
            wait_for_storage(ports, error)
            continue
        except Stopped:
            pause(ports, interrupted_pause(ports.journal.session))
            raise
        if session.finished:
            finish(ports)
        if session.status != "running" or session.step in until:
            return session


def wait_for_storage(ports: Ports, error: StorageError) -> None:
    """Try until everything can be saved again; `PersonNeeded` where it cannot."""
    for n in range(1, SAVE_TRIES + 1):
        ports.clock.sleep(0.25 * 2**n)  # a full disk or a busy database says nothing when it is well again
        try:
            ports.journal.save(ports.journal.reload())
            ports.write_plan()
        except StorageError as again:
            error = again
        else:
            return
    raise unsaved(error) from error


def unsaved(error: StorageError) -> PersonNeeded:
    """What is told where nothing can be saved: the path, the system's words, and what to do."""
    return PersonNeeded(error.message, command="lopen resume", hint=error.hint)


def iterate(ports: Ports) -> Session:
    """One iteration: observe and assess, do what needs no model, check, converse, decide, save."""
    try:
        waits = look(ports) or advance_alone(ports)
    except CallPaused as held:  # the oracle, at a boundary
        waits = held.pause
    if isinstance(waits, Pause):
        return pause(ports, waits)
    if waits or ports.journal.session.finished:
        return ports.journal.session
    passed = check(ports)
    if passed.block is not None:
        return pause(ports, guard_pause(ports.journal.session, passed.block), passed.corrections)
    session = begin(ports, passed.corrections)
    if isinstance(session, Pause):
        return pause(ports, session)
    talk = conversation_for(ports, bench_for(ports))
    try:
        outcome = talk.run()
    finally:
        if not talk.answers:
            give_back(ports)
    decision = decide(ports.journal.session, outcome)
    ended = IterationEnded(session.iterations, outcome.kind, outcome.reason, outcome.turns)
    ports.journal.save(decision.session, *decision.events, ended)
    ports.write_plan()
    return ports.journal.session if outcome.pause is None else pause(ports, outcome.pause)


def give_back(ports: Ports) -> None:
    """An iteration in which no model answered did not happen: it is not counted, as far as that can be saved."""
    with suppress(StorageError):
        ports.journal.change(iterations=ports.journal.session.iterations - 1)


def check(ports: Ports) -> Passed:
    """The guardrails' word on going on; warnings and blocks are told, and a wait is sat out."""
    passed = run_guardrails(selected(ports.settings.guardrails.disabled), guard_facts(ports))
    told = events(passed.results)
    if told or level_in(passed.results) != ports.journal.session.budget_told:
        ports.journal.change(*told, budget_told=level_in(passed.results))
    if passed.wait_s and not passed.blocked:
        ports.journal.tell(Waiting("a circuit cools down", passed.wait_s))
        ports.clock.sleep(passed.wait_s)
    return passed


def guard_pause(session: Session, block: GuardResult) -> Pause:
    """The pause a block ends the run with."""
    command = block.command or (confirm_command(session) if block.confirm else f"lopen resume {session.id}")
    kind = block.pause_kind or "guardrail"
    return Pause(kind, f"{block.guard}: {block.reason}", command, subject=block.confirm, level=block.level)


def finish(ports: Ports) -> None:
    """Tell what was built, and draw the plan a last time."""
    lines = ports.repository.ignore_suggestion()
    told = (
        [Notice("info", f"caches lie untracked; lines for .gitignore: {', '.join(lines)}")] if lines else []
    )
    if left := ports.place.close(ports.journal.session.leftovers):
        told.append(Notice("info", left))
    ports.journal.tell(*told, completed(ports))
    ports.write_plan()


def pause(ports: Ports, why: Pause, corrections: tuple[str, ...] = ()) -> Session:
    """Save that the session waits, and tell the command that lets it go on; the model hears `corrections` then."""
    session = ports.journal.session
    kept = tuple(dict.fromkeys((*session.corrections, *corrections)))
    session = replace(session, status="paused", pause=why, corrections=kept)
    saved = ports.journal.save(session, SessionPaused(why.kind, why.message, why.command))
    ports.write_plan()
    return saved
