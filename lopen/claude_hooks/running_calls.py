"""Calls under way in a Claude Code session: begun by one event, ended by another, kept in the session's memo between."""

from __future__ import annotations

from lopen.claude_hooks.event import AGENT_TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT = 64  # calls under way that are remembered
_KEY = "pending"


class Pending:
    """The calls by name: Claude Code's id of a call, or its signature where an event names none."""

    def __init__(self, memo: dict[str, Any]) -> None:
        self._memo = memo

    @property
    def _calls(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self._memo.get(_KEY, {})
        return found

    def clear(self) -> None:
        """A session starts: nothing is under way."""
        self._memo[_KEY] = {}

    def begin(self, name: str, tool: str, signature: str) -> None:
        """A call was let through."""
        self._memo[_KEY] = dict([*self._calls.items(), (name, [tool, signature])][-KEPT:])

    def end(self, name: str) -> tuple[str, str] | None:
        """Tool and signature of a call that has ended; None where it was not known."""
        calls = self._calls
        found = calls.pop(name, None)
        self._memo[_KEY] = calls
        return (found[0], found[1]) if found else None

    def name_of(self, signature: str) -> str:
        """The oldest call of this signature, for an event that does not say which one ended."""
        return next((name for name, (_, sign) in self._calls.items() if sign == signature), signature)

    def tool_of(self, mark: str) -> str:
        """The tool of the call that a circuit knows by `mark`."""
        tool: str = self._calls.get(mark, [mark.partition(":")[0]])[0]
        return tool

    def agent_marks(self) -> frozenset[str]:
        """What a circuit may know the sub-agents by that are under way."""
        agents = [(name, sign) for name, (tool, sign) in self._calls.items() if tool in AGENT_TOOLS]
        return frozenset(mark for pair in agents for mark in pair)
