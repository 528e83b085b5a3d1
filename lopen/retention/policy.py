"""The retention limits: the settings' `memory` and `session` tables as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lopen.settings.schema import Settings

SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits that rotate a log, and the number of rotations to keep. Sizes in bytes, ages in seconds."""

    max_bytes: int = 50 * 1024
    max_lines: int = 1_000
    max_age_s: float = 7 * SECONDS_PER_DAY
    keep: int = 5


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Limits beyond which data is archived, moved to segments or dropped."""

    logs: LogLimits = LogLimits()
    sessions: int = 10  # the newest ones; all unfinished ones stay
    session_age_s: float = 7 * SECONDS_PER_DAY  # since a session finished
    evidence: int = 100
    tool_history: int = 50
    state_bytes: int = 5 * 1024 * 1024
    limits_age_s: float = SECONDS_PER_DAY  # of counters of Claude Code's sessions, since their last change


def retention_policy(settings: Settings) -> RetentionPolicy:
    """Return the policy of the settings."""
    memory, session = settings.memory, settings.session
    return RetentionPolicy(
        LogLimits(
            memory.log_max_kb * 1024,
            memory.log_max_lines,
            memory.log_max_age_days * SECONDS_PER_DAY,
            memory.log_keep,
        ),
        session.retention,
        session.retention_days * SECONDS_PER_DAY,
        memory.evidence_max,
        memory.tool_history_max,
        memory.state_max_mb * 1024 * 1024,
        settings.budget.ttl_s,
    )
