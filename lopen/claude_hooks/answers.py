"""A hook's answer: its message about budget and circuit, in Claude Code's form.

A refusal takes two lines, all else one. It is JSON with exit code 0, of which Claude Code shows the reason alone; exit
code 2 would read as a hook that broke.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lopen.limits.agents import AgentLimits
from lopen.limits.budget import BudgetState, extend_command, percent, used_of
from lopen.limits.circuits import CircuitState, RuleBook
from lopen.limits.records import Alert
from lopen.limits.report import in_words

# lopen's word for an event → Claude Code's
EVENTS = {
    "pre-tool-use": "PreToolUse",
    "post-tool-use": "PostToolUse",
    "post-tool-use-failure": "PostToolUseFailure",
    "post-tool-batch": "PostToolBatch",
    "user-prompt-submit": "UserPromptSubmit",
    "session-start": "SessionStart",
    "session-end": "SessionEnd",
    "stop": "Stop",
    "subagent-start": "SubagentStart",
    "subagent-stop": "SubagentStop",
    "pre-compact": "PreCompact",
}
_WITH_CONTEXT = frozenset(
    ["pre-tool-use", "post-tool-use", "post-tool-use-failure", "user-prompt-submit", "session-start"]
)
_REFUSABLE = frozenset(["user-prompt-submit", "stop"])


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision about one event.

    `block`: why the call, the prompt or the end of the turn is refused. `stop`: why the loop ends here. `context` is
    for the model, `tell` for the person, `log` for the log and the person.
    """

    block: str = ""
    stop: str = ""
    context: tuple[str, ...] = ()
    tell: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


def written(name: str, answer: Answer) -> str:
    """Return the standard output for the event `name`."""
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
    return json.dumps(fields) + "\n" if fields else ""


def exhausted(state: BudgetState) -> str:
    """Why nothing more may be done, and how to go on."""
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


def warning(alert: Alert, state: BudgetState) -> str:
    """Return the words for the model at a warning threshold of the session's budget."""
    if not alert.utilization:  # of money
        return f"## Budget Warning\n{alert.message}"
    return (
        f"## Budget Warning\nToken usage at {percent(alert.utilization)} ({used_of(state)})."
        " Consider wrapping up current task."
    )


def guarded(state: BudgetState, circuit: CircuitState, limits: AgentLimits) -> str:
    """Return the line at a session's start: the guarded budgets and their rest."""
    left = "no limit on tokens" if state.remaining is None else f"{state.remaining:,} tokens left"
    return (
        f"lopen guards this session: {left} ({percent(state.utilization)} used), {in_words(circuit)},"
        f" {limits.max_concurrent_agents} sub-agents at once."
    )


def budget_line(state: BudgetState) -> str:
    """Tokens used of those allowed."""
    if state.max_tokens <= 0:
        return f"Session budget: {state.tokens_used:,} tokens (unlimited)"
    return f"Session budget: {used_of(state)} tokens ({percent(state.utilization)})"


def circuit_line(circuit: CircuitState, book: RuleBook) -> str:
    """State and calls of a circuit."""
    most = book["max_iterations"]
    of = f"/{most.threshold}" if most.enabled else ""
    return f"Circuit breaker: {circuit.state} ({circuit.calls.iteration_count}{of} iterations)"
