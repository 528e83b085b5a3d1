"""Objects whose bytes are not those that their name is the hash of: found after the command, else when they are read."""

from __future__ import annotations

import hashlib
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git.errors import UntrueObject
from lopen.git.loose_objects import loose_object
from lopen.git.protection import NO_TAMPERING
from lopen.git.repository import Repository
from lopen.git.stored_objects import ASIDE
from tests.git.conftest import run_git

NEW = b"print('good')\n"


def stored(kind: str, content: bytes) -> bytes:
    return b"%s %d\0%s" % (kind.encode(), len(content), content)


def lie(objects: Path, name: str, kind: str, content: bytes) -> Path:
    """Store other bytes under the name of an object."""
    place = objects / name[:2] / name[2:]
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(zlib.compress(stored(kind, content)))
    return place


def moved(root: Path, name: str) -> list[Path]:
    """Return where an object was moved to."""
    return list((root / ".git").glob(f"{ASIDE}-*/{name}"))


def file_in_the_way(git: Path, name: str) -> None:
    (git / ASIDE).write_text("x")
    lie(git / "objects", name, "blob", b"bad\n")


def folder_in_the_way(git: Path, name: str) -> None:
    (git / ASIDE / name).mkdir(parents=True)
    lie(git / "objects", name, "blob", b"bad\n")


def folders_for_files(git: Path, name: str) -> None:
    (git / ASIDE / name / "x").mkdir(parents=True)
    (git / "objects" / name[:2] / name[2:] / "y").mkdir(parents=True)


def bomb(git: Path, name: str) -> None:
    """Store an object that unpacks to 200 MB and says that it has five bytes."""
    place = lie(git / "objects", name, "blob", b"small")
    place.write_bytes(zlib.compress(stored("blob", b"small") + bytes(200 << 20), 1))


