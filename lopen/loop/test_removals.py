"""Removed tests that are no error of lopen's own: the judge, or a person at the gate, decides about them."""

from __future__ import annotations

from collections.abc import Sequence

from lopen.documents.drift import Drift, compare_hashes, section_hashes
from lopen.documents.sections import SEPARATOR, normalise_name
from lopen.documents.spec import ACCEPTANCE_CRITERIA, Specification
from lopen.workflow.session import Session
from lopen.workspace.listing import glob_matcher


class TestRemovals:
    """Why tests may be removed: a person allowed it, or the specification that the work rests on changed."""

    def __init__(self, session: Session, spec: Specification, sections: Sequence[str]) -> None:
        """`sections`: those that the work rests on, by their addresses."""
        approval = session.approval
        self._globs = approval.test_removals if approval else ()
        drift = compare_hashes(approval.sections, section_hashes(spec)) if approval else Drift()
        changed = dict.fromkeys((*(approval.changed if approval else ()), *drift.changed, *drift.removed))
        self._changed = [a for a in changed if any(_overlap(a, s) for s in (ACCEPTANCE_CRITERIA, *sections))]
        self.given: set[str] = set()

    def reason(self, path: str) -> str:
        """Return why tests of this file may be removed; empty where they may not. `given`: what was returned."""
        found = ""
        if any(glob_matcher(glob)(path.split("/")) for glob in self._globs):
            found = "A person allowed it when approving the specification."
        elif self._changed:
            changed = ", ".join(self._changed)
            found = f"The specification changed since they were written ({changed}): say whether that made them obsolete."
        self.given |= {found} - {""}
        return found


def _overlap(one: str, other: str) -> bool:
    """Return True if one address is the other one's, or that of a section above it."""
    one, other = (normalise_name(address) + SEPARATOR for address in (one, other))
    return one.startswith(other) or other.startswith(one)
