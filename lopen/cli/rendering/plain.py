"""Plain lines: one an event, for logs, pipes and `lopen log`. `line` is pure and knows every event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TextIO

from lopen.base import events as e
from lopen.base.escape import inert
from lopen.cli.rendering.stream import LineWriter
from lopen.workflow.steps import Step, number

TEXT_LINES = 40  # of the model's text a turn; -v shows all
# Calls that tell of themselves by an event of their own; when they went well, their end is no news.
TOLD = ("log_research", "record_", "report_progress", "select_component", "update_task_status", "verify_")


def line(event: e.Event) -> str | None:
    """The event in one inert line; None for what only a live view shows."""
    words = _run(event) or _model(event) or _work(event) or _guards(event)
    if words is not None:
        return inert(words) or None
    if type(event) in e.EVENTS.values():  # known, and silent
        return None
    return inert(f"{event.name}: {asdict(event)}")


def _run(event: e.Event) -> str | None:
    """The session's own course."""
    match event:
        case e.SessionStarted(module, step, resumed):
            return f"{'resumed' if resumed else 'started'} {module} at {step}"
        case e.SessionPaused(kind, message, command):
            return f"paused ({kind}): {message}{_after('; next: ', command)}"
        case e.SessionFailed(message, hint):
            return f"failed: {message}{_after('; ', hint)}"
        case e.SessionComplete():
            return _complete(event)
        case e.StepEntered(step, at, phase, reason):
            done = step == Step.COMPLETE.value
            return f"{'complete' if done else f'step {at} of {number(Step.REPEAT)}'}: {step} ({phase}), by {reason}"
        case e.IterationStarted(iteration, step, model, component, task, task_name):
            of = f", {task} {task_name} in {component}" if task else _after(", ", component)
            return f"iteration {iteration}: {step}{of}, with {model}"
        case e.IterationEnded(iteration, outcome, reason, turns):
            return (
                f"iteration {iteration} ended after {counted(turns, 'turn')}: {outcome}{_after(', ', reason)}"
            )
        case e.Waiting(reason, seconds):
            return f"waiting {seconds:.0f} s: {reason}"
        case e.Notice(level, message, hint):
            return f"{'' if level == 'info' else level + ': '}{message}{_after('; ', hint)}"
        case _:
            return None


def _model(event: e.Event) -> str | None:
    """Requests and what came of them."""
    match event:
        case e.TurnEnded():
            who = f"turn {event.turn}" if event.purpose == "turn" else event.purpose
            cached = f" ({event.cache_read_tokens:,} from the cache)" if event.cache_read_tokens else ""
            read = event.input_tokens + event.cache_read_tokens + event.cache_write_tokens
            return (
                f"{who}: {read:,} tokens in{cached}, {event.output_tokens:,} out, {money(event.cost_usd)}, "
                f"{event.seconds:.1f} s, {event.stop_reason}"
            )
        case e.ModelRetry(reason, attempt, wait):
            return f"model: {reason}; attempt {attempt} in {wait:.1f} s"
        case e.ModelFallback(reason, before, after):
            return f"model: {reason}; {after} instead of {before}"
        case e.ToolEnded(_, tool, summary, outcome, seconds, error):
            return f"{tool}{_after(' ', summary)}: {outcome}, {seconds:.1f} s{_after(': ', error)}"
        case e.ProgressReported(message):
            return f"the model says: {message}"
        case e.QuestionAsked(question, options, default, answer, assumed):
            choice = f" [{' / '.join(options)}]" if options else ""
            said = f"{'; assumed' if assumed else '; answered'}: {answer}" if answer else f"; else: {default}"
            return f"question: {question}{choice}{said}"
        case _:
            return None


def _work(event: e.Event) -> str | None:
    """Plan, tasks, verification, commits."""
    match event:
        case e.VerificationRan(tool, command, passed, exit_code, seconds):
            how = (
                "passed"
                if passed
                else f"failed ({'no exit code' if exit_code is None else f'exit {exit_code}'})"
            )
            return f"{tool} `{command}`: {how}, {seconds:.1f} s"
        case e.VerdictGiven(scope, subject, passed, confidence, summary, findings, cached):
            how = f"{'passed' if passed else 'failed'} ({confidence}, {counted(findings, 'finding')})"
            return (
                f"verdict on {scope} {subject}: {how}{', as before' if cached else ''}{_after(': ', summary)}"
            )
        case e.SpecApproved(who, note, spec_hash):
            return f"specification {spec_hash} approved by {who}{_after(': ', note)}"
        case e.PlanRecorded(what, names):
            return f"recorded {what}: {', '.join(names) or 'none'}"
        case e.TaskChanged(task, task_name, component, state, reason):
            return f"task {task} {task_name} in {component}: {state}{_after(', ', reason)}"
        case e.ComponentComplete(component, component_name):
            called = component if component == component_name else f"{component} {component_name}"
            return f"component {called}: complete"
        case e.Committed(commit, subject, branch, adopted):
            return f"{'adopted' if adopted else 'commit'} {commit[:12]} on {branch}: {subject}"
        case e.Reverted(to, backup, reopened):
            again = f"; open again: {', '.join(reopened)}" if reopened else ""
            return f"reverted to {to[:12]}; what was there is kept in {backup}{again}"
        case _:
            return None


