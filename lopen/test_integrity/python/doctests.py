"""Examples in docstrings and texts that doctest runs: those that are skipped now, and those that are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lopen.test_integrity.suite import FileChange, tokens
from lopen.verification.findings import Finding

_SKIPPED = re.compile(r"#\s*doctest:[^\n]*\+SKIP\b")
_COMMENT = re.compile(r"\s*#.*$")


def doctest_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for each file whose examples run no longer, unless they stand elsewhere in the change."""
    said: frozenset[str] | None = None
    for change in changes:
        if ">>> " not in (change.before or "") or change.after is None:
            continue
        if not change.path.endswith((".py", ".rst", ".txt", ".md")):
            continue
        was, now = _examples(change.before or ""), _examples(change.after)
        known = {code for code, (skipped, _, _) in was.items() if not skipped}
        off = [(code, line) for code, (skipped, _, line) in now.items() if skipped and code in known]
        if off:
            message = f"the example `{off[0][0][:80]}` is skipped now (doctest: +SKIP)"
            yield Finding("warning", message, change.path, off[0][1])
        gone = [code for code in was if code not in now]
        if not change.path.endswith(".py") or len(now) >= len(was) or not gone:
            continue
        if said is None:
            said = frozenset().union(*(tokens(other.after or "") for other in changes))
        lost = [code for code in gone if not tokens(f"{code} {was[code][1]}") <= said]
        if lost and any(_name(code) in tokens(change.after) for code in lost):
            yield Finding(
                "warning", f"the example `{lost[0][:80]}` is gone, which doctest can run", change.path
            )


def _examples(text: str) -> dict[str, tuple[bool, str, int]]:
    """Return the examples by their code: if they are skipped, what they print, and the line."""
    found: dict[str, tuple[bool, str, int]] = {}
    code = ""
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        if said.startswith(">>> "):
            code = _COMMENT.sub("", said[4:])
            found[code] = (bool(_SKIPPED.search(said)), "", number)
        elif said and code and said.strip("\"'"):
            skipped, printed, at = found[code]
            found[code] = (skipped, f"{printed} {said}", at)
        else:
            code = ""
    return found


def _name(code: str) -> str:
    """Return the function that an example calls."""
    found = re.search(r"([A-Za-z_]\w*)\(", code)
    return found[1] if found else ""
