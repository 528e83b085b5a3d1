"""The change between two git trees: its texts, the weight of its files, and plain faults of a file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from lopen.git.repository import Repository
from lopen.git.trees import EXECUTABLE, GITLINK, LINK, TreeChange
from lopen.judge.diff_files import decoded, is_text
from lopen.judge.evidence import FileKind
from lopen.verification.findings import Finding
from lopen.verification.test_files import MAX_CHARS, FileChange, is_data, looks_like_test, words

SEARCHED_BYTES = 50_000_000
LARGEST_COMPARED = 2 * 2**20  # bytes; the tests of larger files are not compared
MOST_COMPARED = 64 * 2**20  # bytes of all files together
LONGEST_LINK = 4_096  # bytes
UNREADABLE = " " * (MAX_CHARS + 1)

UNCOMPARED = "the file is too large for its tests to be compared"
TOO_LARGE = f"the file is too large to be judged: the judge reads at most {SEARCHED_BYTES:,} bytes of one"
NOT_SHOWN = (
    "the judge cannot be shown this file, which runs or decides what runs: more than a twentieth of it is not "
    "UTF-8 or UTF-16 text. "
    "Save it as UTF-8 without NUL bytes, have the build make it, or ask a person to commit it"
)
UNNAMEABLE = "the judge cannot ask for this file, because its name is not UTF-8: rename it"
REWRITTEN = (
    "`{command}` changed this file while it ran: what it ran on is another text than the one that is committed. "
    "Let nothing write to tracked files, or commit what it writes"
)
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
NAMES_OF_PROGRAMS = frozenset({"Makefile", "Dockerfile", "Justfile"})
SOURCE_SUFFIXES = words(
    ".bash .c .cc .clj .cpp .cs .css .dart .ex .exs .go .gradle .h .hpp .hs .html .java .jl .js .jsx .kt .kts "
    ".lua .m .mjs .ml .php .pl .proto .ps1 .py .pyi .r .rb .rs .scala .scss .sh .sql .svelte .swift .tf .ts .tsx "
    ".vue .zig"
)
_OTHERS_THAT_RUN = words(
    ".a .class .dll .dylib .exe .jar .node .o .pyc .pyd .so .wasm "
    ".bat .cfg .cjs .cmake .cmd .cts .egg .fish .in .ini .json .mk .mts .pth .pyw .pyx .toml .whl .xml .yaml .yml .zsh"
)
_EVERYWHERE = frozenset({b"/dev/null"})
_MOST_SHOWN = 100  # characters of a line
_LONGEST = 20_000


def is_specification(path: str, module: str) -> bool:
    """Return whether `path` is the module's specification, which the judge gets as such."""
    return path == f"specs/{module}/SPECIFICATION.md"


def kind(path: str) -> FileKind:
    """Return how much a file weighs as evidence, by its name."""
    if looks_like_test(path):
        return "test"
    return "source" if PurePosixPath(path).suffix.lower() in SOURCE_SUFFIXES else "other"


@dataclass(frozen=True)
class ComparedTrees:
    """The files that differ between two trees, and the contents of files that are not too large."""

    base: str
    tree: str
    files: tuple[TreeChange, ...]
    sizes: Mapping[str, int]
    contents: Mapping[str, bytes]

    def size(self, blob: str | None) -> int:
        return self.sizes.get(blob or "", 0)

    def text(self, blob: str | None) -> str | None:
        """The blob's text; None where there is no blob, or it is too large."""
        raw = self.contents.get(blob or "")
        return None if raw is None else raw.decode("utf-8", "replace")

    @cached_property
    def compared(self) -> list[FileChange]:
        """The texts of both sides, of files alone; `UNREADABLE` where one is too large, which is not the same as none."""
        return [FileChange(c.path, *(self._compared(*side) for side in sides(c))) for c in self.files]

    def _compared(self, blob: str | None, mode: str | None) -> str | None:
        known = None if mode == LINK else self.text(blob)
        return UNREADABLE if known is None and mode != LINK and blob in self.sizes else known


def compared_trees(repository: Repository, base: str, tree: str, module: str) -> ComparedTrees:
    """Return the change from `base` to `tree`, without the module's specification."""
    files = tuple(c for c in repository.changes(base, tree) if not is_specification(c.path, module))
    blobs = [b for c in files for b, mode in sides(c) if b is not None and mode != GITLINK]
    sizes = repository.blob_sizes(blobs)
    links = {
        b for c in files for b, mode in sides(c) if mode == LINK and sizes.get(b or "", 0) <= LONGEST_LINK
    }
    contents = repository.blob_contents(dict.fromkeys([*_readable(files, sizes), *filter(None, links)]))
    return ComparedTrees(base, tree, files, sizes, contents)


