"""Objects as a repository stores them, each read only if it has the hash that its name says.

git trusts names: it hashes no object when it reads one, and writes none whose name is there. So a command that can write
below `objects` could have git answer with other bytes than those that a commit holds. After a command lopen hashes the
objects that it wrote and moves others aside; and what lopen decides by is hashed whenever it is read.
See docs/reference/git.md#objects.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.core.stat_cache import NONE, Signature, names_in, signature_at
from lopen.git.command import GitCommand
from lopen.git.errors import GitTimedOut, UntrueObject
from lopen.git.layout import Layout
from lopen.git.loose_objects import holds, loose_object
from lopen.git.refs import require_id

ASIDE = "lopen-moved-aside"  # starts the names of folders beside `objects`
_READ_DERIVED = {"core.commitGraph": "true", "core.multiPackIndex": "true"}  # else git verifies nothing
_READ_BYTES = 8 * 1024**2  # of blobs at once, only to hash them
_FEW = 50  # objects are looked for as files, which costs less than a process
_TICKS_NS = 2_100_000_000  # more than a tick of the clock in which any file system keeps times
_CLOCK_STEP_S = 0.5
LONGEST_CHECK_S = 300
_TREE = "^{tree}"
_BEING_WRITTEN = ("tmp_", ".tmp-")


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """The files of a repository's objects at one moment."""

    loose: Mapping[str, frozenset[str]]  # names by folder
    others: Mapping[str, Signature]  # packs, and what git derives from them, by absolute path
    at_ns: int
    offset: float  # how far the clock is from the one that nobody sets, in seconds

    @property
    def packs(self) -> frozenset[tuple[str, int]]:
        """The paths and sizes of the packs."""
        return frozenset((path, found[3]) for path, found in self.others.items() if path.endswith(".pack"))


def object_files(layout: Layout) -> ObjectFiles:
    """List the files of the repository's own objects, not those of its alternates."""
    objects = str(layout.objects)
    folders = ((name, f"{objects}/{name}") for name in names_in(objects) if len(name) == 2)
    loose = {name: names_in(folder) for name, folder in folders}
    pack, graphs = f"{objects}/pack", f"{objects}/info/commit-graphs"
    paths = [f"{folder}/{name}" for folder in (pack, graphs) for name in names_in(folder)]
    others = {path: signature_at(path) for path in (*paths, f"{objects}/info/commit-graph")}
    present = {path: found for path, found in others.items() if found}
    return ObjectFiles(loose, present, time.time_ns(), time.time() - time.monotonic())


def as_of(files: ObjectFiles, since_ns: int) -> ObjectFiles:
    """Return `files` without those that changed since then, by change times, which no command can set."""
    older = {path: found for path, found in files.others.items() if found[-1] < since_ns - _TICKS_NS}
    return replace(files, others=older, at_ns=since_ns)


def move_untrue_aside(layout: Layout, before: ObjectFiles, git: GitCommand) -> tuple[str, ...]:
    """Move aside what a command wrote since `before` whose bytes have another name; return the paths.

    What git derives from packs and commits, and makes again, is removed without a word unless git finds it true.

    Raises:
        GitTimedOut: they are too many to be checked in `LONGEST_CHECK_S`.
    """
    now, ends = object_files(layout), time.monotonic() + LONGEST_CHECK_S
    untrue = []
    for name, path in _written(layout, before, now):
        if time.monotonic() > ends:
            raise GitTimedOut(
                f"checking new objects in {layout.objects} took longer than {LONGEST_CHECK_S} s",
                hint="git fsck checks them; then: lopen resume",
            )
        untrue += [] if _is_true(path, name, layout) else [path]
    packs, derived = set(), []
    for path in (path for path, found in now.others.items() if before.others.get(path) != found):
        stem, suffix = os.path.splitext(path)
        if suffix == ".lock" or os.path.basename(path).startswith(_BEING_WRITTEN):
            continue  # perhaps by the person's own git; git does not read it
        if suffix in (".pack", ".idx"):
            packs.add(stem)
        elif suffix not in (".keep", ".mtimes", ".promisor"):
            derived.append(path)
    for stem in sorted(packs):
        limited = replace(git, timeout_s=max(1.0, ends - time.monotonic()))
        if (
            os.path.lexists(f"{stem}.idx")
            and limited.run("verify-pack", f"{stem}.idx", accept=range(256)).exit_code
        ):
            untrue += [path for path in (f"{stem}.idx", f"{stem}.pack") if os.path.lexists(path)]
    for path in untrue:
        _move_aside(Path(path), layout)
    if derived:
        _remove_untrue(derived, layout, git.with_options(config=_READ_DERIVED))
    return tuple(sorted(untrue))


