"""The contents of a tree's files, in portions that fit into memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from lopen.files.plain_files import EXECUTABLE, blob_id
from lopen.files.room_files import RoomFile
from lopen.git.checkout import Checkout
from lopen.git.errors import GitError
from lopen.git.loose_objects import packed_bytes
from lopen.git.trees import GITLINK, TreeEntry

BATCH_BYTES = 64_000_000  # of contents held in memory while the room is filled
_CONVERTING = re.compile(rb"ident|eol|crlf|encoding")
PLAIN = "100644"
_MOST_DEFLATED = 1_032  # bytes of content in a byte of zlib's


def batches(
    repository: Checkout, wanted: Mapping[str, TreeEntry | None]
) -> Iterator[dict[str, RoomFile | None]]:
    """Yield the files in portions of `BATCH_BYTES` or one larger file, what goes first; submodules are left out."""
    gone = [path for path, entry in wanted.items() if entry is None or entry.mode == GITLINK]
    yield dict.fromkeys(gone)
    files = {p: RoomFile(e.mode, e.blob) for p, e in wanted.items() if e is not None and e.mode != GITLINK}
    sizes = _sizes(repository, [file.blob for file in files.values()])
    batch: dict[str, RoomFile | None] = {}
    room = BATCH_BYTES
    for path, file in files.items():
        room -= sizes.get(file.blob, 0)
        if room < 0 and batch:
            yield batch
            batch, room = {}, BATCH_BYTES - sizes.get(file.blob, 0)
        batch[path] = file
    yield batch


def _sizes(repository: Checkout, blobs: list[str]) -> Mapping[str, int]:
    """Return blob id → size; nothing where all of them fit, as their own files show without a process of git's."""
    packed = packed_bytes(repository.layout, blobs) if len(blobs) <= 50 else None
    if packed is not None and packed * _MOST_DEFLATED <= BATCH_BYTES:
        return {}
    return repository.blob_sizes(blobs)


class RoomContents:
    """What the files of the room hold: the bytes of their blobs, but where attributes let a checkout write other ones."""

    def __init__(self, repository: Checkout) -> None:
        self._repository = repository
        self._attributes: dict[str, bool] = {}  # path of a .gitattributes file → if it can change bytes
        self._converted: dict[str, bytes] = {}  # by the id that a blob of them would have

    def read(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return id → content; raises the errors of `contents`."""
        wanted = dict.fromkeys(blobs)
        own = {name: self._converted[name] for name in wanted if name in self._converted}
        return own | contents(self._repository, [name for name in wanted if name not in own])

    def as_checked_out(
        self, tree: str, wanted: Mapping[str, TreeEntry | None]
    ) -> Mapping[str, TreeEntry | None]:
        """Return what is to be written to bring the room to `tree`, with the entries that a checkout has.

        Where attributes changed, that is every file.
        """
        told = any(self._attributes.values())
        if rules := [path for path in wanted if PurePosixPath(path).name == ".gitattributes"]:
            for path in rules:
                content = self._repository.file_at(tree, path) if wanted[path] else None
                self._attributes[path] = content is not None and _CONVERTING.search(content) is not None
        if not told and not any(self._attributes.values()):
            return wanted
        if rules:
            wanted = {**wanted, **self._repository.entries(tree)}
            self._converted.clear()
        files = {p: e for p, e in wanted.items() if e is not None and e.mode in (PLAIN, EXECUTABLE)}
        rule = self._repository.conversions(tree, files)
        paths = sorted({path for path, name in rule if name != "filter"})
        found = dict(wanted)
        for path, raw in self._repository.checked_out(tree, paths).items():
            name = blob_id(raw, self._repository.layout.object_format)
            if name != files[path].blob:
                found[path] = TreeEntry(files[path].mode, name)
                self._converted[name] = raw
        return found


def contents(repository: Checkout, blobs: Iterable[str]) -> dict[str, bytes]:
    """Return blob id → content.

    Raises:
        GitError: the repository lacks some, as a partial clone does.
    """
    wanted = dict.fromkeys(blobs)
    found = repository.blob_contents(wanted)
    if lacking := len(wanted.keys() - found.keys()):
        raise GitError(
            f"the repository lacks the content of {lacking} files of this tree, as a partial clone does; "
            "lopen verifies the whole tree",
            hint="get them with: git archive HEAD > /dev/null",
        )
    return found
