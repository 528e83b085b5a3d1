"""New usage in a Claude Code transcript: read from where the last event stopped, each message once.

A message is written as several lines that repeat its id and its usage, the last one complete: the
highest count seen for an id is what it used.
"""

from __future__ import annotations

import json
import os
import stat

from lopen.base.value import Value
from lopen.claude_hooks.event import usage_of
from lopen.limits.budgets.budget import BudgetUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_AT_ONCE = 4 * 1024 * 1024  # the rest is read with the next event
IDS_KEPT = 32


class TranscriptUsage(Value):
    """Where the next reading starts, what is new, and which tool calls were answered with an error."""

    offset: int
    seen: dict[str, list[int]]  # message id → counts already charged
    usage: dict[str, BudgetUsage]  # model → what is new
    last_id: str
    failed: tuple[str, ...]


def read(path: str, session: str, offset: int, seen: dict[str, list[int]]) -> TranscriptUsage:
    """What the transcript holds beyond `offset`; nothing new where it cannot be read."""
    seen = dict(seen)
    usage: dict[str, BudgetUsage] = {}
    failed: list[str] = []
    last_id = ""
    text, offset = _new_text(path, offset)
    for line in text.split("\n"):  # not splitlines: a message may hold U+2028 and its kin unescaped
        entry = _entry(line, session)
        message = entry.get("message")
        if not isinstance(message, dict):
            continue
        failed += _errors(message)
        message_id, counted = message.get("id"), usage_of(message)
        if entry.get("type") != "assistant" or not isinstance(message_id, str) or entry.get("isSidechain"):
            continue
        last_id = message_id[:100]
        if counted is not None:
            new = _beyond(counted, seen.get(last_id))
            seen[last_id] = [
                max(a, b) for a, b in zip(_counts(counted), seen.get(last_id, [0] * 4), strict=False)
            ]
            model = str(message.get("model", ""))[:100]
            usage[model] = _sum(usage.get(model, BudgetUsage()), new)
    kept = dict(list(seen.items())[-IDS_KEPT:])
    return TranscriptUsage(
        offset, kept, {m: u for m, u in usage.items() if any(_counts(u))}, last_id, tuple(failed)
    )


def _new_text(path: str, offset: int) -> tuple[str, int]:
    """Whole lines beyond `offset`, and where they end. A file that shrank is followed from its end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return "", offset
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size <= offset:
            return "", min(offset, status.st_size)
        file.seek(offset)
        found = file.read(MOST_AT_ONCE)
    end = found.rfind(b"\n") + 1
    if not end and len(found) == MOST_AT_ONCE:
        end = len(found)  # a line longer than all that: its rest is no JSON and is passed over
    return found[:end].decode("utf-8", "replace"), offset + end


def _entry(line: str, session: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(entry, dict) or entry.get("sessionId", session) != session:
        return {}
    return entry


def _errors(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result" and block.get("is_error") is True:
            yield str(block.get("tool_use_id", ""))[:200]


def _counts(usage: BudgetUsage) -> list[int]:
    return list(usage.fields().values())


def _beyond(usage: BudgetUsage, charged: list[int] | None) -> BudgetUsage:
    return BudgetUsage(
        *(max(0, new - old) for new, old in zip(_counts(usage), charged or [0] * 4, strict=False))
    )


def _sum(one: BudgetUsage, other: BudgetUsage) -> BudgetUsage:
    return BudgetUsage(*(a + b for a, b in zip(_counts(one), _counts(other), strict=True)))