def _remove_untrue(derived: Iterable[str], layout: Layout, git: GitCommand) -> None:
    """Remove derived files unless they are true. git cannot verify bitmaps and reverse indexes: they go too."""
    graph = f"{layout.objects}/info/commit-graph"
    chain = not os.path.lexists(graph)  # else git neither reads nor verifies the chain of graphs
    verified: dict[str, Callable[[str], bool]] = {
        "commit-graph": lambda path: path == graph or (chain and path.startswith(f"{graph}s/")),
        "multi-pack-index": lambda path: os.path.basename(path) == "multi-pack-index",
    }
    removed = set(derived)
    for command, covers in verified.items():
        paths = {path for path in removed if covers(path)}
        if paths and git.run(command, "verify", accept=range(256)).exit_code == 0:
            removed -= paths
    for path in removed:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError:  # a folder
            _move_aside(Path(path), layout)


def objects_missing(layout: Layout, before: ObjectFiles) -> bool:
    """Return True if object files are missing. Repacking also removes some, so this needs a closer look."""
    now = object_files(layout)
    missing = (
        names is not (present := now.loose.get(folder, NONE)) and names - present
        for folder, names in before.loose.items()
    )
    return any(missing) or bool(before.packs - now.packs)


def _written(layout: Layout, before: ObjectFiles, now: ObjectFiles) -> Iterator[tuple[str, str]]:
    """Yield (object id, path) of loose objects that are new, or whose change time is not older than `before`.

    All of them where the clock was set, which makes change times useless.
    """
    every = abs(now.offset - before.offset) > _CLOCK_STEP_S
    since = before.at_ns - _TICKS_NS
    for folder, names in now.loose.items():
        place, known = f"{layout.objects}/{folder}", before.loose.get(folder, NONE)
        for name in names:
            path = f"{place}/{name}"
            with contextlib.suppress(OSError):
                if every or name not in known or os.stat(path).st_ctime_ns >= since:
                    yield folder + name, path


def _is_true(path: str, name: str, layout: Layout) -> bool:
    """Return True for a plain file that holds the object `name`, and for a file that git takes for no object."""
    if len(name) != len(layout.empty_tree):
        return True  # tmp_obj_…, which a killed git leaves
    try:
        plain = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return True
    return plain and holds(Path(path), name, layout.object_format)


def _move_aside(path: Path, layout: Layout) -> Path:
    """Move a file or folder to a new folder beside `objects`, whose name no command can have taken; return the folder.

    Raises:
        UntrueObject: it cannot be moved.
    """
    try:
        aside = Path(tempfile.mkdtemp(prefix=f"{ASIDE}-", dir=layout.objects.parent))
        path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)
        path.replace(aside / f"{path.parent.name}{path.name}")
    except OSError as error:
        raise UntrueObject(
            f"the git object in {path} does not hold what its name says, and lopen cannot move it: {error.strerror}",
            hint="remove it, see: git fsck; then: lopen resume",
        ) from error
    return aside


