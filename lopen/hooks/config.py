"""The few settings a hook needs, read without the schema (which costs more than a hook may take).

`KEYS` repeats the schema's defaults and trust rules; a test holds the two together. Order and trust are
the contract's (§12, §13): defaults, the user's file, the project's file where it tightens, the environment.
"""

from __future__ import annotations

import os
import sys

from lopen.limits.budget import BudgetSpec
from lopen.limits.rules import BY_NAME, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

AGENT = "claude-code"

# key → (default, trust: lower, raise or user_only)
KEYS: dict[str, tuple[Any, str]] = {
    "budget.enabled": (True, "raise"),
    "budget.enforcement": ("hard", "user_only"),
    "budget.session_tokens": (500_000, "lower"),
    "budget.warning_threshold": (0.8, "lower"),
    "budget.pause_threshold": (1.0, "lower"),
    "budget.cache_read_weight": (0.1, "user_only"),
    "budget.store": ("sqlite", "user_only"),
    "budget.key_prefix": ("lopen", "user_only"),
    "budget.ttl_s": (86_400, "user_only"),
    "circuit.enabled": (True, "raise"),
    "resources.max_concurrent_agents": (5, "lower"),
    "resources.max_agents_per_session": (10, "lower"),
    "resources.agent_spawn_cooldown_s": (10.0, "user_only"),
    "resources.api_session_max": (50, "lower"),
    "resources.cost_warn_usd": (1.0, "lower"),
    "resources.cost_block_usd": (5.0, "lower"),
    "hooks.external_commands": (["oracle.py", "swarm.py", "research.py"], "user_only"),
    "hooks.timeout_s": (2.0, "user_only"),
}
for _rule in RULES:
    KEYS[f"circuit.{_rule.name}.enabled"] = (True, "raise")
    KEYS[f"circuit.{_rule.name}.threshold"] = (None, "lower")
    KEYS[f"circuit.{_rule.name}.window"] = (None, "user_only")
    KEYS[f"circuit.{_rule.name}.cooldown_base"] = (None, "user_only")

ENVIRONMENT = {
    "TOKEN_BUDGET_ENABLED": "budget.enabled",
    "TOKEN_BUDGET_SESSION_DEFAULT": "budget.session_tokens",
    "TOKEN_BUDGET_ALERT_THRESHOLD": "budget.warning_threshold",
    "TOKEN_BUDGET_PAUSE_THRESHOLD": "budget.pause_threshold",
    "TOKEN_BUDGET_TTL": "budget.ttl_s",
    "CIRCUIT_BREAKER_ENABLED": "circuit.enabled",
    "CIRCUIT_BREAKER_MAX_ITERATIONS": "circuit.max_iterations.threshold",
    "CIRCUIT_BREAKER_DUPLICATE_THRESHOLD": "circuit.duplicate_call.threshold",
    "CIRCUIT_BREAKER_RAPID_FIRE_WINDOW": "circuit.rapid_fire.window",
    "CIRCUIT_BREAKER_RAPID_FIRE_THRESHOLD": "circuit.rapid_fire.threshold",
    "CIRCUIT_BREAKER_COOLDOWN": "circuit.rapid_fire.cooldown_base",
}
_WORDS = ("budget", "circuit", "resources", "hooks")


def load(root: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Every key of `KEYS` with its value; what a file or variable says wrongly is left out."""
    values = {key: default for key, (default, _) in KEYS.items()}
    for key, value in _file(user_config(environ)):
        if _fits(key, value):
            values[key] = value
    for key, value in _file(os.path.join(root, ".lopen", "config.toml")):
        if _fits(key, value) and _tightens(key, value, values[key]):
            values[key] = value
    for key, value in _variables(environ):
        if _fits(key, value):
            values[key] = value
    return values


def table(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    """One section as nested tables, as the schema would give it."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        head, _, rest = key.partition(".")
        if head == section:
            name, _, leaf = rest.partition(".")
            if leaf:
                found.setdefault(name, {})[leaf] = value
            else:
                found[name] = value
    return found


def session_spec(settings: dict[str, Any], session: str) -> BudgetSpec:
    """The budget of a Claude Code session."""
    budget = table(settings, "budget")
    return BudgetSpec(
        f"session:{session}",
        "session",
        budget["session_tokens"] if budget["enabled"] else 0,
        agent=AGENT,
        alert_threshold=budget["warning_threshold"],
        pause_threshold=budget["pause_threshold"],
        enforcement=budget["enforcement"],
    )


def user_config(environ: Mapping[str, str]) -> str:
    """The user's own configuration file."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "lopen", "config.toml")
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(base, "lopen", "config.toml")


def _file(path: str) -> Iterator[tuple[str, Any]]:
    """The file's values by dotted key. A TOML parser is loaded only where a line speaks of these tables."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(1_000_000)
    except (OSError, ValueError):
        return
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    if not any(word in line for line in lines for word in _WORDS):
        return
    import tomllib

    try:
        yield from _dotted(tomllib.loads(text), "")
    except (ValueError, RecursionError):
        return


def _dotted(tree: Mapping[str, Any], head: str) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{head}{name}.")
        else:
            yield head + name, value


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name, key in ENVIRONMENT.items():
        if name in environ:
            yield key, _parsed(key, environ[name])
    for name, text in environ.items():
        if name.startswith("LOPEN_") and "__" in name:
            key = name[len("LOPEN_") :].lower().replace("__", ".")
            yield key, _parsed(key, text)


def _parsed(key: str, text: str) -> Any:
    """A variable's text as the key's kind of value; None (which fits no key that matters) if it is none."""
    default = KEYS.get(key, ("",))[0]
    text = text.strip()
    if isinstance(default, bool):
        return {
            "true": True,
            "1": True,
            "yes": True,
            "on": True,
            "false": False,
            "0": False,
            "no": False,
            "off": False,
        }.get(text.lower())
    if isinstance(default, list):
        return [part.strip().strip("\"'") for part in text.strip("[]").split(",") if part.strip()]
    if isinstance(default, str):
        return text
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return None


def _fits(key: str, value: Any) -> bool:
    """Of the right kind and not negative; integers serve as numbers, booleans only as themselves."""
    if key not in KEYS or value is None:
        return False
    default = KEYS[key][0]
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, str):
        return isinstance(value, str)
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    if isinstance(default, int) or key.endswith(".threshold"):
        return isinstance(value, int) and value >= 0
    return isinstance(value, int | float) and value >= 0


def _tightens(key: str, value: Any, current: Any) -> bool:
    """A repository's file may only tighten; 0 is "unlimited" and the loosest."""
    trust = KEYS[key][1]
    if trust == "raise":
        return value is True
    if trust != "lower" or value == 0:
        return False
    if current is None:
        current = BY_NAME[key.split(".")[1]].threshold
    return bool(current == 0 or value <= current)
