"""Compare and read trees, commits and files by their ids, without writing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from threading import Lock
from typing import Literal, TypeVar

from lopen.git.command import GitCommand
from lopen.git.errors import GitError
from lopen.git.refs import require_id

Kind = Literal["added", "modified", "deleted"]

_KINDS: dict[str, Kind] = {"A": "added", "D": "deleted"}
# Modes of entries, as git writes them; every other one is a plain file
GITLINK, LINK, EXECUTABLE = "160000", "120000", "100755"
Answer = TypeVar("Answer")
_KEPT_ANSWERS = 64
_BIG_FILE = "2m"  # larger files count as binary in a diff


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree."""

    mode: str
    blob: str

    @property
    def is_submodule(self) -> bool:
        """True if the entry is a pointer to a commit of another repository."""
        return self.mode == GITLINK


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path that differs between two trees. Ids and modes are None on a side where it does not exist."""

    path: str
    kind: Kind
    before: str | None  # blob id
    after: str | None
    mode_before: str | None  # as git writes it: 100644, 100755, 120000 (link), 160000 (submodule)
    mode_after: str | None

    @property
    def entry_before(self) -> TreeEntry | None:
        """The file before the change, None where there is none."""
        return TreeEntry(self.mode_before, self.before) if self.mode_before and self.before else None

    @property
    def entry_after(self) -> TreeEntry | None:
        """The file after the change, None where there is none."""
        return TreeEntry(self.mode_after, self.after) if self.mode_after and self.after else None


def is_work_tree_path(path: str) -> bool:
    """Return True if `path` can be a file in a tree: relative, in git's notation, and not inside a `.git`."""
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