def _readable(files: Sequence[TreeChange], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the blobs that are read at once: tests and source first, small ones first, within the limits."""
    weighty = {b for c in files if kind(c.path) != "other" for b in (c.before, c.after)}
    total = 0
    for blob in sorted(sizes, key=lambda each: (each not in weighty, sizes[each])):
        total += sizes[blob]
        if sizes[blob] <= LARGEST_COMPARED and total <= MOST_COMPARED:
            yield blob


def sides(change: TreeChange) -> tuple[tuple[str | None, str | None], ...]:
    """Return (blob, mode) before and after the change."""
    return (change.before, change.mode_before), (change.after, change.mode_after)


def unseen_files(
    repository: Repository, files: Sequence[TreeChange], sizes: Mapping[str, int], known: Mapping[str, bytes]
) -> Iterator[Finding]:
    """Yield an error for each new content that runs and that the judge cannot see, a warning for test data and large files.

    Content that was there before under any name is a warning too. `sizes`: blob id → bytes; `known`: contents by blob id, at least of files that are not large.
    """
    earlier = {c.before for c in files}
    for c in files:
        if c.after is None or c.mode_after == GITLINK:
            continue
        size = sizes.get(c.after, 0)
        if not _is_utf_8(c.path):
            yield Finding("error", UNNAMEABLE, c.path)
        elif size > SEARCHED_BYTES:
            yield Finding("error", TOO_LARGE, c.path)
        elif size and _is_hidden(c, content := _content(repository, c.after, known)):
            harmless = c.after in earlier or _is_test_data(c, content)
            yield Finding("warning" if harmless else "error", NOT_SHOWN, c.path)
        elif any(blob in sizes and blob not in known for blob in (c.before, c.after)):
            yield Finding("warning", UNCOMPARED, c.path)


def _is_utf_8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:  # holds the sign for other bytes
        return False
    return True


def _content(repository: Repository, blob: str, known: Mapping[str, bytes]) -> bytes:
    return known[blob] if blob in known else repository.blob_contents([blob]).get(blob, b"")


def _is_test_data(change: TreeChange, content: bytes) -> bool:
    """Return True for a file beside tests that no one starts by its name."""
    path = change.path
    starts = change.mode_after == EXECUTABLE or content.startswith(b"#!") or not PurePosixPath(path).suffix
    return not starts and looks_like_test(path) and is_data(path)


def _is_hidden(change: TreeChange, content: bytes) -> bool:
    """Return True for a file that runs or names commands, and is not text to the judge's `read_file`."""
    path = PurePosixPath(change.path)
    runs = (
        path.suffix.lower() in SOURCE_SUFFIXES | _OTHERS_THAT_RUN
        or path.name in NAMES_OF_PROGRAMS
        or change.mode_after == EXECUTABLE
        or content.startswith(b"#!")
    )
    return runs and change.mode_after != LINK and not is_text(decoded(content))


def rewritten_files(command: str, changed: Sequence[str]) -> Iterator[Finding]:
    """Yield a warning for each tracked file that a verify command changed while it ran."""
    for path in changed:
        yield Finding("warning", REWRITTEN.format(command=" ".join(command.split())[:80]), path)


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


def naming_places(changes: Sequence[FileChange], places: Sequence[Path]) -> Iterator[Finding]:
    """Yield a warning for each changed file that newly names one of `places`."""
    known = {str(p) for place in places for p in (place, place.resolve())}
    pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(known)))})(?![\w-]|\.\w)")
    for change in changes:
        if change.after is None or not pattern.search(change.after):
            continue
        before = {line.strip() for line in (change.before or "").splitlines()}
        for number, line in enumerate(change.after.splitlines(), 1):
            if pattern.search(line[:_LONGEST]) and line.strip() not in before:
                message = NAMES_PLACE.format(line=line.strip()[:_MOST_SHOWN])
                yield Finding("warning", message, change.path, number)
                break


_WORD = re.compile(r"[\w./-]+")
_LONGEST_PATH = 255  # characters; longer words name no file


def spoken_names(text: str) -> Iterator[str]:
    """Yield the words that can name a file: with a short suffix, in capitals (README), or a well-known name.

    A model writes the text: the time is in proportion to its length.
    """
    for word in _WORD.findall(text):
        path = word.strip("./-") if len(word) <= _LONGEST_PATH else ""
        name = path.rpartition("/")[2]
        stem, _, suffix = name.rpartition(".")
        if stem and len(suffix) <= 8 and "-" not in suffix:
            yield path
        elif name in NAMES_OF_PROGRAMS or (
            name[:4].isascii() and name[:4].isupper() and name[:4].isalpha() and name[3:]
        ):
            yield name
