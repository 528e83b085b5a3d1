"""Records that a store keeps beside budgets and circuits, and all of them as JSON."""

from __future__ import annotations

from lopen.core.quick_stdlib import Encoder, Value, datetime, loads
from lopen.guardrails.call_history import CallHistory, WastefulHabit
from lopen.limits.budgets.budget import EPOCH, BudgetUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    V = TypeVar("V", bound=Value)

EVIDENCE_KEPT = 100  # alerts of each budget, incidents of each circuit
_INSTANTS = frozenset({"started_at", "last_updated", "timestamp", "at"})


class Alert(Value):
    """Something a person should know."""

    alert_id: str
    budget_id: str
    alert_type: str
    message: str
    utilization: float = 0.0
    timestamp: datetime = EPOCH
    acknowledged: bool = False


class Incident(Value):
    """A circuit that tripped, or an override a person gave: the incident log."""

    circuit_id: str
    rule: str
    seen: str
    at: datetime
    until: float | None = None
    needs_ack: bool = False


def held_s(incident: Incident) -> float:
    """Seconds for which it held calls back; 0 where a person had to let them go on."""
    return max(0.0, (incident.until or 0.0) - int(incident.at.timestamp()))


class Reservation(Value):
    """Tokens promised to a request that is under way; what a crash leaves here is charged as the estimate."""

    reservation_id: str
    session: str
    owner: str
    budget_ids: tuple[str, ...]
    tokens: int
    agent: str = ""
    at: datetime = EPOCH
    cost_usd: float | None = None  # at most; None where the model has no known price
    estimate: int | None = None  # tokens used so far, if it is cut off; None: all of `tokens`
    estimate_usd: float | None = None  # their cost


class Spend(Value):
    """Tokens that one agent used of one model, charged to one budget: running totals."""

    budget_id: str
    agent: str
    model: str
    usage: BudgetUsage = BudgetUsage()
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0


class Dropped(Value):
    """Entries that a capped list let go: how many entries, and the sum of what each measured."""

    list: str  # alerts or incidents
    owner: str
    count: int
    total: float


def dump(value: Value) -> str:
    """One JSON object."""
    return _ENCODER.encode(value.fields())


def load(kind: type[V], text: str) -> V:
    """The value written by `dump`; fields of a newer writer are left out. ValueError if it is none."""
    return from_fields(kind, loads(text))


def from_fields(kind: type[V], fields: Any) -> V:
    """The value of these plain fields; ValueError where they do not make one."""
    try:
        if (
            "calls" in kind.names and "calls" not in fields
        ):  # written before the history had an object of its own
            fields = fields | {"calls": fields}
        return kind(**{k: _typed(k, v) for k, v in fields.items() if k in kind.names})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not a stored {kind.__name__}: {error}") from error


def _typed(name: str, value: Any) -> Any:
    if name in _INSTANTS and isinstance(value, str):
        return datetime.fromisoformat(value)
    if name == "calls":
        return _history(value)
    if isinstance(value, list):
        return tuple(tuple(v) if isinstance(v, list) else v for v in value)
    return value


def _history(fields: Any) -> CallHistory:
    unchanged, failing, contents = (fields.get(name, {}) for name in ("unchanged", "failing", "contents"))
    return from_fields(CallHistory, fields).replace(
        unchanged={call: (str(seen[0]), int(seen[1])) for call, seen in unchanged.items()},
        failing={call: (int(tree), int(row)) for call, (tree, row) in failing.items()},
        contents={path: (tuple(hashes), int(returns)) for path, (hashes, returns) in contents.items()},
        findings=tuple(from_fields(WastefulHabit, habit) for habit in fields.get("findings", ())),
    )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value.fields()


_ENCODER = Encoder(default=_plain, ensure_ascii=False, separators=(",", ":"))