@pytest.mark.parametrize("attack", [file_in_the_way, folder_in_the_way, folders_for_files, bomb])
def test_no_file_of_a_command_prevents_the_check(
    root: Path, repository: Repository, attack: Callable[[Path, str], None]
) -> None:
    name = "ab" + "c" * 38
    before = repository.protected_state()
    attack(root / ".git", name)
    tracemalloc.start()
    found = repository.restore_protected(before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.restored == (str(root / ".git/objects" / name[:2] / name[2:]),)
    assert moved(root, name)
    assert peak < 20 << 20


def test_a_command_s_untrue_object_is_moved_aside(root: Path, repository: Repository) -> None:
    name = hashlib.sha1(stored("blob", NEW), usedforsecurity=False).hexdigest()
    before = repository.protected_state()
    place = lie(root / ".git/objects", name, "blob", b"bad\n")
    found = repository.restore_protected(before)
    assert (found.restored, found.objects_vanished) == ((str(place),), False)
    assert moved(root, name)
    (root / "src/app.py").write_bytes(NEW)
    assert repository.file_at(repository.snapshot(), "src/app.py") == NEW
    assert "mismatch" not in run_git(root, "fsck")


def test_a_negative_size_unpacks_nothing_more(root: Path, repository: Repository) -> None:
    name = "ab" + "c" * 38
    header = (b"blob " + b" " * 65_529 + b"-1") * 800  # each as long as a piece that is unpacked at once
    lie(root / ".git/objects", name, "blob", b"").write_bytes(zlib.compress(header, 9))
    tracemalloc.start()
    assert loose_object(repository.layout, name) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20


def test_what_another_git_is_writing_stays(root: Path, repository: Repository) -> None:
    before = repository.protected_state()
    packs, graphs = root / ".git/objects/pack", root / ".git/objects/info/commit-graphs"
    graphs.mkdir(parents=True)
    names = (
        "tmp_pack_AbCdEf",
        "tmp_idx_AbCdEf",
        ".tmp-47-pack-01.pack",
        ".tmp-47-pack-01.idx",
        "multi-pack-index.lock",
    )
    written = [*(packs / name for name in names), graphs / "tmp_graph_x", graphs / "commit-graph-chain.lock"]
    for path in written:
        path.write_bytes(b"being written")
    assert repository.restore_protected(before) == NO_TAMPERING
    assert all(path.exists() for path in written)


def test_an_object_that_head_needs_ends_the_run(root: Path, repository: Repository) -> None:
    before = repository.protected_state()
    lie(root / ".git/objects", run_git(root, "rev-parse", "HEAD:README"), "blob", b"bad\n")
    assert repository.restore_protected(before).objects_vanished


def test_untrue_packs_and_derived_files_are_removed_true_ones_stay(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    before = repository.protected_state()
    run_git(root, "gc", "-q")
    run_git(root, "commit-graph", "write")
    run_git(root, "multi-pack-index", "write")
    run_git(root, "-c", "pack.writeReverseIndex=true", "repack", "-adbq")
    objects = root / ".git/objects"
    run_git(root, "multi-pack-index", "write")
    graph, packs = objects / "info/commit-graph", objects / "pack/multi-pack-index"
    restored = repository.restore_protected(before).restored
    assert not [path for path in restored if path.startswith(str(objects))]
    assert graph.is_file()
    assert packs.is_file()
    assert not [*packs.parent.glob("*.bitmap"), *packs.parent.glob("*.rev")]
    before = repository.protected_state()
    for derived in (graph, packs):
        derived.chmod(0o644)
        derived.write_bytes(derived.read_bytes()[:-30] + bytes(30))
    assert repository.restore_protected(before) == NO_TAMPERING
    assert not graph.exists()
    assert not packs.exists()
    assert not list((root / ".git").glob(f"{ASIDE}*"))
    before = repository.protected_state()
    (root / "src/app.py").write_bytes(NEW)
    good, wrong = run_git(root, "hash-object", "-w", "src/app.py"), "0" * 40
    base = root / ".git/objects/pack/pack"
    packed = tmp_path / "names"
    packed.write_text(good)
    made = run_git(
        root, "-c", 'alias.p=!f() { git pack-objects -q "$1" < "$2"; }; f', "p", str(base), str(packed)
    )
    index = base.with_name(f"pack-{made}.idx")
    index.chmod(0o644)
    index.write_bytes(index.read_bytes().replace(bytes.fromhex(good), bytes.fromhex(wrong)))
    found = repository.restore_protected(before)
    assert str(index) in found.restored
    assert not index.exists()
    assert repository.file_at(repository.snapshot(), "src/app.py") == NEW


READINGS: dict[str, tuple[str, Callable[[Repository, str, str], object]]] = {
    "a file": ("HEAD:src/app.py", lambda r, old, new: r.file_at(new, "src/app.py")),
    "many blobs": ("HEAD:README", lambda r, old, new: r.blob_contents(e.blob for e in r.entries(new).values())),
    "a diff": ("HEAD:src/app.py", lambda r, old, new: r.diff(old, new)),
    "the old side of a diff": ("HEAD~:src/app.py", lambda r, old, new: r.diff(old, new)),
    "changes by a folder": ("HEAD:src", lambda r, old, new: r.changes(old, new)),
    "changes by the old tree": ("HEAD~^{tree}", lambda r, old, new: r.changes(old, new)),
    "changes by a commit": ("HEAD", lambda r, old, new: r.changes(old, new)),
    "the list of files": ("HEAD:src", lambda r, old, new: r.entries(new)),
    "a commit's tree": ("HEAD", lambda r, old, new: r.tree_of(new)),
    "a new commit": ("HEAD:src", lambda r, old, new: r.merge_commit(r.tree_of(new), old, new, "Merge\n")),
}  # fmt: skip


@pytest.mark.parametrize("reading", READINGS)
def test_what_a_killed_run_left_is_never_read(root: Path, clock: FakeClock, reading: str) -> None:
    (root / "src/app.py").write_bytes(NEW)
    run_git(root, "commit", "-qam", "New")
    what, read = READINGS[reading]
    name, kind = run_git(root, "rev-parse", what), run_git(root, "cat-file", "-t", what)
    old, new = run_git(root, "rev-parse", "HEAD~"), run_git(root, "rev-parse", "HEAD")
    content = {"blob": b"bad\n", "tree": b"", "commit": b""}[kind]
    if kind == "commit":
        content = run_git(root, "cat-file", "commit", old).encode() + b"\n"
    lie(root / ".git/objects", name, kind, content)
    repository = Repository.open(root, clock=clock)
    with pytest.raises(UntrueObject, match=name):
        read(repository, old, new)
    assert moved(root, name)


@pytest.mark.parametrize("packed", [False, True])
def test_a_diff_holds_few_blobs_in_memory(root: Path, repository: Repository, packed: bool) -> None:
    for number in range(8):
        (root / f"asset{number}.bin").write_bytes(bytes([number]) * (6 << 20))
    run_git(root, "add", ".")
    run_git(root, "commit", "-qm", "Assets")
    if packed:
        run_git(root, "repack", "-adq")
    old, new = run_git(root, "rev-parse", "HEAD~"), run_git(root, "rev-parse", "HEAD")
    tracemalloc.start()
    assert "asset7.bin" in repository.diff(old, new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20
