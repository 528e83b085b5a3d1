"""An event as one line for people: pure, and for every event."""

from __future__ import annotations

from dataclasses import asdict

from lopen.core import events as e
from lopen.core.escape import inert
from lopen.core.money import dollars
from lopen.verification.runners import count_tests
from lopen.workflow.steps import Step, number
from lopen.workflow.task_tree import State

SETTLED = 5  # decisions that the end of a session names
STEPS = 7  # `Step.COMPLETE` is not a step
STEP_TITLES = {
    Step.DRAFT_SPECIFICATION: "drafting the specification",
    Step.DETERMINE_DEPENDENCIES: "determining the dependencies",
    Step.IDENTIFY_COMPONENTS: "identifying the components",
    Step.SELECT_NEXT_COMPONENT: "choosing the next component",
    Step.BREAK_INTO_TASKS: "breaking the component into tasks",
    Step.ITERATE_THROUGH_TASKS: "working through the tasks",
    Step.REPEAT: "checking for remaining components",
    Step.COMPLETE: "complete",
}
CALLS = {  # tool → the act as a person reads it
    "verify_tests": "running the tests",
    "verify_build": "running the build",
    "verify_lint": "running the linter",
    "verify_task_completion": "checking the task: tests, mutants, then the judge",
    "run_command": "running a command",
    "ask_user": "asking a question",
}
MARKS = {State.PENDING: "○", State.IN_PROGRESS: "▶", State.COMPLETE: "✓", State.FAILED: "✗"}


def line(event: e.Event) -> str | None:
    """Return the event as one inert line; None for events that only the live view shows."""
    text = _session(event) or _model(event) or _work(event) or _guards(event)
    if text is not None:
        return inert(text) or None
    if type(event) in e.EVENTS.values():  # known, without a line of its own
        return None
    return inert(f"{event.name}: {asdict(event)}")


def step_title(step: str) -> str:
    """Return a step as a person reads it, such as "step 4 of 7: choosing the next component"."""
    if step not in STEP_TITLES or step == Step.COMPLETE:
        return step
    return f"step {number(Step(step))} of {STEPS}: {_title(step)}"


def act_words(tool: str) -> str:
    """Return the act of a tool as a person reads it."""
    return CALLS.get(tool, tool.replace("_", " "))


def step_words(step: str) -> str:
    """Return a step in a person's words, such as "choosing the next component"; "" where the work is complete."""
    return "" if step == Step.COMPLETE else _title(step)


def _title(step: str) -> str:
    return STEP_TITLES[Step(step)] if step in STEP_TITLES else step


def _session(event: e.Event) -> str | None:
    """Progress of the session itself."""
    match event:
        case e.SessionStarted(module, step, resumed):
            return f"{'resumed' if resumed else 'started'} {module}{_after(' at ', step_title(step)) if resumed else ''}"
        case e.SessionPaused("interrupted", _, command):
            return f"everything up to here is saved{_after('; to continue: ', command)}"
        case e.SessionPaused(_, message):  # the last line of the command names the next one
            return f"paused: {message}"
        case e.SessionFailed(message, hint):
            return f"failed: {message}{_after('; ', hint)}"
        case e.SessionComplete():
            return _complete(event)
        case e.StepEntered(step) if step != Step.COMPLETE:  # the session's end has a line of its own
            return step_title(step)
        case e.IterationStarted(iteration, step, model, component, task, task_name):
            title = _title(step) + (f" ({component})" if component else "")
            subject = f"{task} {task_name} in {component}" if task else title
            return f"iteration {iteration}: {subject}, with {model}"
        case e.IterationEnded(iteration, outcome, reason, turns):
            why = (
                "" if outcome in ("paused", reason) else _after(", ", reason)
            )  # the pause has a line of its own
            return f"iteration {iteration} ended after {counted(turns, 'turn')}: {outcome}{why}"
        case e.Waiting(reason, seconds):
            return f"waiting {seconds:.0f} s: {reason}"
        case e.Notice(level, message, hint):
            return f"{level + ': ' if level in ('warning', 'error') else ''}{message}{_after('; ', hint)}"
        case _:
            return None


