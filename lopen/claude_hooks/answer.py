"""What a hook answers, and how Claude Code wants it written.

A refusal is JSON with exit 0, which Claude Code shows as the reason alone; exit 2 would read as a hook that broke.
The older, plain shape knows exit 2 only.
"""

from __future__ import annotations

import json

from lopen.base.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    return ALLOWED, json.dumps(fields) + "\n" if fields else "", ""


def _plain(answer: Answer) -> tuple[int, str, str]:
    reason = answer.block or answer.stop
    if reason:
        reason = "\n\n".join((reason, *answer.context))
        fields: dict[str, Any] = {"reason": reason} | (
            {"continue": False, "stopReason": answer.stop} if answer.stop else {}
        )
        return BLOCKED, json.dumps(fields) + "\n", reason + "\n"
    if answer.context:
        return ALLOWED, json.dumps({"additionalContext": "\n\n".join(answer.context)}) + "\n", ""
    return ALLOWED, "", ""
