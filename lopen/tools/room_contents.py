"""The contents of a tree's files, in portions that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lopen.git.checkout import Checkout
from lopen.git.errors import GitError
from lopen.git.loose_objects import packed_bytes
from lopen.git.trees import GITLINK, TreeEntry
from lopen.workspace.room_files import RoomFile

BATCH_BYTES = 64_000_000  # of contents held in memory while the room is filled
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