def _model(event: e.Event) -> str | None:
    """Requests to the model, tool calls and questions."""
    match event:
        case e.TurnEnded():
            purpose = "the judge" if event.purpose == "oracle" else event.purpose
            label = f"turn {event.turn}" if event.purpose == "turn" else purpose
            cached = f" ({event.cache_read_tokens:,} cached)" if event.cache_read_tokens else ""
            read = event.input_tokens + event.cache_read_tokens + event.cache_write_tokens
            return (
                f"{label}: {read:,} tokens in{cached}, {event.output_tokens:,} out, {dollars(event.cost_usd)}, "
                f"{event.seconds:.1f} s, {event.stop_reason}"
            )
        case e.ModelRetry(reason, attempt, wait, retries):
            if attempt == 1 and retries:
                return f"{reason}; trying again up to {counted(retries, 'time')} within {max(1, round(event.longest_s))} s"
            return f"{reason}; trying again, {attempt}{f' of {retries}' if retries else ''}, in {wait:.1f} s"
        case e.ModelFallback(reason, before, after):
            return f"{before}: {reason}; using {after} instead"
        case e.ToolEnded(_, tool, summary, outcome, seconds, error):
            return f"{tool}{_after(' ', summary)}: {outcome}, {seconds:.1f} s{_after(': ', error)}"
        case e.QuestionAsked(question, options, _, answer, assumed) if answer:  # else the pause tells it
            choice = f" [{' / '.join(options)}]" if options else ""
            return f"question: {question}{choice}; {'assumed' if assumed else 'answered'}: {answer}"
        case e.GuidanceGiven(text):
            return f"the model's next turn is told: {text}"
        case _:
            return None


def _work(event: e.Event) -> str | None:
    """Plan, tasks, verification, commits."""
    match event:
        case e.VerificationRan("mutation_check" | "earlier_tests", output=output):
            return output.partition("\n")[0]
        case e.VerificationRan(tool, command, passed, exit_code, seconds, output=output):
            code = "no exit code" if exit_code is None else f"exit {exit_code}"
            told = [] if passed else ["although it exited with 0" if exit_code == 0 else code]
            told += [counts] if tool == "verify_tests" and (counts := test_counts(output)) else []
            found = f" ({', '.join(told)})" if told else ""
            return f"{tool} `{command}`: {'passed' if passed else 'failed'}{found}, {seconds:.1f} s"
        case e.VerdictGiven(scope, subject, passed, confidence, summary, findings, cached, outcome=outcome):
            sure = "" if confidence == "high" else f", {confidence} confidence"
            noted = f", {counted(findings, 'remark')}" if passed and findings else ""
            result = f"{outcome or ('passed' if passed else 'rejected')}{noted}{sure}{' (as before)' if cached else ''}"
            return f"verdict on {scope} {subject}: {result}{_after(': ', summary)}"
        case e.SpecApproved(who, note):
            return f"specification approved by {who}{_after(': ', note)}"
        case e.PlanRecorded("component", names):
            return f"selected component: {', '.join(names)}"
        case e.PlanRecorded(what, names):
            return f"planned {what}: {', '.join(names) or 'none'}"
        case e.TaskChanged(task, task_name, component, state, reason):
            why = "" if reason == state else _after(", ", reason)
            return f"task {task} {task_name} in {component}: {state.replace('_', ' ')}{why}"
        case e.ComponentComplete(component, component_name):
            return f"component {component}{'' if component == component_name else f' {component_name}'}: complete"
        case e.Committed(commit, subject, branch, adopted):
            return f"{'adopted' if adopted else 'commit'} {commit[:12]} on {branch}: {subject}"
        case e.Reverted(backup=backup, undo=False, skipped=task) if task:
            return f"the uncommitted work of {task} is put aside in {backup}" if backup else None
        case e.Reverted(to, backup, opened, restored, undo):
            tasks = _after("; reopened: ", ", ".join(opened)) + _after("; restored: ", ", ".join(restored))
            return f"{'restored' if undo else 'reverted'} to {to[:12]}; backup: {backup}{tasks}"
        case _:
            return None


def _guards(event: e.Event) -> str | None:
    """Guardrails, budgets and circuits."""
    match event:
        case e.GuardrailRaised(_, _, reason, action):
            return f"{reason}{_after('; ', action)}"
        case e.DriftFound(changed, new, removed, effect):
            kinds = (("changed", changed), ("new", new), ("removed", removed))
            found = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds if names)
            return f"the specification differs from the plan: {found}; {effect}"
        case e.AlertRaised(kind, budget_id, message, _):
            return f"alert {kind} for {budget_id}: {message}"
        case _:
            return None


