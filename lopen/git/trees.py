"""Compare and read trees by their ids, through the content door and without writing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from lopen.git.command import GitCommand
from lopen.git.errors import GitError
from lopen.git.layout import Layout
from lopen.git.refs import require_id
from lopen.git.stored_objects import require_true_blobs, tree_in, true_objects

Kind = Literal["added", "modified", "deleted"]

_KINDS: dict[str, Kind] = {"A": "added", "D": "deleted"}
GITLINK, FOLDER = "160000", "040000"
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


def changes(git: GitCommand, layout: Layout, before: str, after: str) -> tuple[TreeChange, ...]:
    """Return the changes from one tree (or commit) to the other, by path, those of folders too.

    A rename is a deletion and an addition. Every tree that git compared is hashed.

    Raises:
        UntrueObject: one of them has another content than its id says.
    """
    if before == after:
        return ()
    ends = require_id(before), require_id(after)
    fields = git.run("diff-tree", "-r", "-t", "-z", "--no-renames", *ends).fields()
    found = tuple(_change(meta, path) for meta, path in zip(fields[::2], fields[1::2], strict=True))
    read = [
        id
        for c in found
        for id, mode in ((c.before, c.mode_before), (c.after, c.mode_after))
        if id and mode == FOLDER
    ]
    stored = [name for name in ends if name != layout.empty_tree]
    true_objects(git, layout, (*stored, *read), trees_of=stored)
    return found


def diff(
    git: GitCommand,
    layout: Layout,
    before: str,
    after: str,
    *,
    paths: Sequence[str] | None = None,
    max_chars: int | None = None,
    as_text: bool = False,
) -> str:
    """Return the unified diff of two trees, cut at `max_chars` with a note. Binary files are only named.

    With `as_text` every file counts as text, whatever its bytes, its size or its attributes are.
    """
    if before == after or (paths is not None and not paths):
        return ""
    changed = [c for c in changes(git, layout, before, after) if FOLDER not in (c.mode_before, c.mode_after)]
    wanted = changed if paths is None else within(changed, frozenset(paths))
    sides = [side for c in wanted for side in (c.entry_before, c.entry_after) if side]
    require_true_blobs(git, layout, [side.blob for side in sides if not side.is_submodule])
    if len(wanted) == len(changed):
        paths = None  # git would compare each path with each file
    answer = git.with_options(config={"core.bigFileThreshold": _BIG_FILE}).run(
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


def within(changed: Sequence[TreeChange], paths: Set[str]) -> list[TreeChange]:
    """Return the changes of the files in `paths`, and of those below them."""
    found = []
    for change in changed:
        parts = change.path.split("/")
        if any("/".join(parts[:depth]) in paths for depth in range(1, len(parts) + 1)):
            found.append(change)
    return found


def entries(git: GitCommand, layout: Layout, tree: str) -> dict[str, TreeEntry]:
    """Return every file of a tree (or commit): path → entry; raises `UntrueObject` as `changes` does."""
    return _entries(git, layout, tree, "-r")


def _entries(git: GitCommand, layout: Layout, tree: str, *which: str) -> dict[str, TreeEntry]:
    """Return the files that `ls-tree -t` lists, having hashed every tree that it read."""
    found, folders = {}, []
    for field in git.run("ls-tree", "-t", "-z", "--full-tree", require_id(tree), *which).fields():
        meta, path = field.split("\t", 1)
        mode, kind, blob = meta.split(" ")
        if kind == "tree":
            folders.append(blob)
        else:
            found[path] = TreeEntry(mode, blob)
    stored = [tree] if tree != layout.empty_tree else []
    true_objects(git, layout, (*stored, *folders), trees_of=stored)
    return found


def file_at(git: GitCommand, layout: Layout, tree: str, path: str) -> bytes | None:
    """Return a file's content in the tree (a link's target); None if there is no such file."""
    if not is_work_tree_path(path):
        return None
    entry = _entries(git, layout, tree, "--", path).get(path)
    return blob_contents(git, [entry.blob], layout).get(entry.blob) if entry else None


def blob_contents(git: GitCommand, blobs: Iterable[str], layout: Layout) -> dict[str, bytes]:
    """Return blob id → content, without ids of other objects.

    Raises:
        UntrueObject: a blob has another content than its id says.
    """
    found = true_objects(git, layout, blobs)
    return {name: content for name, (kind, content) in found.items() if kind == "blob"}


def tree_of(git: GitCommand, layout: Layout, commit: str) -> str:
    """Return the tree of a commit.

    Raises:
        GitError: the commit does not exist.
        UntrueObject: it has another content than its id says.
    """
    tree = tree_in(true_objects(git, layout, [commit]), commit)
    if tree is None:
        raise GitError(f"commit {commit} does not exist", hint="see: git log --all")
    return tree


def merged(git: GitCommand, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
    """Merge two commits without a work tree; return the tree, and the paths in conflict.

    Raises:
        GitError: the commits have no common history, or git is older than 2.38.
    """
    answer = git.run(
        "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
        require_id(ours), require_id(theirs), accept=(0, 1, 128, 129),
    )  # fmt: skip
    if answer.exit_code > 1:
        raise GitError(f"cannot merge: {answer.stderr.strip()}", hint="git 2.38 or later is needed to merge")
    tree, *paths = os.fsdecode(answer.stdout).rstrip("\0\n").split("\0")
    return tree, tuple(dict.fromkeys(path for path in paths if path))


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
