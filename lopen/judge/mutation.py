"""The small faults that the tests noticed, made in the functions that a change adds or rewrites (docs/reference/mutation.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lopen.verification.findings import Finding

FEWEST = 5  # mutants that tell something, where none of them is noticed
LISTED = 20

ADVICE = (
    "add tests that call these functions and compare what they return, raise or write with what is expected"
)


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
    """The mutants that ran of those `made`. `reason`: why none or not all ran.

    `reached`: the tests' run is known to read the changed files; where it is not, no mutant proves anything.
    `readers` are tests that fail as soon as the code's text changes, whatever it does: what they alone notice does not
    count. `failed_again`: how often the tests, having passed, failed on the same files, without a mutant; the check ends
    with the second time. `unstable` are these tests, as far as the runner names them.
    """

    made: int
    outcomes: tuple[MutantOutcome, ...] = ()
    reason: str = ""
    reached: bool = True
    readers: tuple[str, ...] = ()
    failed_again: int = 0
    unstable: tuple[str, ...] = ()

    @property
    def noticed(self) -> int:
        """The number of mutants with which the tests failed."""
        return sum(outcome.noticed for outcome in self.outcomes)

    @property
    def survivors(self) -> tuple[MutantOutcome, ...]:
        """The mutants with which the tests passed."""
        return tuple(outcome for outcome in self.outcomes if not outcome.noticed)

    @property
    def nothing_noticed(self) -> bool:
        """Enough mutants ran, and the tests passed with every one."""
        return len(self.outcomes) >= FEWEST and not self.noticed

    def lines(self) -> Iterator[str]:
        """Yield the result for people and for the judge: the share, then the survivors."""
        ran = len(self.outcomes)
        if ran:
            unknown = f"; {self.made - ran} more did not run" if self.reason else ""
            yield f"the tests notice {self.noticed} of {ran} mutants ({100 * self.noticed // ran} %){unknown}"
        if self.reason:
            yield f"{'why' if ran else 'not run'}: {self.reason}"
        if self.failed_again:
            yield f"failed {'twice' if self.failed_again > 1 else 'once'} on the same files: {self._unstable()}"
        if self.readers:
            yield f"not counted, because they fail when only the code's text changes: {self._readers()}"
        if self.survivors:
            yield "not noticed, each a change of one place with which all tests still pass:"
        yield from (f"  {outcome}" for outcome in self.survivors)

    def _unstable(self) -> str:
        return ", ".join(self.unstable[:LISTED]) or "the test command"

    def _readers(self) -> str:
        more = f" and {len(self.readers) - LISTED} more" if len(self.readers) > LISTED else ""
        return ", ".join(self.readers[:LISTED]) + more

    def finding(self, *, blocks: bool) -> Finding | None:
        """Return what the builder is told where the tests notice nothing, or had nothing to notice; else None.

        Where it `blocks`, that the tests notice nothing is an error.
        """
        if self.failed_again:
            return Finding(
                "error" if self.failed_again > 1 else "warning",
                f"the tests passed, and then failed {'twice' if self.failed_again > 1 else 'once'} on the same files: "
                f"{self._unstable()}. Make them pass each time they run",
            )
        if not self.made and blocks:
            return Finding("warning", f"{self.reason}: look at how the tests reach this code")
        few = 0 < len(self.outcomes) < FEWEST
        if self.noticed or not self.outcomes or (few and not blocks):
            return None
        first = self.survivors[0]
        listed = "; ".join(str(each) for each in self.survivors[:LISTED])
        if few or not blocks or not self.reached:
            why = "" if self.reached else " (nor that a changed file cannot even be read)"
            return Finding(
                "warning",
                f"the tests notice none of {len(self.outcomes)} mutants{why}: {listed}",
                first.path,
                first.line,
            )
        message = (
            f"the tests notice none of {len(self.outcomes)} mutants, so they do not test this work: {ADVICE}. "
            f"All tests still pass with each of these changes: {listed}"
        )
        if self.readers:
            message += f". Not counted are {self._readers()}: they fail when only the code's text changes"
        return Finding("error", message, first.path, first.line)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values for storage; `mutation_from_json` reads it back."""
        return asdict(self)


def mutation_from_json(stored: Mapping[str, Any]) -> MutationCheck:
    """Return the check that `MutationCheck.to_json` wrote."""
    outcomes = tuple(MutantOutcome(**outcome) for outcome in stored["outcomes"])
    return MutationCheck(
        stored["made"],
        outcomes,
        stored["reason"],
        stored["reached"],
        tuple(stored.get("readers", ())),
        stored.get("failed_again", 0),  # absent in older records
        tuple(stored.get("unstable", ())),
    )
