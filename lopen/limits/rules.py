"""The circuit rules as one table, and how the settings change them.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

UNVERIFIABLE = "say what is done and what is in the way"
HISTORY = 50  # ten turns of five calls
LADDER = (5.0, 10.0, 30.0, 60.0, 300.0)
LAST_RUNG = len(LADDER)  # the trip in a row that needs a person
TOOLS: tuple[str, ...] = ("tool", "external")


@dataclass(frozen=True, slots=True)
class CircuitRule:
    """When a circuit trips, and how it recovers.

    `kinds` are the calls that the rule counts; where it is `own`, its circuit holds these kinds alone, else all.
    `over` tells "more than N" from "N". `window` is counted in `unit`: seconds, turns, the task, or the calls of
    a row (then it is 0). `ladder` holds the cooldown in seconds of the first, second, … trip in a row; empty where
    only a person's acknowledgement lets calls go on. `seen` describes a count.
    """

    name: str
    kinds: tuple[str, ...]
    threshold: int
    over: bool
    window: float
    unit: Literal["seconds", "turns", "task", "row"]
    ladder: tuple[float, ...]
    seen: str
    instead: str
    own: bool = False
    enabled: bool = True

    @property
    def needs_ack(self) -> bool:
        """Only a person can let work go on."""
        return not self.ladder

    def trips(self, count: int) -> bool:
        """Return True if so many in the window are too many."""
        return self.enabled and (count > self.threshold if self.over else count >= self.threshold)

    def cooldown(self, trips_in_row: int) -> float:
        """Seconds to wait after the n-th trip in a row (from 1)."""
        return self.ladder[min(trips_in_row, len(self.ladder)) - 1] if self.ladder else 0.0

    def counted(self, window: tuple[float, ...], at: float) -> tuple[float, ...]:
        """Return the window with a call at this second or turn; a clock that was set back empties it."""
        kept = [each for each in window if 0 <= at - each < self.window]
        return (*kept, at)[-(self.threshold + 1) :]


# fmt: off
RULES: tuple[CircuitRule, ...] = (
    CircuitRule(
        "max_iterations", TOOLS, 50, False, 0, "task", (),
        "{count} tool calls since {since}",
        "run the verification, or say in the task's note what is in the way",
    ),
    CircuitRule(
        "duplicate_call", TOOLS, 5, False, 0, "row", (),
        "{tool} was called {count} times in a row with the same arguments",
        "the result will not change: use what it gave, or try another way",
    ),
    CircuitRule(
        "rapid_fire", TOOLS, 20, False, 10, "seconds", (60.0,),
        "{count} calls within {window:g} s",
        "gather what is needed in fewer, larger calls",
    ),
    CircuitRule(
        "tool_failure", TOOLS, 3, True, 5, "turns", LADDER,
        "{tool} failed {count} times within {window:g} turns",
        "read the error, check the premises, take another tool or path",
    ),
    CircuitRule(
        "sequential_tool", TOOLS, 10, True, 1, "turns", LADDER,
        "{tool} was called {count} times in one turn",
        "search first, or do the work of many calls in one command",
    ),
    CircuitRule(
        "hook_recursion", ("hook",), 5, True, 10, "turns", LADDER,
        "the hook {tool} ran {count} times within {window:g} turns",
        "do not call the hook from what it hooks",
        own=True,
    ),
    CircuitRule(
        "agent_spawn", ("agent",), 5, True, 10, "turns", LADDER,
        "{count} sub-agents were started within {window:g} turns",
        "let the running sub-agents finish, or do it yourself",
        own=True,
    ),
    CircuitRule(
        "external_api", ("external", "oracle"), 10, True, 60, "seconds", LADDER,
        "{count} external calls within {window:g} s",
        "work with the answers at hand until the window is free",
        own=True,
    ),
)
# fmt: on
BY_NAME: Mapping[str, CircuitRule] = {rule.name: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules that hold here, with the limits that stand beside them.

    `history`: calls remembered for finding patterns. `verifiable`: there are verify commands, from the last passing
    one of which `max_iterations` counts.
    """

    rules: Mapping[str, CircuitRule] = field(default_factory=lambda: BY_NAME)
    api_session_max: int = 50
    enabled: bool = True
    history: int = HISTORY
    verifiable: bool = True

    def __getitem__(self, name: str) -> CircuitRule:
        return self.rules[name]


def _configured(rule: CircuitRule, settings: Mapping[str, Any]) -> CircuitRule:
    """`rule` with `circuit.<rule>.enabled/threshold/window/cooldown_base`; None keeps its own value.

    A cooldown base scales the whole ladder, so that its first rung is the base.
    """
    changes: dict[str, Any] = {"enabled": settings.get("enabled", True)}
    for key in ("threshold", "window"):
        if settings.get(key) is not None:
            changes[key] = settings[key]
    base = settings.get("cooldown_base")
    if base is not None and rule.ladder:
        changes["ladder"] = tuple(base * rung / rule.ladder[0] for rung in rule.ladder)
    return replace(rule, **changes)


def rule_book(
    circuit: Mapping[str, Any],
    *,
    api_session_max: int = 50,
    exempt: tuple[str, ...] = (),
    history: int = HISTORY,
    verifiable: bool = True,
) -> RuleBook:
    """The book of the settings' `circuit` table. `exempt` rules never trip (a model on loopback, a replay)."""
    rules = {r.name: _configured(r, circuit.get(r.name) or {}) for r in RULES}
    rules |= {name: replace(rules[name], enabled=False) for name in exempt}
    if not verifiable:
        rules["max_iterations"] = replace(rules["max_iterations"], instead=UNVERIFIABLE)
    return RuleBook(rules, api_session_max, bool(circuit.get("enabled", True)), history, verifiable)