def _guards(event: e.Event) -> str | None:
    """What warns and what stops."""
    match event:
        case e.GuardrailRaised(guard, verdict, reason, action):
            return f"guardrail {guard} {verdict}s: {reason}{_after('; ', action)}"
        case e.EscalationChanged(subject, name, before, after, _, reason, action):
            whose = subject if name in ("", subject) else f"{subject} {name}"
            return f"guardrail churn: {whose} went from {before} to {after}: {reason}{_after('; ', action)}"
        case e.DriftFound(changed, new, removed, effect):
            kinds = (("changed", changed), ("new", new), ("removed", removed))
            found = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds if names)
            return f"the specification differs from the plan: {found}; {effect}"
        case e.AlertRaised(kind, budget_id, message, _):
            return f"alert {kind} for {budget_id}: {message}"
        case e.CircuitChanged(circuit, rule, state, reason, until):
            return f"circuit {circuit}, {rule}: {state}{_after(', ', reason)}{_after(', until ', until)}"
        case _:
            return None


def _complete(event: e.SessionComplete) -> str:
    parts: Iterable[str] = (
        counted(event.components, "component"),
        counted(event.tasks, "task"),
        counted(event.commits, "commit"),
        f"{event.tokens:,} tokens",
        money(event.cost_usd) + _unpriced(event),
    )
    assumed = f"; assumed: {'; '.join(event.assumptions)}" if event.assumptions else ""
    merge = f"; on {event.branch}, merge with: {event.merge_command}" if event.merge_command else ""
    return f"{event.module} is complete: {', '.join(parts)}{assumed}{merge}"


def _unpriced(event: e.SessionComplete) -> str:
    some = event.unpriced_tokens and event.cost_usd is not None
    return f" and {event.unpriced_tokens:,} tokens without a known price" if some else ""


def counted(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def money(usd: float | None) -> str:
    """A price in dollars, exact enough to see a single turn; None is a model without a known price."""
    return "price unknown" if usd is None else f"${usd:.4f}"


def _after(separator: str, text: str) -> str:
    return separator + text if text else ""


_KEPT_WHEN_QUIET = (
    e.SessionPaused,
    e.SessionFailed,
    e.SessionComplete,
    e.AlertRaised,
    e.QuestionAsked,
)


class PlainView(LineWriter):
    """A line an event, with the time of day, and the model's text under its turn.

    Quiet: only what ends the run, alerts, questions and warnings.
    """

    def __init__(
        self, out: TextIO, *, redact: Callable[[str], str] = str, quiet: bool = False, verbose: bool = False
    ) -> None:
        super().__init__(out, redact)
        self._quiet = quiet
        self._verbose = verbose
        self._text_lines = None if verbose else TEXT_LINES

    def __call__(self, recorded: e.Recorded) -> None:
        event = recorded.event
        if (self._quiet and not _matters(event)) or (_told(event) and not self._verbose):
            return
        words = line(event)
        if words is not None:
            self.write(f"{recorded.ts.astimezone():%H:%M:%S} {words}")
        if isinstance(event, e.TurnEnded) and event.purpose == "turn":
            for text in _head(event.text, self._text_lines):
                self.write(f"         | {text}")


def _matters(event: e.Event) -> bool:
    return isinstance(event, _KEPT_WHEN_QUIET) or (isinstance(event, e.Notice) and event.level != "info")


def _told(event: e.Event) -> bool:
    return isinstance(event, e.ToolEnded) and event.outcome == "ok" and event.tool.startswith(TOLD)


def _head(text: str, limit: int | None) -> list[str]:
    lines = inert(text, lines=True).strip("\n").split("\n") if text.strip() else []
    if limit is None or len(lines) <= limit:
        return lines
    return [*lines[:limit], f"… {len(lines) - limit} more lines: lopen log, or -v"]
