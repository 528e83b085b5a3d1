"""The tests' reaction to broken functions: the negative control, and small faults (mutants)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from lopen.verification.findings import Finding

SHOWN = 6  # places in a message

Control = Literal["noticed", "unnoticed", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """One mutant: at `line` of `path`, `was` was replaced by `now`; the tests `noticed` it by failing."""

    path: str
    line: int
    was: str
    now: str
    noticed: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.was}` -> `{self.now}`"


@dataclass(frozen=True, slots=True)
class MutationCheck:
    """The negative control of a change, and the mutants that ran of those `made`. `reason`: why not all ran.

    `control`: with each function in `broken` failing at its start, the tests noticed it or not; "none" where the change
    has nothing to break, "unknown" where no run tells (`why_unknown`).
    """

    made: int
    outcomes: tuple[MutantOutcome, ...] = ()
    reason: str = ""
    control: Control = "none"
    broken: tuple[str, ...] = ()
    why_unknown: str = ""

    @property
    def noticed(self) -> int:
        """The number of mutants with which the tests failed."""
        return sum(outcome.noticed for outcome in self.outcomes)

    @property
    def survivors(self) -> tuple[MutantOutcome, ...]:
        """The mutants with which the tests passed."""
        return tuple(outcome for outcome in self.outcomes if not outcome.noticed)

    def lines(self) -> Iterator[str]:
        """Yield the result for people and for the judge: the control, the share of mutants, then the survivors."""
        one = len(self.broken) == 1
        are_broken = f"{len(self.broken)} changed {'function is' if one else 'functions are'} broken"
        match self.control:
            case "noticed":
                yield f"negative control: the tests fail when {are_broken}"
            case "unnoticed":
                yield f"negative control: the tests still pass when {are_broken}"
            case "none":
                yield "no negative control: the change has no function to break"
            case "unknown":
                yield f"no negative control: {self.why_unknown}"
        ran = len(self.outcomes)
        if ran:
            unknown = f"; {self.made - ran} more did not run" if self.reason else ""
            yield f"the tests notice {self.noticed} of {ran} mutants ({100 * self.noticed // ran} %){unknown}"
        if self.reason:
            yield f"{'why' if ran else 'no mutants'}: {self.reason}"
        if self.survivors:
            yield "not noticed, each a change of one place with which all tests still pass:"
        yield from (f"  {outcome}" for outcome in self.survivors)

    def finding(self, *, blocks: bool) -> Finding | None:
        """Return the finding where the control passed: an error, or a warning where it does not block yet."""
        if self.control != "unnoticed":
            return None
        more = f" and {len(self.broken) - SHOWN} more" if len(self.broken) > SHOWN else ""
        message = (
            "the tests do not test this work: the test command still passes when every function that the work adds or "
            f"changes fails at its start ({', '.join(self.broken[:SHOWN])}{more}). Add tests that call these functions "
            "and compare what they return, raise or write with what is expected"
        )
        return Finding("error" if blocks else "warning", message, self.broken[0].partition(":")[0])

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values for storage; `mutation_from_json` reads it back."""
        return asdict(self)


def mutation_from_json(stored: Mapping[str, Any]) -> MutationCheck:
    """Return the check that `MutationCheck.to_json` wrote."""
    outcomes = tuple(MutantOutcome(**outcome) for outcome in stored["outcomes"])
    own = {field.name: stored[field.name] for field in fields(MutationCheck)}  # its base is stored beside it
    return MutationCheck(**{**own, "outcomes": outcomes, "broken": tuple(own["broken"])})
