"""The few settings a hook needs, read without the schema (which costs more than a hook may take).

`KEYS` and `BOUNDS` repeat the schema's defaults, trust rules and limits; a test holds them together. What is wrong
does not hold, and is said. The order is: defaults, the user's file, the project's file where it tightens, the
environment (docs/reference/configuration.md).
"""

from __future__ import annotations

import os
from dataclasses import replace

from lopen.core.money import MOST_USD, NAMES, ORDER, in_order
from lopen.core.person import config_folder
from lopen.limits.budget import BudgetSpec
from lopen.limits.rules import BY_NAME, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

AGENT = "claude-code"
HOOK_FILE = "/lopen/claude_hooks/hook.py"  # an installed hook runs it
INFINITE = float("inf")
TASK_TYPES = ("planning", "implement", "review", "test", "deploy", "design")

# key → (default, trust: lower, raise or user_only)
KEYS: dict[str, tuple[Any, str]] = {
    "budget.enabled": (True, "raise"),
    "budget.enforcement": ("hard", "user_only"),
    "budget.session_tokens": (2_000_000, "lower"),
    "budget.task_tokens": (400_000, "lower"),
    "budget.by_task_type.planning": (200_000, "lower"),
    "budget.by_task_type.implement": (400_000, "lower"),
    "budget.by_task_type.review": (120_000, "lower"),
    "budget.by_task_type.test": (200_000, "lower"),
    "budget.by_task_type.deploy": (80_000, "lower"),
    "budget.by_task_type.design": (200_000, "lower"),
    "budget.warning_threshold": (0.8, "lower"),
    "budget.confirmation_threshold": (0.9, "lower"),  # read for the order of the three alone
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
    "memory.evidence_max": (100, "lower"),
    "memory.tool_history_max": (50, "user_only"),
    "hooks.external_commands": (["oracle.py", "swarm.py", "research.py"], "user_only"),
    "hooks.check_stops": (False, "raise"),
    "hooks.task_type": ("", "user_only"),
    "hooks.timeout_s": (2.0, "user_only"),
}
for _rule in RULES:
    KEYS[f"circuit.{_rule.name}.enabled"] = (True, "raise")
    KEYS[f"circuit.{_rule.name}.threshold"] = (None, "lower")
    KEYS[f"circuit.{_rule.name}.window"] = (None, "user_only")
    KEYS[f"circuit.{_rule.name}.cooldown_base"] = (None, "user_only")

# key → (the lowest, whether that itself may be, the highest)
BOUNDS: dict[str, tuple[float, bool, float]] = {
    **{f"budget.by_task_type.{kind}": (0, True, INFINITE) for kind in TASK_TYPES},
    "budget.session_tokens": (0, True, INFINITE),
    "budget.task_tokens": (0, True, INFINITE),
    "budget.warning_threshold": (0, False, 1),
    "budget.confirmation_threshold": (0, False, 1),
    "budget.pause_threshold": (0, False, 1),
    "budget.cache_read_weight": (0, True, 1),
    "budget.ttl_s": (1, True, INFINITE),
    "resources.max_concurrent_agents": (1, True, INFINITE),
    "resources.max_agents_per_session": (1, True, INFINITE),
    "resources.agent_spawn_cooldown_s": (0, True, INFINITE),
    "resources.api_session_max": (1, True, INFINITE),
    "resources.cost_warn_usd": (0, True, MOST_USD),
    "resources.cost_block_usd": (0, True, MOST_USD),
    "memory.evidence_max": (1, True, 100_000),
    "memory.tool_history_max": (1, True, 100_000),
    "hooks.timeout_s": (0, False, 30),
}
CHOICES = {"budget.enforcement": ("hard", "warn"), "hooks.task_type": (*TASK_TYPES, "")}
SCHEMES = ("redis://", "rediss://", "unix://")
for _rule in RULES:
    BOUNDS[f"circuit.{_rule.name}.threshold"] = (1, True, INFINITE)
    BOUNDS[f"circuit.{_rule.name}.window"] = (0, False, INFINITE)
    BOUNDS[f"circuit.{_rule.name}.cooldown_base"] = (0, True, INFINITE)
_THRESHOLDS = tuple(f"budget.{name}" for name in NAMES)

