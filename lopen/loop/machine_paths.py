"""Paths of this machine in changed files: a clone elsewhere does not have what they lead to.

Under bubblewrap the clean room stands at the project's own path, so such a path works there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from lopen.files.plain_files import LINK
from lopen.git.repository import Repository
from lopen.git.trees import GITLINK, TreeChange
from lopen.loop.judged_change import LARGEST_COMPARED
from lopen.loop.judged_files import NAMES_OF_PROGRAMS, SOURCE_SUFFIXES
from lopen.verification.findings import Finding, Severity
from lopen.verification.test_files import FileChange, words

LEADS_OUT = (
    "this symbolic link leads to {target}, which is no part of the commit: a clone does not have it. "
    "Let it lead to a file of the project, by a relative path"
)
POINTS = (
    "this submodule now points to the commit {commit} of another repository: a clone has it only if that repository "
    "has it too. Verify commands see an empty folder here"
)
NAMES_PLACE = (
    "this line names a place that only this machine has: `{line}`. A clone elsewhere does not have it: use a path "
    "relative to the file, or to the current folder"
)
_RUNS = SOURCE_SUFFIXES - words(".css .html .proto .scss") | words(
    ".bat .cfg .cjs .cmake .cmd .cts .fish .in .ini .mk .mts .pth .pyw .pyx .toml .zsh"
)
_REMARK = re.compile(r"^\s*(?:#(?!!)|//|\*|/\*|--|;)")
_EVERYWHERE = frozenset({b"/dev/null"})
_MOST_SHOWN = 100  # characters of a line
_LONGEST = 20_000


def leading_out(files: Sequence[TreeChange], contents: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield an error for each new link to an absolute path or to one outside the project, a warning for a submodule.

    `contents`: by blob id.
    """
    earlier = {c.before for c in files if c.mode_before == LINK}
    for c in files:
        if c.mode_after == GITLINK:
            yield Finding("warning", POINTS.format(commit=(c.after or "")[:12]), c.path)
        target = contents.get(c.after or "") if c.mode_after == LINK and c.after not in earlier else None
        if target is None or target in _EVERYWHERE:
            continue
        text = target.decode("utf-8", "replace")
        inside = resolved(c.path, text)
        if inside is None:
            yield Finding("error", LEADS_OUT.format(target=text[:_MOST_SHOWN]), c.path)


def resolved(path: str, target: str) -> str | None:
    """Return the path in the project to which the link at `path` leads; None where it leads out."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if target.startswith("/") or found.split("/", 1)[0] == ".." else found


def linked_texts(
    repository: Repository, trees: tuple[str, str], files: Sequence[TreeChange], contents: Mapping[str, bytes]
) -> dict[tuple[str, str], str | None]:
    """Return (path, blob) of each link → the text of the file to which it leads in its tree, of those before and after.

    None where it leads out or the file is too large: the target itself is no source.
    """
    found: dict[tuple[str, str], str | None] = {}
    for c in files:
        sides = ((c.before, c.mode_before), (c.after, c.mode_after))
        for tree, (blob, mode) in zip(trees, sides, strict=True):
            if blob is not None and mode == LINK:
                place = resolved(c.path, contents.get(blob, b"").decode("utf-8", "replace"))
                raw = repository.file_at(tree, place) if place else None
                text = raw.decode("utf-8", "replace") if raw and len(raw) <= LARGEST_COMPARED else None
                found[c.path, blob] = text
    return found


def naming_places(changes: Sequence[FileChange], places: Sequence[Path]) -> Iterator[Finding]:
    """Yield a finding for each changed file that newly names one of `places`: an error in code, else a warning.

    A place at the top of the file system (`/app`) may mean something else, and is a warning too.
    """
    known = {str(p) for place in places for p in (place, place.resolve())}
    pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(known)))})(?![\w-]|\.\w)")
    for change in changes:
        if change.after is None or not pattern.search(change.after):
            continue
        before = {line.strip() for line in (change.before or "").splitlines()}
        for number, line in enumerate(change.after.splitlines(), 1):
            found = pattern.search(line[:_LONGEST])
            if found and line.strip() not in before:
                message = NAMES_PLACE.format(line=line.strip()[:_MOST_SHOWN])
                yield Finding(_severity(change.path, line, found[0]), message, change.path, number)
                break


def _severity(path: str, line: str, place: str) -> Severity:
    pure = PurePosixPath(path)
    runs = pure.suffix.lower() in _RUNS or pure.name in NAMES_OF_PROGRAMS
    return "error" if runs and not _REMARK.match(line) and place.count("/") > 1 else "warning"
