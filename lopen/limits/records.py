"""Records that a store keeps beside budgets and circuits, and all of them as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from lopen.models.messages import Usage

if TYPE_CHECKING:
    from lopen.core.events import Event


V = TypeVar("V")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVIDENCE_KEPT = 100  # alerts of each budget, incidents of each circuit


@dataclass(frozen=True, slots=True)
class Alert:
    """Something a person should know."""

    alert_id: str
    budget_id: str
    alert_type: str
    message: str
    utilization: float = 0.0
    timestamp: datetime = EPOCH
    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class Incident:
    """An entry of the incident log: a circuit tripped, or a person granted, reset or lifted something."""

    circuit_id: str
    rule: str
    seen: str
    at: datetime
    until: float | None = None
    needs_ack: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """Tokens promised to a request that is under way; a crash leaves it behind, to be charged as its estimate."""

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

    @property
    def used_at_most(self) -> int:
        """Tokens that the request has used if it was cut off."""
        return self.tokens if self.estimate is None else self.estimate


@dataclass(frozen=True, slots=True)
class Spend:
    """Tokens that one agent used of one model, charged to one budget: running totals."""

    budget_id: str
    agent: str
    model: str
    usage: Usage = field(default_factory=Usage)
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0


def new_id() -> str:
    """16 hex digits that nothing else has."""
    return os.urandom(8).hex()


def raised(alerts: Sequence[Alert]) -> tuple[Event, ...]:
    """The events for alerts."""
    from lopen.core.events import AlertRaised  # late: a hook raises none

    return tuple(AlertRaised(a.alert_type, a.budget_id, a.message, round(a.utilization, 4)) for a in alerts)


def dump(value: object) -> str:
    """One JSON value; a dataclass becomes an object of the fields that are not as they are by default."""
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def field_values(value: Any) -> dict[str, Any]:
    """Every field of a dataclass by name, nested values as they are."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    kind: Any = type(value)
    return {name: each for name, default in _defaults(kind) if (each := getattr(value, name)) != default}


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in fields(kind))


class UnreadableRecord(Exception):
    """A store holds something that lopen did not write there."""


def load(kind: type[V], text: str) -> V:
    """The value written by `dump`; fields of a newer writer are left out. `UnreadableRecord` if it is none."""
    return decoded(kind, parsed(text))


def parsed(text: str) -> Any:
    """The JSON data of a text; `UnreadableRecord` if it has none."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnreadableRecord(f"not stored by lopen: {error}") from error


def decoded(kind: type[V], value: Any) -> V:
    """The value of type `kind` that JSON data describes; `UnreadableRecord` where it describes none."""
    described: Any = kind
    try:
        found: V = _decoder(described)(value)
    except (TypeError, AttributeError, ValueError) as error:
        raise UnreadableRecord(f"not a stored {kind.__name__}: {error}") from error
    return found


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a value of a type from JSON data: plain functions, for hooks have no time to import pydantic."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        of = {name: _decoder(each) for name, each in get_type_hints(kind).items()}
        return lambda value: kind(**{name: of[name](each) for name, each in value.items() if name in of})
    if origin is UnionType:
        inner = _decoder(next(part for part in parts if part is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin is tuple and parts[-1] is Ellipsis:
        item = _decoder(parts[0])
        return lambda value: tuple(map(item, value))
    if origin is tuple:
        items = tuple(map(_decoder, parts))
        return lambda value: tuple(of(each) for of, each in zip(items, value, strict=True))
    if kind is datetime:
        return datetime.fromisoformat
    plain = (int, float) if kind is float else kind if isinstance(kind, type) else object

    def checked(value: Any) -> Any:
        if not isinstance(value, plain):
            raise TypeError(f"{value!r} is no {kind.__name__}")
        return value

    return checked
