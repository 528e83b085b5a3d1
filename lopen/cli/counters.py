"""The guardrails' counters of a session against their limits, for `lopen status`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lopen.guardrails.habits import Habits
from lopen.limits.circuit import CircuitState
from lopen.settings.schema import Settings
from lopen.storage.database import Database
from lopen.workflow.pauses import FAILURES_TO_ASK
from lopen.workflow.session import Session


@dataclass(frozen=True, slots=True)
class Counter:
    """One count and what it may reach before lopen acts; `rung` is the escalation that was recorded for it."""

    name: str
    used: int
    limit: int
    rung: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.used}/{self.limit}" + (f" ({self.rung})" if self.rung else "")


def counters(
    session: Session, settings: Settings, habits: Habits, circuit: CircuitState | None
) -> list[Counter]:
    """Every counter, the worst failures by their task."""
    confirmed = session.confirmed
    found = [
        Counter("iterations", session.iterations, session.iterations_granted),
        Counter("questions asked", session.clarifications, settings.workflow.max_clarifications),
        *_failures(session, settings.workflow.failure_threshold),
        Counter(
            "failed boundaries in a row",
            session.boundary_failures,
            confirmed.get("boundary", 0) + FAILURES_TO_ASK,
        ),
        Counter(
            "added tasks",
            sum(t.added for t in session.tree.tasks),
            max(session.planned_tasks, 1) + confirmed.get("added", 0),
        ),
        Counter(
            "files edited since the last test run",
            len(habits.edited),
            settings.tool_discipline.max_files_edited,
        ),
    ]
    if circuit is not None:
        found += [
            Counter("calls since the last passing verify", circuit.iteration_count, circuit.max_iterations),
            Counter("identical calls in a row", circuit.duplicate_call_count, circuit.duplicate_threshold),
        ]
    return found


def _failures(session: Session, threshold: int) -> list[Counter]:
    counts = {t.id: t.failures for t in session.tree.tasks if t.failures and not t.given_up}
    if session.step_failures:
        counts[session.step.value] = session.step_failures
    return [
        Counter(
            f"failures in a row of {subject}",
            failures,
            max(threshold, session.confirmed.get(subject, 0)),
            session.pressure.get(subject, ""),
        )
        for subject, failures in counts.items()
    ]


def kept_habits(database: Database, session_id: str) -> Habits:
    """The habits counted so far; none where nothing readable is kept."""
    row = database.connection.execute("SELECT body FROM habits WHERE session=?", (session_id,)).fetchone()
    try:
        return Habits.from_json(row["body"]) if row else Habits()
    except ValueError:
        return Habits()


def counter_objects(found: list[Counter]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(c) for c in found]