class Objects:
    """The trees, commits and files of one repository by their ids; nothing here writes."""

    def __init__(self, git: GitCommand) -> None:
        self.git = git
        self._answers: dict[tuple[object, ...], object] = {}  # objects never change under their id
        self._asking = Lock()  # read-only tools of one turn may ask in parallel

    def has_commit(self, commit: str) -> bool:
        """Return True if the repository has the commit."""
        return self.git.run("cat-file", "-e", f"{commit}^{{commit}}", accept=(0, 1, 128)).exit_code == 0

    def has_tree(self, tree: str) -> bool:
        """Return True if the repository has the tree; one that no commit holds can be gone, or in another clone."""
        return self.git.run("cat-file", "-e", f"{tree}^{{tree}}", accept=(0, 1, 128)).exit_code == 0

    def changes(self, before: str, after: str) -> tuple[TreeChange, ...]:
        """Return the changes of files from one tree (or commit) to the other, by path; a rename is two changes."""
        return self._known(("changes", before, after), lambda: self._changes(before, after))

    def _changes(self, before: str, after: str) -> tuple[TreeChange, ...]:
        if before == after:
            return ()
        ends = require_id(before), require_id(after)
        fields = self.git.run("diff-tree", "-r", "-z", "--no-renames", *ends).fields()
        return tuple(_change(meta, path) for meta, path in zip(fields[::2], fields[1::2], strict=True))

    def diff(
        self,
        before: str,
        after: str,
        *,
        paths: Sequence[str] | None = None,
        max_chars: int | None = None,
        as_text: bool = False,
    ) -> str:
        """Return the unified diff of two trees, cut at `max_chars` with a note. Binary files are only named.

        With `as_text` every file counts as text, of any bytes, size and attributes.
        """
        if before == after or (paths is not None and not paths):
            return ""
        answer = self.git.with_options(config={"core.bigFileThreshold": _BIG_FILE}).run(
            "diff-tree",
            "-r",
            "-p",
            *(("--text",) if as_text else ()),
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-relative",
            "--submodule=short",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            require_id(before),
            require_id(after),
            "--",
            *(paths or ()),
        )
        return _cut(answer.stdout.decode("utf-8", "replace"), max_chars)

    def entries(self, tree: str) -> dict[str, TreeEntry]:
        """Return every file of a tree (or commit): path → entry."""
        found = {}
        for field in self.git.run("ls-tree", "-r", "-z", "--full-tree", require_id(tree)).fields():
            meta, path = field.split("\t", 1)
            mode, _, blob = meta.split(" ")
            found[path] = TreeEntry(mode, blob)
        return found

    def blob_contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return blob id → content, without ids of other objects and of objects that are missing."""
        wanted = "".join(f"{require_id(name)}\n" for name in dict.fromkeys(blobs))
        answer = self.git.run("cat-file", "--batch", stdin=wanted.encode()).stdout if wanted else b""
        return {name: content for name, kind, content in _batch(answer) if kind == "blob"}

    def blob_sizes(self, blobs: Iterable[str]) -> Mapping[str, int]:
        """Return blob id → size in bytes, without ids of other objects."""
        wanted = "".join(f"{require_id(blob)}\n" for blob in dict.fromkeys(blobs))
        if not wanted:
            return {}
        answer = self.git.run("cat-file", "--batch-check", stdin=wanted.encode())
        found = (line.split(" ") for line in answer.text.split("\n"))
        return {line[0]: int(line[2]) for line in found if len(line) == 3 and line[1] == "blob"}

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit (or of a tree).

        Raises:
            GitError: it does not exist.
        """
        return self._known(("tree", commit), lambda: self._tree_of(commit))

    def _tree_of(self, commit: str) -> str:
        answer = self.git.run(
            "rev-parse", "--verify", "--quiet", f"{require_id(commit)}^{{tree}}", accept=(0, 1, 128)
        )
        if answer.exit_code:
            raise GitError(f"commit {commit} does not exist", hint="see: git log --all")
        return answer.text

    def merged(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Merge two commits without a work tree; return the tree, and the paths in conflict.

        Raises:
            GitError: the commits have no common history, or git is older than 2.38.
        """
        answer = self.git.run(
            "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
            require_id(ours), require_id(theirs), accept=(0, 1, 128, 129),
        )  # fmt: skip
        if answer.exit_code > 1:
            raise GitError(
                f"cannot merge: {answer.stderr.strip()}", hint="git 2.38 or later is needed to merge"
            )
        tree, *paths = os.fsdecode(answer.stdout).rstrip("\0\n").split("\0")
        return tree, tuple(dict.fromkeys(path for path in paths if path))

    def _known(self, question: tuple[object, ...], ask: Callable[[], Answer]) -> Answer:
        """Return the answer to a question about objects, asking git only the first time."""
        with self._asking:
            if question in self._answers:
                return self._answers[question]  # type: ignore[return-value]
        answer = ask()
        with self._asking:
            while len(self._answers) >= _KEPT_ANSWERS:
                del self._answers[next(iter(self._answers))]
            self._answers[question] = answer
        return answer


def within(changed: Sequence[TreeChange], paths: Set[str]) -> list[TreeChange]:
    """Return the changes of the files in `paths`, and of those below them."""
    found = []
    for change in changed:
        parts = change.path.split("/")
        if any("/".join(parts[:depth]) in paths for depth in range(1, len(parts) + 1)):
            found.append(change)
    return found


def _batch(answer: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield (id, kind, content) from the output of `cat-file --batch`, without missing objects."""
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        head = answer[at:end].decode("ascii", "replace").split(" ")
        at = end + 1
        if len(head) != 3:  # "<id> missing"
            continue
        size = int(head[2])
        yield head[0], head[1], answer[at : at + size]
        at += size + 1


def _change(meta: str, path: str) -> TreeChange:
    mode_before, mode_after, before, after, status = meta.removeprefix(":").split(" ")
    kind = _KINDS.get(status[0], "modified")
    return TreeChange(
        path=path,
        kind=kind,
        before=None if kind == "added" else before,
        after=None if kind == "deleted" else after,
        mode_before=None if kind == "added" else mode_before,
        mode_after=None if kind == "deleted" else mode_after,
    )


def _cut(text: str, max_chars: int | None) -> str:
    """Return `text`, cut at the end of a line if it is too long, with a final line that says so."""
    if max_chars is None or len(text) <= max_chars:
        return text
    kept = text[: text.rfind("\n", 0, max_chars) + 1] or text[:max_chars] + "\n"
    return f"{kept}… {len(text) - len(kept)} more characters; ask for single files to see the rest\n"
