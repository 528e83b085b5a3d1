"""What lopen itself finds in a change before the judge sees it: converted files, removed and missing tests, ignored files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lopen.documents.drift import Drift, compare_hashes, section_hashes
from lopen.documents.sections import SEPARATOR, normalise_name
from lopen.documents.spec import ACCEPTANCE_CRITERIA, Specification
from lopen.git.checkout import Checkout
from lopen.git.trees import TreeChange
from lopen.guardrails.completion import holds_inline_tests, untested
from lopen.oracle.verdict import Finding, Severity
from lopen.test_integrity import FileChange
from lopen.tools.workbench import Workbench
from lopen.workflow.session import Session
from lopen.workspace.listing import glob_matcher


class TestRemovals:
    """Why tests may be removed: a person allowed it, or the specification that the work rests on changed.

    Such removals are no error of lopen's own: the judge, or a person at the gate, decides about them.
    """

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


CONVERTED = (
    "the attribute {name}={value} has git write this file with other bytes than those that were verified"
)
MOST_TOLD = 20


def converted_files(
    repository: Checkout, base: str, tree: str, files: Sequence[TreeChange]
) -> Iterator[Finding]:
    """Yield a finding for each file that a checkout converts: an error if the change has brought the rule.

    Line ends of CRLF are a warning. `files` is the change from `base` to `tree`. Each severity is bounded by itself.
    """
    rules = any(PurePosixPath(change.path).name.casefold() == ".gitattributes" for change in files)
    paths = list(repository.entries(tree)) if rules else [c.path for c in files if c.after is not None]
    found = repository.conversions(tree, paths)
    before = repository.conversions(base, [path for path, _ in found])
    touched = {change.path for change in files}
    told: Counter[Severity] = Counter()
    for (path, name), value in sorted(found.items()):
        known = before.get((path, name)) == value
        severity: Severity = "warning" if known or name == "eol" else "error"
        if known and rules and path not in touched:
            continue
        told[severity] += 1
        if told[severity] <= MOST_TOLD:
            yield Finding(severity, CONVERTED.format(name=name, value=value), path)


def untested_code(bench: Workbench, files: Sequence[FileChange]) -> tuple[Finding, ...]:
    """Return a warning to the oracle and the model where code came without a test; none where there are to be no tests."""
    if not bench.project.verifier.commands.get("verify-tests"):
        return ()
    there = {f.path: f.after for f in files if f.after is not None}
    message = untested(
        added=[f.path for f in files if f.before is None and f.path in there],
        changed=there,
        inline=[path for path, text in there.items() if holds_inline_tests(path, text)],
    )
    return (Finding("warning", message),) if message else ()


def left_out(bench: Workbench) -> tuple[Finding, ...]:
    """Return a warning for each file that the model wrote and git ignores: without it the verified work may fail."""
    message = "git ignores this file: it is in no commit, and what needs it fails in a clean clone"
    return tuple(Finding("warning", message, path) for path in sorted(bench.evidence.ignored))
