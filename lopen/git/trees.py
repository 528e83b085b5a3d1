"""Comparing and reading trees by their ids. Every command goes through the content door and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lopen.git.command import GitCommand
from lopen.git.errors import GitError
from lopen.git.refs import checked_id

Kind = Literal["added", "modified", "deleted"]

_KINDS: dict[str, Kind] = {"A": "added", "D": "deleted"}
GITLINK = "160000"
_BIG_FILE = "2m"  # a larger file counts as binary in a diff that is read by a model or a person


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path that differs between two trees. Ids and modes are None on the side where it does not exist."""

    path: str
    kind: Kind
    before: str | None  # blob id
    after: str | None
    mode_before: str | None  # as git writes it: 100644, 100755, 120000 (link), 160000 (submodule)
    mode_after: str | None


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree."""

    mode: str
    blob: str

    @property
    def is_submodule(self) -> bool:
        """Whether it is no file but a pointer into another repository."""
        return self.mode == GITLINK


def is_own_path(path: str) -> bool:
    """Whether `path` may be a file's in a tree: relative, as git writes it, nowhere inside a `.git`."""
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


def changes(git: GitCommand, before: str, after: str) -> tuple[TreeChange, ...]:
    """What turns one tree into the other, by path. Renames are a deletion and an addition."""
    if before == after:
        return ()
    fields = git.run("diff-tree", "-r", "-z", "--no-renames", checked_id(before), checked_id(after)).fields()
    return tuple(_change(meta, path) for meta, path in zip(fields[::2], fields[1::2], strict=True))


def diff(
    git: GitCommand,
    before: str,
    after: str,
    *,
    paths: Sequence[str] | None = None,
    max_chars: int | None = None,
) -> str:
    """The unified diff of two trees; binary files are named only. Longer than `max_chars` it is cut and says so."""
    if before == after or (paths is not None and not paths):
        return ""
    answer = git.having(config={"core.bigFileThreshold": _BIG_FILE}).run(
        "diff-tree",
        "-r",
        "-p",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-relative",
        "--submodule=short",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        checked_id(before),
        checked_id(after),
        "--",
        *(paths or ()),
    )
    return _cut(answer.stdout.decode("utf-8", "replace"), max_chars)


def entries(git: GitCommand, tree: str) -> dict[str, TreeEntry]:
    """path → entry of every file of a tree."""
    found = {}
    for field in git.run("ls-tree", "-r", "-z", "--full-tree", checked_id(tree)).fields():
        meta, path = field.split("\t", 1)
        mode, _, blob = meta.split(" ")
        found[path] = TreeEntry(mode, blob)
    return found


def file_at(git: GitCommand, tree: str, path: str) -> bytes | None:
    """A file's content as it is stored in the tree (of a link: its target); None where there is no such file."""
    if not is_own_path(path):
        return None
    fields = git.run("ls-tree", "-z", "--full-tree", checked_id(tree), "--", path).fields()
    found = [field for field in fields if field.split("\t", 1)[1] == path]
    if not found:
        return None
    _, kind, blob = found[0].split("\t", 1)[0].split(" ")
    return git.run("cat-file", "blob", blob).stdout if kind == "blob" else None


def tree_of(git: GitCommand, commit: str) -> str:
    """The tree of a commit.

    Raises:
        GitError: there is no such commit.
    """
    answer = git.run("rev-parse", "--verify", "--quiet", f"{checked_id(commit)}^{{tree}}", accept=(0, 1, 128))
    if answer.exit_code:
        raise GitError(f"there is no commit {commit}", hint="see: git log --all", stderr=answer.stderr)
    return answer.text


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
    """`text`, cut at the end of a line where it is too long, with a last line that says so."""
    if max_chars is None or len(text) <= max_chars:
        return text
    kept = text[: text.rfind("\n", 0, max_chars) + 1] or text[:max_chars] + "\n"
    return f"{kept}… {len(text) - len(kept)} more characters; ask for single files to see the rest\n"
