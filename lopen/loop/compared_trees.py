"""The change between two git trees, with the contents of the files that are not too large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lopen.files.plain_files import LINK
from lopen.git.repository import Repository
from lopen.git.trees import GITLINK, TreeChange
from lopen.loop.judged_change import LARGEST_COMPARED
from lopen.loop.judged_files import is_specification, kind
from lopen.loop.machine_paths import linked_texts
from lopen.verification.test_files import MAX_CHARS, FileChange

MOST_COMPARED = 64 * 2**20  # bytes of all files together
LONGEST_LINK = 4_096  # bytes
UNREADABLE = " " * (MAX_CHARS + 1)


@dataclass(frozen=True)
class ComparedTrees:
    """The files that differ between two trees, and the contents of those that are not too large."""

    base: str
    tree: str
    files: tuple[TreeChange, ...]
    sizes: Mapping[str, int]
    contents: Mapping[str, bytes]
    linked: Mapping[tuple[str, str], str | None]  # (path, blob) of a link → the text that it leads to

    def size(self, blob: str | None) -> int:
        return self.sizes.get(blob or "", 0)

    def text(self, blob: str | None) -> str | None:
        """The blob's text; None where there is no blob, or it is too large."""
        raw = self.contents.get(blob or "")
        return None if raw is None else raw.decode("utf-8", "replace")

    @cached_property
    def compared(self) -> list[FileChange]:
        """The texts of both sides; `UNREADABLE` where one is too large, which is not the same as none."""
        return [
            FileChange(c.path, self._compared(c.path, c.before), self._compared(c.path, c.after))
            for c in self.files
        ]

    def _compared(self, path: str, blob: str | None) -> str | None:
        if (path, blob or "") in self.linked:
            return self.linked[path, blob or ""]
        known = self.text(blob)
        return UNREADABLE if known is None and blob in self.sizes else known


def compared_trees(repository: Repository, base: str, tree: str, module: str) -> ComparedTrees:
    """Return the change from `base` to `tree`, without the module's specification."""
    files = tuple(c for c in repository.changes(base, tree) if not is_specification(c.path, module))
    blobs = [b for c in files for b, mode in sides(c) if b is not None and mode != GITLINK]
    sizes = repository.blob_sizes(blobs)
    links = {
        b for c in files for b, mode in sides(c) if mode == LINK and sizes.get(b or "", 0) <= LONGEST_LINK
    }
    contents = repository.blob_contents(dict.fromkeys([*_readable(files, sizes), *filter(None, links)]))
    linked = linked_texts(repository, (base, tree), files, contents)
    return ComparedTrees(base, tree, files, sizes, contents, linked)


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