def true_objects(
    git: GitCommand, layout: Layout, names: Iterable[str], *, trees_of: Iterable[str] = ()
) -> dict[str, tuple[str, bytes]]:
    """Return object id → (kind, content) of the objects that exist, and the trees of those of `trees_of`.

    One process reads them, but for a few new ones.

    Raises:
        UntrueObject: the bytes of an object have another hash than its name.
    """
    wanted = [require_id(name) for name in dict.fromkeys(names)]
    found: dict[str, tuple[str, bytes]] = {}
    for name in wanted if len(wanted) <= _FEW else ():
        if (known := loose_object(layout, name)) is not None:
            found[name] = known
    rest = [name for name in wanted if name not in found]
    for name in dict.fromkeys(trees_of):
        tree = tree_in(found, name)
        if tree is None:  # read with its commit, which saves a process
            rest.append(name + _TREE)
        elif tree not in found and (known := loose_object(layout, tree)) is not None:
            found[tree] = known
    _read(git, layout, rest, found)
    trees = (tree_in(found, name) for name in dict.fromkeys(trees_of))
    # git answers that a tree is missing where it notices, on the way from a commit, that it is untrue.
    _read(git, layout, [tree for tree in trees if tree and tree not in found], found)
    return found


def require_true_blobs(git: GitCommand, layout: Layout, blobs: Iterable[str]) -> None:
    """Hash blobs, with a few megabytes of them in memory or one that is larger.

    Raises:
        UntrueObject: a blob has another content than its id says.
    """
    rest = []
    for name in dict.fromkeys(map(require_id, blobs)):
        if not holds(layout.objects / name[:2] / name[2:], name, layout.object_format):
            rest.append(name)
    sizes = blob_sizes(git, rest) if len(rest) > 1 else {}
    batch: list[str] = []
    total = 0
    for name in rest:
        total += sizes.get(name, 0)
        if batch and total > _READ_BYTES:
            _read(git, layout, batch, {})
            batch, total = [], sizes.get(name, 0)
        batch.append(name)
    _read(git, layout, batch, {})


def blob_sizes(git: GitCommand, blobs: Iterable[str]) -> dict[str, int]:
    """Return blob id → size in bytes, without ids of other objects."""
    wanted = "".join(f"{require_id(blob)}\n" for blob in dict.fromkeys(blobs))
    if not wanted:
        return {}
    answer = git.run("cat-file", "--batch-check", stdin=wanted.encode())
    found = (line.split(" ") for line in answer.text.split("\n"))
    return {line[0]: int(line[2]) for line in found if len(line) == 3 and line[1] == "blob"}


def tree_in(found: Mapping[str, tuple[str, bytes]], name: str) -> str | None:
    """Return the tree of the commit or tree `name` in what `true_objects` returned; None if there is none."""
    kind, content = found.get(name, ("", b""))
    if kind == "commit":
        return content.partition(b"\n")[0].removeprefix(b"tree ").decode("ascii", "replace")
    return name if kind == "tree" else None


def _read(git: GitCommand, layout: Layout, names: list[str], found: dict[str, tuple[str, bytes]]) -> None:
    """Add what `names` name to `found`."""
    if not names:
        return
    answer = git.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode()).stdout
    for name, kind, content in _listed(answer):
        _require_true(name, kind, content, layout)
        found[name] = kind, content


def _listed(answer: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield (id, kind, content) of what `cat-file --batch` wrote, without what is missing."""
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


def _require_true(name: str, kind: str, content: bytes, layout: Layout) -> None:
    digest = hashlib.new(layout.object_format, f"{kind} {len(content)}\0".encode(), usedforsecurity=False)
    digest.update(content)
    if digest.hexdigest() == name:
        return
    path = layout.objects / name[:2] / name[2:]
    where = f"lopen moved it to {_move_aside(path, layout)}; " if os.path.lexists(path) else ""
    raise UntrueObject(
        f"the git object {name} does not hold what its name says: a command replaced it, or the disk failed",
        hint=f"{where}if git fsck finds objects missing, fetch them from another clone; then: lopen resume",
    )
