"""Texts about settings for people: the default, who may set it, and the value of a circuit's rule that is not set."""

from __future__ import annotations

from lopen.limits.circuits.rules import BY_NAME
from lopen.settings.keys import Key, Value, shown

WHO = {
    "anyone": "you or the project",
    "lower": "you; the project may lower it",
    "raise": "you; the project may switch it on",
    "confirm": "you; the project, once you confirm",
    "user_only": "you",
}


def default_text(key: Key) -> str:
    """Return the default as TOML writes it; for a circuit rule the value that the rule brings along."""
    value = key.default
    if value is None:
        own = rule_value(key.name)
        return f"unset ({own})" if own else "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "none"
    if isinstance(value, list):
        return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:,}`".replace(",", "_")


def rule_value(name: str) -> str:
    """Return the circuit rule's own value of an unset key `circuit.<rule>.<part>`; "" where the rule has none."""
    _, rule_name, part = name.split(".")
    rule = BY_NAME[rule_name]
    window = f"{rule.window:g} {rule.unit}" if rule.window else ""
    ladder = f"{rule.ladder[0]:g}" if rule.ladder else ""
    return {"threshold": str(rule.threshold), "window": window, "cooldown_base": ladder}[part]


def value_text(name: str, value: Value, *, limit: int) -> str:
    """Return the value in force on one line."""
    return rule_value(name) or "none" if value is None else shown(name, value, limit=limit)
