"""Begin and end a run: settle the remains of a dead process, take in a person's answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from lopen.core.errors import LopenError
from lopen.core.events import Notice, QuestionAsked, SessionComplete, SessionFailed, SessionStarted
from lopen.core.hashing import content_hash
from lopen.guardrails.completion import tool_name
from lopen.loop.context import SessionContext
from lopen.specification.spec import SKILLS_AND_HOOKS
from lopen.store.journal import drop_pauses
from lopen.tools.questions import answered
from lopen.tools.task_completion import adopt
from lopen.verification.run_files import is_manifest
from lopen.verification.runners import shown_output
from lopen.verification.verify_programs import start_failure
from lopen.workflow import changes
from lopen.workflow.next_step import displayed_step
from lopen.workflow.pauses import Pause, Question
from lopen.workflow.session import FAILS_BEFORE_ANY_WORK, Session
from lopen.workflow.task_tree import State

BUDGET_EXTENDED = "A person extended the budget that stopped the run."

TRYING_COMMANDS = "trying the verify commands before the first request"
HOW_IT_IS_MENDED = "What mends it belongs to the first task; or a person approves another command."
FAILURE_CHARS = 2_000  # of a command that fails before any work


class CannotStart(LopenError):
    """A verify command cannot start, so that nothing could ever be verified."""


def start(context: SessionContext, *, resumed: bool) -> Pause | None:
    """Take the session up, durably; a pause where something still waits for a person."""
    session = context.record.journal.session
    drop_pauses(context.record.journal.database, session.id)  # asked of the last run
    interrupted = resumed and session.status == "running"
    waited_for_budget = session.pause is not None and session.pause.kind == "budget"
    cleared = context.branch.clear_leftovers() if interrupted else ()
    moved = context.branch.sync()
    session, adopted = adopt(session, context.project.repository)
    if adopted:
        context.project.repository.align_index()
    session = taken_up(context, session, resumed=resumed)
    context.guards.meter.open(session.id, session.module, agent=context.agent_for(session.step))
    told = context.guards.meter.recover(session.id)
    told = (*told, *context.guards.meter.gate.lift_spawn_limits(context.asked.request))
    context.guards.meter.gate.plan_known(sum(1 for _ in session.tree.tasks))
    if waited_for_budget:
        session = changes.add_notes(session, BUDGET_EXTENDED)
    begun = SessionStarted(session.module, displayed_step(session).value, resumed)
    told = (*told, *_warnings(context), *(Notice("info", line) for line in context.project.place.notices))
    context.record.journal.save(session, begun, *cleared, *adopted, *told)
    if (
        interrupted or adopted or not resumed
    ):  # a killed process may not have come to it; a new one has another
        context.record.write_plan()
    return moved or unanswered(context)


def taken_up(context: SessionContext, session: Session, *, resumed: bool) -> Session:
    """The session as this process drives it: with its grant of iterations and the person's words."""
    granted = session.limits.iterations + context.settings.workflow.max_iterations
    if resumed and session.limits.iterations < session.limits.iterations_granted:
        granted = min(
            granted, session.limits.iterations_granted
        )  # the rest of the last grant, or less by a flag
    if session.approval and context.record.store.approval(session.module) != session.approval:
        session = changes.try_changed_specification(session)
    return changes.start_run(session, granted=granted, request=context.asked.request)


def unanswered(context: SessionContext) -> Pause | None:
    """Return the pause of a question or confirmation that nobody has answered."""
    pause = context.record.journal.session.pause
    return _answered(context, pause) if isinstance(pause, Question) else pause


def try_commands(context: SessionContext) -> None:
    """Run each verify command once before the first request that is paid for.

    Raises `CannotStart` if a command cannot start. A command that fails because nothing is built yet does not stop
    the run.
    """
    session = context.record.journal.session
    if session.approval is None:
        return
    commands = session.approval.commands
    digest = content_hash(json.dumps(sorted(commands.items())))
    if session.commands_started == digest:
        return
    if any(commands.values()):
        context.record.journal.tell(Notice("detail", TRYING_COMMANDS))
    for name, line in start_failures(context, commands):
        raise CannotStart(
            f"{name} cannot start: {line}",
            hint=f"install what `{commands[name]}` needs, or correct it in specs/{session.module}/SPECIFICATION.md and"
            f" approve it again: lopen approve {session.module}",
        )
    context.record.journal.save(changes.note_commands(context.record.journal.session, digest))