def _complete(event: e.SessionComplete) -> str:
    spent = "tokens and cost unknown"
    if event.tokens is not None:
        spent = f"{event.tokens:,} tokens, {dollars(event.cost_usd)}"
    parts = (
        counted(event.components, "component"),
        counted(event.tasks, "task"),
        counted(event.commits, "commit"),
        spent,
    )
    unpriced = event.unpriced_tokens if event.cost_usd is not None else 0
    excluded = f" (without {unpriced:,} tokens of unknown price)" if unpriced else ""
    branch = _after("; branch ", event.branch)
    return f"{event.module} is complete: {', '.join(parts)}{excluded}{branch}"


def _settled(event: e.SessionComplete) -> list[str]:
    """Return what was decided, assumed and accepted on the way, a line each."""
    kinds = (
        ("decided by a person", event.answers),
        ("assumed", event.assumptions),
        ("accepted by a person", event.accepted),
    )
    told = [inert(f"{kind}: {text}") for kind, texts in kinds for text in texts]
    more = [f"and {len(told) - SETTLED} more: lopen report {event.module}"] if len(told) > SETTLED else []
    return [*told[:SETTLED], *more]


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 task", "2 tasks"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def test_counts(output: str) -> str:
    """Return how many tests ran as their runner printed it, such as "12 tests"; "" where it does not tell."""
    ran = count_tests(output)
    return "" if ran is None else counted(ran, "test")


def _after(separator: str, text: str) -> str:
    return separator + text if text else ""


def rows(recorded: e.Recorded, *, verbose: bool = False) -> list[str]:
    """Return the event's line with the time of day, and the lines below it; without `verbose` none for a detail."""
    event = recorded.event
    if not verbose and is_detail(event):
        return []
    text = line(event)
    shown_by = _shown_by(event) if verbose else ""
    head = [] if text is None else [f"{recorded.ts.astimezone():%H:%M:%S} {text}{shown_by}"]
    return [*head, *(f"         | {row}" for row in _details(event, verbose=verbose))]


def _shown_by(event: e.Event) -> str:
    """Return the name by which `lopen show` shows the event's subject."""
    match event:
        case e.ToolEnded(number=number) if number:
            return f" [call-{number}]"
        case e.VerificationRan(number=number) if number:
            return f" [verification-{number}]"
        case e.VerdictGiven(evidence_hash=digest) if digest:
            return f" [verdict-{digest[:8]}]"
        case _:
            return ""


def _details(event: e.Event, *, verbose: bool) -> list[str]:
    """Return the lines below an event: the model's text, and the end of a command's output."""
    match event:
        case e.TurnEnded(purpose="turn", text=text):
            return _lines_of(text)
        case e.VerificationRan(output=output) if verbose:
            return _lines_of(output)
        case e.SessionPaused(output=output):
            return _lines_of(output)
        case e.SessionComplete():
            return _settled(event)
        case e.VerdictGiven(reasons=reasons):
            return [inert(reason) for reason in reasons]
        case _:
            return []


def is_detail(event: e.Event) -> bool:
    """Return True for an event that tells how the work goes on, beside its tasks, verifications, verdicts and commits."""
    match event:
        case e.StepEntered() | e.IterationStarted() | e.IterationEnded() | e.TurnEnded() | e.ToolEnded():
            return True
        case e.GuardrailRaised():
            return event.guard != "churn" or event.verdict == "block"  # the pause that follows says why
        case e.Notice(level):
            return level == "detail"
        case e.PlanRecorded(what):
            return what not in ("components", "tasks")
        case e.TaskChanged(state=state):
            return state == State.COMPLETE.value  # the commit says so
        case e.VerdictGiven(passed=passed, cached=cached):
            return passed and cached
        case e.ModelRetry(attempt=attempt):
            return attempt > 1  # the first says how long, and the end is told
        case e.AlertRaised(alert_type):
            return alert_type == "circuit_tripped"  # the pause says so
        case _:
            return False


def tone(event: e.Event) -> str:
    """Return how an event's line is coloured: good, bad, warn or calm."""
    match event:
        case e.VerificationRan() | e.VerdictGiven():
            return "good" if event.passed else "bad"
        case e.Committed() | e.ComponentComplete() | e.SessionComplete():
            return "good"
        case e.SessionFailed() | e.Notice(level="error"):
            return "bad"
        case e.ToolEnded(outcome=outcome) if outcome != "ok":
            return "bad"
        case e.SessionPaused() | e.GuardrailRaised() | e.AlertRaised() | e.DriftFound() | e.Waiting():
            return "warn"
        case e.ModelRetry() | e.ModelFallback() | e.Notice(level="warning"):
            return "warn"
    return "calm"


def _lines_of(text: str) -> list[str]:
    return inert(text, lines=True).strip("\n").split("\n") if text.strip() else []
