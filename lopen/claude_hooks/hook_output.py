"""A hook's answer: what it says about budget and circuit, and how Claude Code wants it written.

A refusal takes two lines, all else one. It is JSON with exit 0, which Claude Code shows as the reason alone; exit 2 would read as a hook that broke.
The older, plain shape knows exit 2 only.
"""

from __future__ import annotations

from lopen.core.quick_stdlib import Value, dumps
from lopen.limits.budget import percent
from lopen.limits.report import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lopen.limits.agents import AgentLimits
    from lopen.limits.budget import BudgetState
    from lopen.limits.circuit import CircuitState
    from lopen.limits.records import Alert
    from lopen.limits.rules import RuleBook

ALLOWED, BLOCKED = 0, 2
# lopen's word for an event → the client's
EVENTS = {
    word: "".join(part.capitalize() for part in word.split("-"))
    for word in (
        "pre-tool-use",
        "post-tool-use",
        "post-tool-use-failure",
        "post-tool-batch",
        "user-prompt-submit",
        "session-start",
        "session-end",
        "stop",
        "subagent-start",
        "subagent-stop",
        "pre-compact",
    )
}
_WITH_CONTEXT = frozenset(
    ["pre-tool-use", "post-tool-use", "post-tool-use-failure", "user-prompt-submit", "session-start"]
)
_REFUSABLE = frozenset(["user-prompt-submit", "stop"])


class Answer(Value):
    """The decision about one event.

    `block`: why the call, the prompt or the end of the turn is refused. `stop`: why the loop ends here. `context` is
    for the model, `tell` for the person, `log` for the log and the person.
    """

    block: str = ""
    stop: str = ""
    context: tuple[str, ...] = ()
    tell: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


def written(name: str, answer: Answer, *, plain: bool) -> tuple[int, str, str]:
    """The exit code, standard output and standard error for the event `name`."""
    if plain:
        return _plain(answer)
    fields: dict[str, Any] = {}
    told = list(answer.tell)
    if answer.stop:
        fields |= {"continue": False, "stopReason": answer.stop}
    context = list(answer.context)
    if answer.block:
        if name == "pre-tool-use":
            decision = {"permissionDecision": "deny", "permissionDecisionReason": answer.block}
            fields["hookSpecificOutput"] = {"hookEventName": EVENTS[name], **decision}
        elif name in _REFUSABLE:
            fields |= {"decision": "block", "reason": answer.block}
        else:
            context.insert(0, answer.block)
        if name != "user-prompt-submit":  # there the reason itself is shown
            told.append(f"lopen: {answer.block}")
    if context and name in _WITH_CONTEXT:
        output = fields.setdefault("hookSpecificOutput", {"hookEventName": EVENTS[name]})
        output["additionalContext"] = "\n\n".join(context)
    if told:
        fields["systemMessage"] = "\n".join(told)
    return ALLOWED, dumps(fields) + "\n" if fields else "", ""


def _plain(answer: Answer) -> tuple[int, str, str]:
    reason = answer.block or answer.stop
    if reason:
        reason = "\n\n".join((reason, *answer.context))
        fields: dict[str, Any] = {"reason": reason} | (
            {"continue": False, "stopReason": answer.stop} if answer.stop else {}
        )
        return BLOCKED, dumps(fields) + "\n", reason + "\n"
    if answer.context:
        return ALLOWED, dumps({"additionalContext": "\n\n".join(answer.context)}) + "\n", ""
    return ALLOWED, "", ""


def exhausted(state: BudgetState) -> str:
    """Why nothing more may be done, and how to go on."""
    from lopen.limits.wording import extend_command, used_of  # only where it is said

    return (
        f"Token budget exhausted ({used_of(state)} tokens used). HITL review required to continue.\n"
        f"A person lets it go on with: {extend_command(state, short=True)}"
    )


def waits_for_ack(circuit: CircuitState) -> str:
    """Why no prompt is taken: only a person closes the circuit."""
    return (
        f"Circuit breaker tripped: {circuit.trip_reason}.\nA person lets it go on with: lopen circuit ack"
        " (in a terminal of their own), then this prompt again."
    )


def beside_probe(rule: str, tool: str) -> str:
    """Why a call waits for another one."""
    return (
        f"Calls are paused after {rule}: one call ({tool}) is being tried, and no other is let through"
        " before it ends.\nMake this call again then."
    )


def warning(alert: Alert, budgets: Mapping[str, BudgetState]) -> str:
    """Return the words for the model at a warning threshold."""
    from lopen.limits.wording import used_of  # only where it is said

    state = budgets.get(alert.budget_id)
    if state is None or not alert.utilization:  # of money
        return f"## Budget Warning\n{alert.message}"
    return (
        f"## Budget Warning\nToken usage at {percent(alert.utilization)} ({used_of(state)})."
        " Consider wrapping up current task."
    )


def warned(alert: Alert) -> str:
    """The same for the person."""
    return f"lopen: {alert.message}"


def recovered(state: BudgetState, circuit: CircuitState) -> str:
    """Work goes on after it was held."""
    how = "one call is tried" if circuit.state == "half_open" else "calls are let through again"
    return f"lopen: {how}. {budget_line(state)}"


def guarded(state: BudgetState, circuit: CircuitState, limits: AgentLimits) -> str:
    """The line at a session's start: what is guarded, and how much is left."""
    left = "no limit on tokens" if state.remaining is None else f"{state.remaining:,} tokens left"
    return (
        f"lopen guards this session: {left} ({percent(state.utilization)} used), {in_words(circuit)},"
        f" {limits.max_concurrent_agents} sub-agents at once."
    )


def budget_line(state: BudgetState) -> str:
    """Tokens used of those allowed."""
    from lopen.limits.wording import used_of  # only where it is said

    kind = f"Task budget ({state.spec.task_description})" if state.budget_type == "task" else "Session budget"
    if state.max_tokens <= 0:
        return f"{kind}: {state.tokens_used:,} tokens (unlimited)"
    return f"{kind}: {used_of(state)} tokens ({percent(state.utilization)})"


def circuit_line(circuit: CircuitState, book: RuleBook) -> str:
    """State and calls of a circuit."""
    most = book["max_iterations"]
    of = f"/{most.threshold}" if most.enabled else ""
    return f"Circuit breaker: {in_words(circuit)} ({circuit.calls.iteration_count}{of} iterations)"