def start_failures(context: SessionContext, commands: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Run the commands; yield the name of each that cannot start, with the line that says so.

    If verify-setup fails otherwise, the rest is not run. If it has nothing to install from yet, missing programs do
    not count.
    """
    verifier, project = context.project.verifier, context.project
    spec = project.load_spec(context.record.journal.session.module)
    setting_up = spec.outline.get(SKILLS_AND_HOOKS)
    told = spec.text.replace(spec.outline.full_text(setting_up), "") if setting_up else spec.text
    planned = {spec.module, *re.findall(r"\w+", told)}
    installs = commands.get("verify-setup") is not None and not any(
        is_manifest(path.name) for path in project.root.iterdir()
    )
    for name, command in commands.items():
        result = verifier.tried(tool_name(name)) if command else None
        if result is None or command is None or result.passed:
            continue
        line = start_failure(command, result.exit_code, result.output, root=project.root, planned=planned)
        if line and (name == "verify-setup" or not installs):
            yield name, line
        elif name == "verify-setup":
            return
        elif project.has_tests():  # there is code: the plan says what becomes of it
            told = FAILS_BEFORE_ANY_WORK.format(name=name)
            shown = _whole_lines(shown_output(result.output, passed=False))
            noted = changes.add_notes(context.record.journal.session, f"{told} {HOW_IT_IS_MENDED}\n{shown}")
            context.record.journal.save(noted, Notice("warning", told))


def _whole_lines(text: str) -> str:
    """Return the first lines of a failure, and how many are left out."""
    if len(text) <= FAILURE_CHARS:
        return text
    lines = text[:FAILURE_CHARS].rpartition("\n")[0].splitlines() or [text[:FAILURE_CHARS]]
    return "\n".join((*lines, f"and {len(text.splitlines()) - len(lines)} more lines"))


def _warnings(context: SessionContext) -> Iterator[Notice]:
    """Yield notices for a person about the sandbox and the content filters."""
    if unconfined := context.project.sandbox.warning:
        yield Notice("warning", unconfined)
    if filters := context.project.repository.ignored_filters:
        yield Notice(
            "warning",
            f"content filters that only this repository configures do not run: {', '.join(filters)}; files are"
            " committed as they lie there",
            "Those you want, put into your own: git config --global filter.NAME.clean COMMAND",
        )


def _answered(context: SessionContext, question: Question) -> Question | None:
    """Take the answer up that a person gave meanwhile, gives now, or that is assumed; return a question that waits."""
    session = context.record.journal.session
    if question.answer is not None:
        context.record.journal.save(changes.answer_question(session, question.text, question.answer))
        return None
    if not context.settings.workflow.unattended:
        return None if answered(context.record.journal, context.people.person, question) else question
    told = QuestionAsked(question.text, question.options, question.default, question.default, assumed=True)
    after = changes.assume(session, f"{question.text} Assumed: {question.default}")
    context.record.journal.save(after, told)
    return None


def completed(context: SessionContext) -> SessionComplete:
    """Return the event that reports the built work and its cost."""
    session = context.record.journal.session
    commits = sum(1 for t in session.tree.tasks if t.commit and session.branch)
    tokens, cost, without_price = context.guards.meter.spent()
    known = context.guards.meter.knows_spent
    return SessionComplete(
        module=session.module,
        components=len(session.tree.components),
        tasks=sum(t.state is State.COMPLETE for t in session.tree.tasks),
        commits=commits,
        cost_usd=None if not known or (without_price and not cost) else cost,
        tokens=tokens if known else None,
        branch=session.branch or "",
        assumptions=session.dialogue.assumptions,
        answers=tuple(f"{asked} {answer}" for asked, answer in session.dialogue.answers),
        unpriced_tokens=without_price,
        accepted=session.dialogue.accepted,
    )


def failed(context: SessionContext, error: LopenError, *, tried: bool) -> None:
    """Keep that the run failed; the session can be resumed. If nothing was tried, the pause stays as it was."""
    session = context.record.journal.session
    after = changes.fail_run(session) if tried else session
    context.record.journal.save(after, SessionFailed(error.message, error.hint))
