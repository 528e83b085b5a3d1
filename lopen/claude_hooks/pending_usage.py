"""Tokens that an event carried and no store took: kept in `.lopen/owed/`, a file each, until they are counted.

No transcript tells them again. Whoever reaches the store next, an event or a command, counts them. An event has an
id that is noted in the transaction that counts it, so that it counts once, also where it was unknown whether that
transaction came to its end. A file carries this person's seal: what a repository brought along charges nobody.
"""

from __future__ import annotations

import os

from lopen.claude_hooks.config import AGENT, session_spec
from lopen.core.person import holds, sealed
from lopen.core.quick_stdlib import Value, dumps, loads
from lopen.limits.budget import BudgetUsage, Charge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from lopen.limits.records import Alert
    from lopen.limits.store import LimitsStore, Rows

FOLDER = os.path.join(".lopen", "owed")
SUFFIX = ".json"
MOST_FILES = 1_000
MOST_AT_ONCE = 32
IDS_KEPT = 64
MOST_BYTES = 10_000


class Owed(Value):
    """The tokens of one event. `event_id`: 16 hex digits."""

    event_id: str
    session: str
    model: str
    counts: tuple[int, ...]


def keep(root: str, owed: Owed) -> None:
    """Durable at the return. OSError where it cannot be; a folder that is full takes no more."""
    from lopen.core.files import replace_file  # only for what could not be counted

    folder = os.path.join(root, FOLDER)
    os.makedirs(folder, exist_ok=True)
    if os.path.islink(folder) or len(os.listdir(folder)) >= MOST_FILES:
        raise OSError(0, f"{folder} is a link or full")
    fields = owed.fields()
    text = dumps({**fields, "seal": sealed("owed", dumps(fields, sort_keys=True))})
    replace_file(_path(root, owed.event_id), text.encode())


def waiting(root: str) -> list[Owed]:
    """Return the tokens that wait, at most so many events as are counted at once."""
    folder = os.path.join(root, FOLDER)
    try:
        if os.path.islink(folder):
            return []
        names = sorted(n for n in os.listdir(folder) if n.endswith(SUFFIX))
    except OSError:
        return []
    found = (_read(folder, name) for name in names[:MOST_FILES])
    return [owed for owed in found if owed is not None][:MOST_AT_ONCE]


def count(
    rows: Rows, waits: list[Owed], settings: dict[str, Any], now: datetime
) -> dict[str, tuple[Alert, ...]]:
    """Count what waits, part of the transaction around it; the alerts of each session."""
    if not waits:
        return {}
    from lopen.limits.charging import charge_all

    raised: dict[str, tuple[Alert, ...]] = {}
    for owed in waits:
        spec = session_spec(settings, owed.session)
        earlier = rows.budget(spec.budget_id)
        memo: dict[str, Any] = rows.memo(f"hooks:{owed.session}") or {}
        if owed.event_id in memo.get("counted", ()) or (earlier and earlier.spec.agent != AGENT):
            continue
        usage = BudgetUsage(*owed.counts)
        charge = Charge(usage.billed(settings["budget.cache_read_weight"]), usage, 1, None, AGENT, owed.model)
        [(_, alerts)] = charge_all(rows, [spec], charge, now)
        raised[owed.session] = (*raised.get(owed.session, ()), *alerts)
        note(memo, owed.event_id)
        rows.put_memo(f"hooks:{owed.session}", memo)
    return raised


def note(memo: dict[str, Any], event_id: str) -> None:
    """The event is counted."""
    memo["counted"] = [*memo.get("counted", ()), event_id][-IDS_KEPT:]


def forget(root: str, counted: list[Owed]) -> None:
    """They are counted, durably."""
    for owed in counted:
        try:
            os.unlink(_path(root, owed.event_id))
        except OSError:
            continue  # another process was quicker; where it cannot go, its id is known


def settle(store: LimitsStore, settings: dict[str, Any], root: str, now: datetime) -> None:
    """Count what waits, for a command that reaches the store."""
    while waits := waiting(root):
        store.atomically(lambda rows, waits=waits: count(rows, waits, settings, now))  # type: ignore[misc] # mypy infers no lambda with a default
        forget(root, waits)
        if waiting(root)[:1] == waits[:1]:
            return  # they cannot be taken away


def _path(root: str, event_id: str) -> str:
    return os.path.join(root, FOLDER, event_id + SUFFIX)


def _read(folder: str, name: str) -> Owed | None:
    """Return the tokens in a file, None where this person did not write it."""
    try:
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb") as file:
            fields = loads(file.read(MOST_BYTES))
        seal = fields.pop("seal")
        if not holds(seal, "owed", dumps(fields, sort_keys=True)):
            return None
        counts = tuple(fields.pop("counts"))
        owed = Owed(**fields, counts=counts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return owed if name == owed.event_id + SUFFIX and len(counts) == len(BudgetUsage().counts) else None
