"""The values that verification returns: certain findings, and questions that only the judge can answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
QuestionKind = Literal[
    "earlier_version_fails",
    "fewer_assertions",
    "changed_expectation",
    "run_file_changed",
    "dependency",
    "needs_new_support",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or worth knowing. `line` counts from 1; `criterion` is an acceptance criterion's id.

    `by` is "lopen" where lopen itself found it; else the judge did.
    """

    severity: Severity
    message: str
    path: str | None = None
    line: int | None = None
    criterion: str | None = None
    by: Literal["lopen"] | None = None

    @property
    def shown(self) -> str:
        """The finding on one line for people: whose it is, how grave, where."""
        place = f"{self.path}{f':{self.line}' if self.line else ''}: " if self.path else ""
        criterion = f" [{self.criterion}]" if self.criterion else ""
        message = " ".join(self.message.split())
        return f"{self.by or 'the judge'}, {self.severity}: {place}{message[:1_000]}{criterion}"

    def __str__(self) -> str:
        criterion = f" [{self.criterion}]" if self.criterion else ""
        place = f" ({self.path}{f':{self.line}' if self.line else ''})" if self.path else ""
        return f"{self.severity}{criterion}: {self.message}{place}"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a tool result shows it, without unknown fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class ChangeQuestion:
    """A change that may be right or wrong, which the judge must answer "justified by ..." or "not justified".

    `id` is unique within one examination ("Q1"). `text` is one sentence that asks. `before` and `after` are both
    versions of the changed text; `line` counts from 1 in the version `after`.
    """

    id: str
    kind: QuestionKind
    text: str
    path: str = ""
    line: int | None = None
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        place = f" ({self.path}{f':{self.line}' if self.line else ''})" if self.path else ""
        return f"{self.id}: {self.text}{place}"

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON values for storage; `ChangeQuestion(**stored)` reads it back."""
        return asdict(self)
