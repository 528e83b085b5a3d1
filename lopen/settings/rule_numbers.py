"""The numbers of the circuit rules, without pydantic: hooks read them too, and have little time to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleNumbers:
    """A rule's count, its window in seconds or turns (0: it has none), and the seconds of its first cooldown.

    Without a cooldown (None) only a person's acknowledgement lets calls go on.
    """

    threshold: int
    window: float = 0.0
    cooldown_base: float | None = None


RULE_NUMBERS: Mapping[str, RuleNumbers] = {
    "max_iterations": RuleNumbers(50),
    "duplicate_call": RuleNumbers(5),
    "rapid_fire": RuleNumbers(20, 10.0, 60.0),
    "tool_failure": RuleNumbers(3, 5.0, 5.0),
    "sequential_tool": RuleNumbers(10, 1.0, 5.0),
    "hook_recursion": RuleNumbers(5, 10.0, 5.0),
    "agent_spawn": RuleNumbers(5, 10.0, 5.0),
    "external_api": RuleNumbers(10, 60.0, 5.0),
}
