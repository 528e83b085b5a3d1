"""The model's habits as running counts: fed one tool call at a time, never a scan over the history.

One value serves both sides. Inside an iteration `notice` is what the loop appends to the result of the call
just counted. Before the next iteration `circular` and `discipline` are the guards' facts; `begin` then
starts the new conversation. A habit is reported when it reaches its limit and again at each multiple of it,
never at every call. All counts go through `to_json` and back, so that a restart clears none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

from lopen.guardrails import circular, discipline
from lopen.guardrails.calls import HabitLimits, Streaks, ToolFact
from lopen.guardrails.guard import FindingKind, WastefulHabit

FINDINGS_KEPT = 10
EDITED_KEPT = 200


def guard_of(finding: WastefulHabit) -> str:
    """The guard whose word a finding is."""
    return circular.NAME if finding.kind == "circle" else discipline.NAME


@dataclass(frozen=True, slots=True)
class Habits:
    """Counts over the calls so far.

    `tree` numbers the states of the work tree: runs are compared within one state only. `looks` counts by
    task, `reads` by conversation, `failures` and `edited` on and on. At most `streaks.LIMIT` resources,
    `EDITED_KEPT` edited paths and `FINDINGS_KEPT` findings are kept.
    """

    limits: HabitLimits = field(default_factory=HabitLimits)
    subject: str = ""
    calls: int = 0
    tree: int = 0
    looks: Streaks = field(default_factory=Streaks)
    reads: Streaks = field(default_factory=Streaks)
    failures: Streaks = field(default_factory=Streaks)
    edited: tuple[str, ...] = ()
    findings: tuple[WastefulHabit, ...] = ()
    latest: tuple[WastefulHabit, ...] = ()

    def after(self, call: ToolFact) -> Habits:
        """These habits with one more call. Cost and size are bounded whatever came before."""
        tree = self.tree + (1 if call.changed_tree else 0)
        looks, circle = circular.count(self.looks, call, self.tree, self.limits)
        reads, reread = discipline.count_read(self.reads, call, self.limits)
        failures, retry = discipline.count_failure(self.failures, call, (self.tree, tree), self.limits)
        edited, untested = discipline.count_edits(self.edited, call, self.limits, EDITED_KEPT)
        latest = tuple(f for f in (circle, reread, retry, untested) if f is not None)
        return replace(
            self,
            calls=self.calls + 1,
            tree=tree,
            looks=looks,
            reads=reads,
            failures=failures,
            edited=edited,
            findings=_gathered(self.findings, latest) if latest else self.findings,
            latest=latest,
        )

    def failing(self, tool: str, command: str) -> bool:
        """Whether this command (or verify tool) failed when it was last run."""
        return discipline.failure_key(tool, command) in self.failures.marks

    def moved(self) -> Habits:
        """The work tree was seen to be another than it was, by no call that told of it."""
        return replace(self, tree=self.tree + 1)

    @property
    def notice(self) -> str | None:
        """What to append to the result of the latest call: one sentence for each thing, None if all is well."""
        told: dict[str, str] = {}
        for finding in self.latest:  # discipline's word on a resource is the more exact one, and comes later
            told[finding.resource] = finding.correction
        return "\n".join(f"[lopen] {text}" for text in told.values()) or None

    @property
    def circular(self) -> tuple[WastefulHabit, ...]:
        """Circles found since the conversation began."""
        return tuple(f for f in self.findings if f.kind == "circle")

    @property
    def discipline(self) -> tuple[WastefulHabit, ...]:
        """Undisciplined use of tools found since the conversation began."""
        return tuple(f for f in self.findings if f.kind != "circle")

    def begin(self, subject: str) -> Habits:
        """A new conversation about `subject` (a task's id, or a planning step), its predecessors' findings told.

        Its context is fresh, so what was read before has to be read again: that is no reread. Looks at the
        same thing are counted on while the subject is the same, and start again with another. Failing
        commands and edits without a test run are facts of the work tree and go on. Not to be called when
        a restarted process takes up the same iteration.
        """
        same = subject == self.subject
        return replace(
            self,
            subject=subject,
            looks=self.looks if same else Streaks(),
            reads=Streaks(),
            findings=(),
            latest=(),
        )

    def to_json(self) -> str:
        """All counts as one JSON object; the limits are settings and stay out."""
        return json.dumps(
            {
                "v": 1,
                "subject": self.subject,
                "calls": self.calls,
                "tree": self.tree,
                "looks": dict(self.looks.marks),
                "reads": dict(self.reads.marks),
                "failures": dict(self.failures.marks),
                "edited": self.edited,
                "findings": [asdict(f) for f in self.findings],
            }
        )

    @classmethod
    def from_json(cls, text: str, limits: HabitLimits | None = None) -> Habits:
        """The habits that `to_json` wrote. `ValueError` where the text is anything else."""
        try:
            stored = json.loads(text)
            if stored["v"] != 1:
                raise ValueError(f"habits of version {stored['v']}")
            return cls(
                limits or HabitLimits(),
                str(stored["subject"]),
                int(stored["calls"]),
                int(stored["tree"]),
                _streaks(stored["looks"]),
                _streaks(stored["reads"]),
                _streaks(stored["failures"]),
                tuple(str(p) for p in stored["edited"]),
                tuple(_finding(f) for f in stored["findings"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"these are no habits: {error!r}") from error


def _gathered(
    before: tuple[WastefulHabit, ...], latest: tuple[WastefulHabit, ...]
) -> tuple[WastefulHabit, ...]:
    """The findings with the latest: a higher count replaces the lower one of the same thing."""
    renewed = {(f.kind, f.resource) for f in latest}
    kept = [f for f in before if (f.kind, f.resource) not in renewed]
    return (*kept, *latest)[-FINDINGS_KEPT:]


def _streaks(stored: Mapping[str, Any]) -> Streaks:
    return Streaks({str(key): (str(mark), int(count)) for key, (mark, count) in stored.items()})


def _finding(stored: Mapping[str, Any]) -> WastefulHabit:
    kinds: Mapping[str, FindingKind] = {kind: kind for kind in get_args(FindingKind)}
    return WastefulHabit(
        kinds[stored["kind"]], str(stored["resource"]), int(stored["count"]), str(stored["correction"])
    )
