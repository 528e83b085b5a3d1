"""Changed files before the judge sees them: their kinds, those of which it cannot be shown enough, and names that are
not the same on every file system."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from lopen.files.plain_files import EXECUTABLE, LINK
from lopen.git.repository import Repository
from lopen.git.trees import GITLINK, TreeChange
from lopen.judge.diff_files import decoded, is_text
from lopen.judge.evidence import FileKind
from lopen.tools.judged_tree import SEARCHED_BYTES
from lopen.tools.verification import Verified
from lopen.verification.findings import Finding
from lopen.verification.test_files import looks_like_test, words

UNCOMPARED = "the file is too large to be searched for weakened tests"
TOO_LARGE = f"the file is too large to be judged: the judge reads at most {SEARCHED_BYTES:,} bytes of one"
NOT_SHOWN = (
    "the judge cannot be shown this file, which runs or decides what runs: more than a twentieth of it is not "
    "UTF-8 or UTF-16 text. "
    "Save it as UTF-8 without NUL bytes, have the build make it, or ask a person to commit it"
)
COUNTS_AS_DATA = (
    "the judge cannot be shown this file: more than a twentieth of it is not UTF-8 or UTF-16 text. It counts as data, "
    "by its folder or format: nothing may run it"
)
WAS_THERE = (
    "the judge cannot be shown this file: more than a twentieth of it is not UTF-8 or UTF-16 text. Its content is not "
    "new: it was there before, in this file or in one that the work changes or deletes"
)
UNNAMEABLE = "the judge cannot ask for this file, because its name is not UTF-8: rename it"
LINKED_TESTS = "a link took the place of a folder that held {count} of the tests: put the tests themselves there, as files"
REWRITTEN = (
    "`{command}` changed this file while it ran: {what} is another text than the one that is committed. "
    "Let nothing write to tracked files, or commit what it writes"
)
SAME_NAME = (
    "macOS or Windows takes this name and {other} for the same, so a clone there does not hold both: "
    "rename it, or delete the other"
)
NOT_ON_WINDOWS = "Windows cannot hold a file of this name: a checkout there leaves it out or fails"
UNCOMMITTED_SNAPSHOT = (
    "`{command}` wrote this snapshot while it ran, and it is in no commit: it is compared with itself"
)
# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
_NOT_ON_WINDOWS = re.compile(
    r'[\x00-\x1f<>:"|?*\\]|[. ]$|^(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.|$)', re.IGNORECASE
)
_SNAPSHOT = re.compile(r"(?:^|/)__snapshots__/|\.snap$")
NAMES_OF_PROGRAMS = frozenset({"Makefile", "Dockerfile", "Justfile"})
SOURCE_SUFFIXES = words(
    ".bash .c .cc .clj .cpp .cs .css .dart .ex .exs .go .gradle .h .hpp .hs .html .java .jl .js .jsx .kt .kts "
    ".lua .m .mjs .ml .php .pl .proto .ps1 .py .pyi .r .rb .rs .scala .scss .sh .sql .svelte .swift .tf .ts .tsx "
    ".vue .zig"
)
_COMPILED = words(".a .class .dll .dylib .exe .jar .node .o .pyc .pyd .so .wasm")  # code in whatever folder
_OTHERS_THAT_RUN = _COMPILED | words(
    ".bat .cfg .cjs .cmake .cmd .cts .egg .fish .in .ini .json .mk .mts .pth .pyw .pyx .toml .whl .xml .yaml .yml .zsh"
)
_NO_TESTS = words(".css .html .proto .scss .sql .tf")  # suffixes of source in which no tests are written
_DATA_FOLDERS = words(
    "__fixtures__ assets corpus data fixture fixtures golden i18n input inputs l10n locale locales resources samples "
    "test-data test_data testdata"
)
_RUN_BY_WRAPPERS = re.compile(r"(?:^|/)(?:gradle/wrapper/|\.mvn/|(?:gradle|maven)-wrapper\.)", re.IGNORECASE)
_VERSIONED = re.compile(r"(?<=\.so)(?:\.\d+)+$")  # of a library: libz.so.1.3
_MPEG_PACKET = 188  # bytes; each begins with 0x47
_MPEG_SUFFIXES = words(".ts .mts")  # which films share with TypeScript


def is_specification(path: str, module: str) -> bool:
    """Return whether `path` is the module's specification, which the judge gets as such."""
    return path == f"specs/{module}/SPECIFICATION.md"


def kind(path: str) -> FileKind:
    """Return how much a file weighs as evidence, by its name."""
    if looks_like_test(path):
        return "test"
    return "source" if PurePosixPath(path).suffix.lower() in SOURCE_SUFFIXES else "other"