ENVIRONMENT = {
    "TOKEN_BUDGET_ENABLED": "budget.enabled",
    "TOKEN_BUDGET_SESSION_DEFAULT": "budget.session_tokens",
    "TOKEN_BUDGET_TASK_DEFAULT": "budget.task_tokens",
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
_WORDS_OF_TRUTH = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(
    ("false", "0", "no", "off"), False
)
_WORDS = ("budget", "circuit", "resources", "memory", "hooks")


def load(root: str, environ: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Every key of `KEYS` with its value, and what a file or variable says wrongly, which is left out.

    The faults name the place and the key, never the value: that may be a secret, or a repository's words.
    """
    values = {key: default for key, (default, _) in KEYS.items()}
    given: set[str] = set()
    faults: list[str] = []

    def take(found: Iterator[tuple[str, str, Any]], *, tightening: bool = False) -> None:
        for place, key, value in found:
            if key not in KEYS:
                continue
            if not _fits(key, value):
                faults.append(f"{place} is not {_wanted(key)}")
            elif not tightening or _tightens(key, value, values[key]):
                values[key] = value
                given.add(key.removeprefix("budget."))

    if own := config_folder(environ):
        take(_file(os.path.join(own, "config.toml"), faults))
    take(_file(os.path.join(root, ".lopen", "config.toml"), faults), tightening=True)
    take(_variables(environ))
    warning, confirmation, pause = (values[key] for key in _THRESHOLDS)
    ordered = in_order((warning, confirmation, pause), given)
    if ordered is None:
        faults.append(f"budget: {ORDER}; the defaults do")
        ordered = (0.8, 0.9, 1.0)
    values |= zip(_THRESHOLDS, ordered, strict=True)
    return values, tuple(faults)


def _wanted(key: str) -> str:
    """Describe the values of a key."""
    if key not in BOUNDS:
        kind = {bool: "true or false", list: "a list of texts"}.get(type(KEYS[key][0]), "one of its texts")
        return f"{kind}, as {key} is"
    low, itself, high = BOUNDS[key]
    kind = "a whole number" if _is_whole(key) else "a number"
    most = "" if high == INFINITE else f" and at most {high}"
    return f"{kind} {'from' if itself else 'above'} {low:g}{most}, as {key} is"


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
    return _spec(settings, f"session:{session}", "session", settings["budget.session_tokens"])


def task_spec(settings: dict[str, Any], session: str, task_type: str) -> BudgetSpec:
    """The budget of a session's task of this type."""
    key = f"budget.by_task_type.{task_type}"
    tokens = settings[key]
    if task_type == "implement" and tokens == KEYS[key][0]:  # it follows the default of all types
        tokens = settings["budget.task_tokens"]
    return replace(_spec(settings, f"task:{session}", "task", tokens), task_description=task_type)


def _spec(settings: dict[str, Any], budget_id: str, kind: str, tokens: int) -> BudgetSpec:
    return BudgetSpec(
        budget_id,
        kind,
        tokens if settings["budget.enabled"] else 0,
        agent=AGENT,
        alert_threshold=settings["budget.warning_threshold"],
        pause_threshold=settings["budget.pause_threshold"],
        enforcement=settings["budget.enforcement"],
    )


def _file(path: str, faults: list[str]) -> Iterator[tuple[str, str, Any]]:
    """The file's values by dotted key. A TOML parser is loaded only where a line speaks of these tables."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(1_000_000)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        faults.append(f"{path} cannot be read ({type(error).__name__}): nothing in it holds")
        return
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    if not any(word in line for line in lines for word in _WORDS):
        return
    import tomllib

    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        import re

        place = re.search(r"line \d+, column \d+|end of document", str(error))
        faults.append(
            f"{path} is not valid TOML ({place[0] if place else type(error).__name__}): nothing in it holds"
        )
        return
    for key, value in _dotted(found, ""):
        yield f"{path}: {key}", key, value


def _dotted(tree: Mapping[str, Any], head: str) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{head}{name}.")
        else:
            yield head + name, value


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    for name, key in ENVIRONMENT.items():
        if name in environ:
            yield name, key, _parsed(key, environ[name])
    for name, text in environ.items():
        if name.startswith("LOPEN_") and "__" in name:
            key = name[len("LOPEN_") :].lower().replace("__", ".")
            yield name, key, _parsed(key, text)


def _parsed(key: str, text: str) -> Any:
    """A variable's text as the key's kind of value; None, which fits no key, if it is none."""
    default = KEYS.get(key, ("",))[0]
    text = text.strip()
    if isinstance(default, bool):
        return _WORDS_OF_TRUTH.get(text.lower())
    if isinstance(default, list):
        return [part.strip().strip("\"'") for part in text.strip("[]").split(",") if part.strip()]
    if isinstance(default, str):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _fits(key: str, value: Any) -> bool:
    """Of the right kind and within its bounds; whole numbers serve as numbers, booleans only as themselves."""
    default = KEYS[key][0]
    if value is None or isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, str):
        return isinstance(value, str) and _fits_text(key, value)
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    low, itself, high = BOUNDS[key]
    kind = isinstance(value, int if _is_whole(key) else int | float)
    return kind and (low <= value if itself else low < value) and value <= high


def _fits_text(key: str, text: str) -> bool:
    if key in CHOICES:
        return text in CHOICES[key]
    if key == "budget.store":
        return text == "sqlite" or (text.startswith(SCHEMES) and not text.endswith("://"))
    return 0 < len(text) <= 64 and text.isascii() and all(c.isalnum() or c in "_.-" for c in text)


def _is_whole(key: str) -> bool:
    return isinstance(KEYS[key][0], int) or (key.startswith("circuit.") and key.endswith(".threshold"))


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
