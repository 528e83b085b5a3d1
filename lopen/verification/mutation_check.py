"""The tests' reaction to broken functions: the negative control, and small faults (mutants)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from lopen.verification.findings import Finding

SHOWN = 5  # places in a message
LONGEST = 40  # characters of an edit in a message
SLOW_S = 5.0  # from which on a run of the tests is slow

Control = Literal["noticed", "unnoticed", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """One mutant: at `line` of `path`, from the byte `start`, `was` was replaced by `now`.

    The tests `noticed` it by failing; None where the compiler refused it.
    """

    path: str
    line: int
    start: int
    was: str
    now: str
    noticed: bool | None

    def __str__(self) -> str:
        was, now = (t if len(t) <= LONGEST else f"{t[:LONGEST]}…" for t in (self.was, self.now))
        return f"{self.path}:{self.line} `{was}` → `{now}`"


@dataclass(frozen=True, slots=True)
class MutationCheck:
    """The negative control of a change, and the outcomes of the mutants that were tried of those `made`.

    `control`: with each function in `broken` failing at its start, the tests noticed it or not; "none" where the change
    has nothing to break, "unknown" where no run tells (`why_unknown`). A run of the tests takes `run_s`; the runs of the
    mutants have taken `seconds`.
    """

    made: int
    outcomes: tuple[MutantOutcome, ...] = ()
    control: Control = "none"
    broken: tuple[str, ...] = ()
    why_unknown: str = ""
    run_s: float = 0.0
    seconds: float = 0.0

    @property
    def untried(self) -> int:
        """The number of mutants for which there was no time yet."""
        return 0 if self.control == "unnoticed" else self.made - len(self.outcomes)

    def __str__(self) -> str:
        """The result in one sentence for the person, the builder and the judge."""
        one = len(self.broken) == 1
        broken = f"{len(self.broken)} changed {'function is' if one else 'functions are'} broken"
        if self.control == "unnoticed":
            return f"tests still pass when {broken}"
        told = []
        if self.control == "unknown":
            told.append(f"no run tells whether tests fail when {broken}: {self.why_unknown}")
        elif not self.made:
            told.append(f"tests fail when {broken}" if self.broken else "the change has no function to break")
        if self.made:
            told.append(self._counted())
        survivors = [*dict.fromkeys(str(o) for o in self.outcomes if o.noticed is False)]
        if survivors:
            more = f" and {len(survivors) - SHOWN} more" if len(survivors) > SHOWN else ""
            told.append(f"not noticed: {', '.join(survivors[:SHOWN])}{more}")
        return "; ".join(told)

    def _counted(self) -> str:
        noticed = [outcome.noticed for outcome in self.outcomes if outcome.noticed is not None]
        slow = f": a run of the tests takes {self.run_s:.0f} s, and quicker tests would show more"
        late = f"{self.untried}{' more' if noticed else ''} had no time{slow if self.run_s >= SLOW_S else ''}"
        if noticed:
            counted = f"tests noticed {sum(noticed)} of {len(noticed)} mutants"
            return f"{counted} ({late})" if self.untried else counted
        return f"no mutant was tried ({late if self.untried else 'the compiler refused them'})"

    def findings(self, *, blocks: bool) -> Iterator[Finding]:
        """Yield what the verdict says of it: an error where the control passed, or a warning where it does not block yet;
        else the sentence.
        """
        if self.control != "unnoticed":
            if self.made or self.broken:
                yield Finding("info", str(self))
            return
        more = f" and {len(self.broken) - SHOWN} more" if len(self.broken) > SHOWN else ""
        message = (
            "the tests do not test this work: the test command still passes when every function that the work adds or "
            f"changes fails at its start ({', '.join(self.broken[:SHOWN])}{more}). Add tests that call these functions "
            "and compare what they return, raise or write with what is expected"
        )
        yield Finding("error" if blocks else "warning", message, self.broken[0].partition(":")[0])

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values for storage; `mutation_from_json` reads it back."""
        return asdict(self)


def mutation_from_json(stored: Mapping[str, Any]) -> MutationCheck:
    """Return the check that `MutationCheck.to_json` wrote."""
    outcomes = tuple(MutantOutcome(**outcome) for outcome in stored["outcomes"])
    own = {field.name: stored[field.name] for field in fields(MutationCheck)}  # its base is stored beside it
    return MutationCheck(**{**own, "broken": tuple(stored["broken"]), "outcomes": outcomes})