def unseen_files(
    repository: Repository, files: Sequence[TreeChange], sizes: Mapping[str, int], known: Mapping[str, bytes]
) -> Iterator[Finding]:
    """Yield an error for each new content that the judge cannot see, a warning for data and other large files.

    Data need not be text, but what runs and what decides on what runs has to be. A content that was there before, under
    whatever name, is a warning too. `sizes`: blob id → bytes; `known`: contents by blob id, at least those of files
    that are not large.
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
            if c.after in earlier:
                yield Finding("warning", WAS_THERE, c.path)
            elif _is_data(c, content):
                yield Finding("warning", COUNTS_AS_DATA, c.path)
            else:
                yield Finding("error", NOT_SHOWN, c.path)
        elif any(blob in sizes and blob not in known for blob in (c.before, c.after)):
            yield Finding("warning", UNCOMPARED, c.path)


def linked_tests(files: Sequence[TreeChange]) -> Iterator[Finding]:
    """Yield an error for each link that takes the place of a folder with tests."""
    gone = [c.path for c in files if c.after is None and looks_like_test(c.path)]
    for c in files:
        replaced = [path for path in gone if path.startswith(f"{c.path}/")] if c.mode_after == LINK else []
        if replaced:
            yield Finding("error", LINKED_TESTS.format(count=len(replaced)), c.path)


def rewritten_files(results: Sequence[Verified]) -> Iterator[Finding]:
    """Yield a finding for each file of the tree that a verify command changed: an error where the tests ran on it.

    Only what the test command changes can change its result: what another command does is undone before.
    """
    for result in results:
        command = " ".join(result.command.split())[:80]
        for path in result.changed:
            has_tests = (
                PurePosixPath(path).suffix.lower() in SOURCE_SUFFIXES - _NO_TESTS and kind(path) == "test"
            )
            severe = result.tool == "verify_tests" and (has_tests or bool(_SNAPSHOT.search(path)))
            what = "the test that passed" if severe else "what it ran on"
            yield Finding(
                "error" if severe else "warning", REWRITTEN.format(command=command, what=what), path
            )
        for path in result.left:
            if result.tool == "verify_tests" and _SNAPSHOT.search(path):
                yield Finding("warning", UNCOMMITTED_SNAPSHOT.format(command=command), path)


def shared_names(repository: Repository, tree: str, files: Sequence[TreeChange]) -> Iterator[Finding]:
    """Yield an error for each new name that another file system takes for another name of `tree`, once a name, and a
    warning for each new file that Windows cannot hold.

    The file systems of macOS and Windows ignore case, and that of macOS composes characters.
    """
    added = sorted(c.path for c in files if c.kind == "added")
    paths = set(repository.entries(tree)) if added else set()
    before = {*(paths - {*added}), *(c.path for c in files if c.kind == "deleted")}
    known = {place for path in before for place in _places(path)}
    names: dict[str, set[str]] = {}
    for place in {place for path in paths for place in _places(path)}:
        names.setdefault(_folded(place), set()).add(place)
    for path in added:
        for place in _places(path):
            others = names.pop(_folded(place), {place}) - {place} if place not in known else ()
            if others:
                yield Finding("error", SAME_NAME.format(other=min(others)), path)
        if any(map(_NOT_ON_WINDOWS.search, path.split("/"))):
            yield Finding("warning", NOT_ON_WINDOWS, path)


def _places(path: str) -> Iterator[str]:
    """Yield the path and the folders above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _folded(path: str) -> str:
    return path.lower() if path.isascii() else unicodedata.normalize("NFD", path).casefold()


def _is_utf_8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:  # holds what stands for other bytes
        return False
    return True


def _content(repository: Repository, blob: str, known: Mapping[str, bytes]) -> bytes:
    return known[blob] if blob in known else repository.blob_contents([blob]).get(blob, b"")


def _is_data(change: TreeChange, content: bytes) -> bool:
    """Return True for a file that no one starts by its name, in a folder of data or in a format that is never source."""
    if change.mode_after == EXECUTABLE or content.startswith(b"#!") or _RUN_BY_WRAPPERS.search(change.path):
        return False
    suffix, folders = _suffix(change.path), change.path.lower().split("/")[:-1]
    is_film = suffix in _MPEG_SUFFIXES and content[: 4 * _MPEG_PACKET : _MPEG_PACKET] == b"GGGG"
    return is_film or (suffix not in _COMPILED and not _DATA_FOLDERS.isdisjoint(folders))


def _is_hidden(change: TreeChange, content: bytes) -> bool:
    """Return True for a file that runs, or decides what runs, and is not text to the judge's `read_file`."""
    runs = (
        _suffix(change.path) in SOURCE_SUFFIXES | _OTHERS_THAT_RUN
        or PurePosixPath(change.path).name in NAMES_OF_PROGRAMS
        or _RUN_BY_WRAPPERS.search(change.path) is not None
        or change.mode_after == EXECUTABLE
        or content.startswith(b"#!")
    )
    return runs and change.mode_after != LINK and not is_text(decoded(content))


def _suffix(path: str) -> str:
    return PurePosixPath(_VERSIONED.sub("", path)).suffix.lower()


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
