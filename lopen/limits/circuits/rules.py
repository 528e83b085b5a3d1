"""The circuit rules as data, and how the settings change them. Standard library only.

`over` tells "more than N" from "N": duplicate_call trips at the fifth call, tool_failure after the third.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from lopen.core.quick_stdlib import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

UNVERIFIABLE = "say what is done and what is in the way"
HISTORY = 50  # ten turns of five calls
LADDER = (5.0, 10.0, 30.0, 60.0, 300.0)
LAST_RUNG = len(LADDER)  # the trip in a row that needs a person


class CircuitRule(Value):
    """When a circuit trips, and how it recovers.

    `window` is counted in `unit`: seconds, turns, the task, or the calls of a row (then it is 0).
    `ladder` holds the cooldown in seconds of the first, second, … trip in a row; empty where only a
    person's acknowledgement closes the circuit.
    """

    name: str
    threshold: int
    over: bool
    window: float
    unit: str  # seconds, turns, task, row
    ladder: tuple[float, ...]
    instead: str
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


RULES: tuple[CircuitRule, ...] = (
    CircuitRule(
        "max_iterations",
        50,
        False,
        0,
        "task",
        (),
        "run the verification, or say in the task's note what is in the way",
    ),
    CircuitRule(
        "duplicate_call",
        5,
        False,
        0,
        "row",
        (),
        "the result will not change: use what it gave, or try another way",
    ),
    CircuitRule(
        "rapid_fire", 20, False, 10, "seconds", (60.0,), "gather what is needed in fewer, larger calls"
    ),
    CircuitRule(
        "tool_failure",
        3,
        True,
        5,
        "turns",
        LADDER,
        "read the error, check the premises, take another tool or path",
    ),
    CircuitRule(
        "sequential_tool",
        10,
        True,
        1,
        "turns",
        LADDER,
        "search first, or do the work of many calls in one command",
    ),
    CircuitRule("hook_recursion", 5, True, 10, "turns", LADDER, "do not call the hook from what it hooks"),
    CircuitRule(
        "agent_spawn", 5, True, 10, "turns", LADDER, "let the running sub-agents finish, or do it yourself"
    ),
    CircuitRule(
        "external_api",
        10,
        True,
        60,
        "seconds",
        LADDER,
        "work with the answers at hand until the window is free",
    ),
)
BY_NAME: Mapping[str, CircuitRule] = {rule.name: rule for rule in RULES}


def configured(rule: CircuitRule, settings: Mapping[str, Any]) -> CircuitRule:
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
    return rule.replace(**changes)


class RuleBook(Value):
    """The rules that hold here, with the limits for agents and external calls that stand beside them."""

    rules: Mapping[str, CircuitRule] = BY_NAME
    api_session_max: int = 50
    enabled: bool = True
    history: int = HISTORY  # calls remembered for finding patterns
    verifiable: bool = (
        True  # there are verify commands, from the last passing one of which `max_iterations` counts
    )

    def __getitem__(self, name: str) -> CircuitRule:
        return self.rules[name]


def rule_book(
    circuit: Mapping[str, Any],
    *,
    api_session_max: int = 50,
    exempt: tuple[str, ...] = (),
    history: int = HISTORY,
    verifiable: bool = True,
) -> RuleBook:
    """The book of the settings' `circuit` table. `exempt` rules never trip (a model on loopback, a replay)."""
    rules = {r.name: configured(r, circuit.get(r.name) or {}) for r in RULES}
    rules |= {name: rules[name].replace(enabled=False) for name in exempt}
    if not verifiable:
        rules["max_iterations"] = rules["max_iterations"].replace(instead=UNVERIFIABLE)
    return RuleBook(rules, api_session_max, bool(circuit.get("enabled", True)), history, verifiable)
