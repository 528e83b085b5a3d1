"""Files whose checkout differs from what was judged and verified, because an attribute has git convert them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lopen.git.checkout import Checkout
from lopen.git.trees import TreeChange
from lopen.oracle.verdict import Finding, Severity

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
