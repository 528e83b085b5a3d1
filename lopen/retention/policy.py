"""How much is kept: the settings' `memory` and `session` tables as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lopen.settings.schema import Settings

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class LogLimits:
    """When a log is rotated, and how many rotations stay. Sizes in bytes, ages in seconds."""

    most_bytes: int = 50 * 1024
    most_lines: int = 1_000
    most_age_s: float = 7 * DAY_S
    keep: int = 5


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What stays where it is; all else is archived, moved or dropped."""

    logs: LogLimits = LogLimits()
    sessions: int = 10  # the newest ones; unfinished ones stay whatever their number
    session_age_s: float = 7 * DAY_S  # since a session finished
    evidence: int = 100
    tool_history: int = 50
    state_bytes: int = 5 * 1024 * 1024


def policy_of(settings: Settings) -> RetentionPolicy:
    """The policy that the settings ask for."""
    memory, session = settings.memory, settings.session
    return RetentionPolicy(
        LogLimits(
            memory.log_max_kb * 1024, memory.log_max_lines, memory.log_max_age_days * DAY_S, memory.log_keep
        ),
        session.retention,
        session.retention_days * DAY_S,
        memory.evidence_max,
        memory.tool_history_max,
        memory.state_max_mb * 1024 * 1024,
    )
