"""Beginning and ending a run: what a dead process left is settled, what a person answered is taken in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lopen.base.errors import LopenError
from lopen.base.events import Notice, QuestionAsked, SessionComplete, SessionFailed, SessionStarted
from lopen.git.repository import versioned
from lopen.loop.approval_gate import stand_on_branch
from lopen.loop.context import Ports
from lopen.loop.task_commit import adopt
from lopen.workflow.pauses import asks
from lopen.workflow.session import Pause, Session
from lopen.workflow.task_tree import State

RECOVERED = "The last run was interrupted. Go on from the state below without asking; do nothing twice."


def start(ports: Ports, *, resumed: bool) -> Pause | None:
    """Take the session up, durably; a pause where something still waits for a person."""
    session = ports.journal.session
    interrupted = resumed and session.status == "running"
    cleared = _cleared(ports) if interrupted else ()
    stand_on_branch(ports)
    session, adopted = adopt(session, ports.repository)
    if adopted:
        versioned(ports.repository).align_index()
    session = taken_up(ports, session, resumed=resumed)
    ports.meter.open(session.id, session.module, agent=ports.agent_for(session.step))
    told = ports.meter.recover(session.id)
    told = (*told, *ports.meter.gate.lift_spawn_limits(ports.request))
    ports.meter.gate.plan_known(sum(1 for _ in session.tree.tasks))
    begun = SessionStarted(session.module, session.step.value, resumed)
    told = (*told, *_warnings(ports), *(Notice("info", line) for line in ports.place.notices))
    ports.journal.save(session, begun, *cleared, *adopted, *told)
    if (
        interrupted or adopted or not resumed
    ):  # a killed process may not have come to it; a new one has another
        ports.write_plan()
    return unanswered(ports)


def taken_up(ports: Ports, session: Session, *, resumed: bool) -> Session:
    """The session as this process drives it: with its grant of iterations and the person's words."""
    granted = session.iterations + ports.settings.workflow.max_iterations
    if resumed and session.iterations < session.iterations_granted:
        granted = min(
            granted, session.iterations_granted
        )  # what is left of the last grant, or less by a flag
    notes = session.notes
    if resumed and session.status == "running":
        notes = (*notes, RECOVERED)
    return replace(
        session,
        status="running",
        pause=None,
        request=ports.request or session.request,
        iterations_granted=granted,
        notes=notes,
        hooks=session.hooks or ports.repository.hooks_snapshot().to_json(),
    )


def unanswered(ports: Ports) -> Pause | None:
    """What still waits for a person's word."""
    return _question(ports) or asks(ports.journal.session)


def _warnings(ports: Ports) -> Iterator[Notice]:
    """What a person should know of how this session works."""
    if unconfined := ports.commands.sandbox.warning:
        yield Notice("warning", unconfined)
    if filters := ports.repository.ignored_filters:
        yield Notice(
            "warning",
            f"content filters that only this repository configures do not run: {', '.join(filters)}; files are"
            " committed as they lie there",
            "Those you want, put into your own: git config --global filter.NAME.clean COMMAND",
        )


def _cleared(ports: Ports) -> tuple[Notice, ...]:
    """What the dead process left in the repository: nobody else would ever remove it."""
    branch = ports.journal.session.branch or ports.settings.git.branch_prefix + ports.journal.session.module
    return tuple(
        Notice("info", f"removed what the interrupted run left: {path}")
        for path in ports.repository.clear_leftovers(branch)
    )


def _question(ports: Ports) -> Pause | None:
    """The question that waits: answered meanwhile, answered now, assumed where nobody is to be asked; else it waits."""
    session = ports.journal.session
    question = session.question
    if question is None:
        return None
    if question.answer is not None:
        ports.journal.change(question=None)
        return None
    assumed = ports.settings.workflow.unattended
    answer = (
        question.default if assumed else ports.person.ask(question.text, question.options, question.default)
    )
    if answer is None:
        return Pause(
            "question",
            f"the model asks: {question.text} (default: {question.default})",
            f"lopen answer {session.id} TEXT",
        )
    line = f"{question.text} Assumed: {answer}"
    ports.journal.change(
        QuestionAsked(question.text, question.options, question.default, answer, assumed),
        question=None,
        assumptions=(*session.assumptions, line) if assumed else session.assumptions,
        notes=(*session.notes, f"You asked: {question.text} The answer: {answer}"),
    )
    return None


def completed(ports: Ports) -> SessionComplete:
    """What was built, what it cost, and the command that merges it."""
    session = ports.journal.session
    commits = sum(1 for t in session.tree.tasks if t.commit and session.branch)
    state = next((s for s in ports.meter.states() if s.budget_type == "session"), None)
    unpriced = bool(state and state.unpriced_tokens and not state.cost_usd)
    return SessionComplete(
        module=session.module,
        components=len(session.tree.components),
        tasks=sum(t.state is State.COMPLETE for t in session.tree.tasks),
        commits=commits,
        cost_usd=None if state is None or unpriced else state.cost_usd,
        tokens=state.tokens_used if state else 0,
        branch=session.branch or "",
        merge_command=merge_command(ports, session),
        assumptions=session.assumptions,
        unpriced_tokens=state.unpriced_tokens if state else 0,
    )


def merge_command(ports: Ports, session: Session) -> str:
    """How a person takes the work over."""
    if session.branch is None:
        return ""
    return ports.place.merge_command(session.module, session.branch, session.start_branch)


def failed(ports: Ports, error: LopenError, *, tried: bool) -> None:
    """Keep that the run failed; the session can be resumed. Where nothing was tried it waits for what it waited for."""
    session = ports.journal.session
    after = replace(session, status="failed", pause=None) if tried else session
    ports.journal.save(after, SessionFailed(error.message, error.hint))
