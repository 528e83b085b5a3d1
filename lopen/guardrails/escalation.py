"""How the rungs of all tasks stand now, against how they were last recorded: every climb is told once. Pure.

The rungs lie in the session (`Session.pressure`), so that a restart neither forgets a climb nor tells it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lopen.events import EscalationChanged
from lopen.guardrails.churn import Action, Climb, Escalation, Ladder, Pressure
from lopen.guardrails.wording import one_line, times
from lopen.workflow.session import Session

DOES: Mapping[Action, str] = {
    "continue": "goes on",
    "correct": "tells the model to try another way",
    "confirm": "asks a person before another try",
    "halt": "halts until a person confirms another try",
}


@dataclass(frozen=True, slots=True)
class Failing:
    """A task or planning step with its failures in a row."""

    subject: str
    name: str
    failures: int
    note: str = ""
    given_up: bool = False

    @property
    def reason(self) -> str:
        """Why it stands where it does."""
        if self.given_up:
            return "a person gave it up"
        if not self.failures:
            return "no failures in a row any more"
        return f"failed {times(self.failures)} in a row" + (f" ({one_line(self.note)})" if self.note else "")


def escalated(
    session: Session, threshold: int, at: datetime
) -> tuple[Session, tuple[EscalationChanged, ...]]:
    """The session with every rung as it is now, and what climbed or came down since it was last recorded."""
    ladder = Ladder.around(threshold)
    pressure: dict[str, str] = {}
    told: list[EscalationChanged] = []
    for failing in _all(session):
        before = Escalation(ladder, Pressure(session.pressure.get(failing.subject, Pressure.NORMAL)))
        after, action = before.advance(failing.failures, reason=failing.reason, at=at)
        if after.state is not Pressure.NORMAL:
            pressure[failing.subject] = after.state.value
        told += [_told(failing, climb, action) for climb in after.transitions]
    return (replace(session, pressure=pressure) if told else session), tuple(told)


def _all(session: Session) -> Iterator[Failing]:
    """Every task that fails or stands on a rung, the present step, and what was on a rung but is no longer there."""
    found = {
        t.id: Failing(t.id, t.name, 0 if t.given_up else t.failures, t.note, bool(t.given_up))
        for t in session.tree.tasks
        if t.failures or t.id in session.pressure
    }
    step = session.step.value
    if session.step_failures or step in session.pressure:
        found[step] = Failing(step, step, session.step_failures, session.last_failure)
    gone = {s: Failing(s, s, 0) for s in session.pressure if s not in found}
    yield from (*found.values(), *gone.values())


def _told(failing: Failing, climb: Climb, action: Action) -> EscalationChanged:
    return EscalationChanged(
        failing.subject,
        failing.name,
        climb.source.value,
        climb.target.value,
        climb.failures,
        climb.reason,
        DOES[action],
    )
