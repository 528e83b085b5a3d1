"""Files that commands left in the project where no commit shows them: ignored by git, or in a nested repository.

Some of them would run by themselves later, outside the sandbox, when a person starts the program, an editor or git
there. Those that a command of this process created are removed. docs/reference/sandbox.md
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lopen.git.checkout import Checkout
from lopen.git.nested import GIT_FOLDER, names_a_program

Spans = tuple[tuple[int, int], ...]
"""The times, in nanoseconds since the epoch, between which commands ran; in order."""

_TICK_NS = 20_000_000  # file times lag behind the clock
_MOST_FILES = 500_000
_LISTED = 12
_REMOVED_LISTED = 100
_STARTUP = frozenset({"sitecustomize.py", "usercustomize.py", "conftest.py", ".envrc"})
_EDITORS = frozenset({".vscode", ".idea", ".zed", ".fleet", ".devcontainer"})
# Files that a tool obeys when a person starts it beside them; in folders that git ignores they belong to what was built
_OBEYED = re.compile(
    r"GNUmakefile|makefile|\.?[Jj]ustfile|Taskfile\.ya?ml|Rakefile|Vagrantfile|noxfile\.py"
    r"|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.[cm]js|\.pnp\.(?:cjs|loader\.mjs)|bunfig\.toml|\.(?:mocha|babel|eslint|prettier|swc)rc(?:\.\w+)?"
    r"|(?:jest|vitest|vite|babel|eslint|webpack|rollup|postcss|tailwind|prettier|karma|playwright|cypress|next|nuxt|svelte|astro|metro)\.config\.\w+"
    r"|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.cfg|\.?mypy\.ini|\.?pylintrc|\.coveragerc|\.pdbrc"
    r"|\.pre-commit-config\.ya?ml|\.?lefthook\.ya?ml|(?:\.|user\.)?bazelrc|\.bazeliskrc|\.?mise(?:\.local)?\.toml|\.mcp\.json"
    r"|\.rspec|\.irbrc|\.pryrc|\.user\.ini|phpunit\.xml|gradle\.properties|init\.gradle(?:\.kts)?|\.sbtopts|\.jvmopts"
    r"|CMakeUserPresets\.json|(?:docker-)?compose\.override\.ya?ml"
    r"|\.exrc|\.n?vimrc|\.nvim\.lua|\.dir-locals(?:-2)?\.el|\.gdbinit|\.lldbinit|\.Rprofile|\.iex\.exs|\.ghci"
)
_OBEYED_FOLDERS = re.compile(
    r"(?:^|/)(?:\.cargo/config(?:\.toml)?|\.(?:mvn|husky|lefthook|yarn/(?:plugins|releases))/.+)$"
)


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """What commands left, relative to the root: `ignored` (folders end in `/`), `repositories`, and what was removed."""

    ignored: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield a line for a person about each kind."""
        if self.removed:
            yield f"removed, because it would run by itself outside the sandbox: {_listed(self.removed, _REMOVED_LISTED)}"
        if self.repositories:
            yield f"commands left nested repositories, which no commit contains: {_listed(self.repositories)}"
        if self.ignored:
            yield f"commands left files that git ignores: {_listed(self.ignored)}"


def clear_left_files(
    root: Path, repository: Checkout, spans: Spans, *, kept: Collection[str] = frozenset()
) -> LeftFiles:
    """Find what commands left in the project at `root` within `spans`; remove what they created and runs by itself.

    `kept` are files and folders that no command changes for good: what is there is the person's.
    """
    if not spans:
        return LeftFiles()
    changed = list(_changed_within(str(root), spans))
    folders = {str(parent) for path in changed for parent in PurePosixPath(path).parents if parent.name}
    nested = sorted(_uncommitted(repository, [folder for folder in folders if _is_git_folder(root, folder)]))
    inside = {path for path in changed if _in(path, nested)}
    outside = [path for path in changed if path not in inside]
    above = {f"{folder}/" for folder in folders if not _in(f"{folder}/", nested)}
    hidden = set(repository.ignored([*outside, *above]))
    candidates = [
        path
        for path in (*hidden.intersection(outside), *inside)
        if _runs_by_itself(root, path, nested) or _is_obeyed(path, hidden)
    ]
    above_kept = ({path, *map(str, PurePosixPath(path).parents)} for path in candidates)
    candidates = [
        path for path, places in zip(candidates, above_kept, strict=True) if places.isdisjoint(kept)
    ]
    created = sorted(p for p in candidates if _created_within(f"{root}/{p}", spans))
    for path in created:
        with contextlib.suppress(OSError):
            os.unlink(root / path)
    gone = {p for p in created if not os.path.lexists(root / p)}
    ignored = {_outermost(p, hidden) for p in hidden.intersection(outside) - gone}
    return LeftFiles(
        tuple(sorted(ignored)),
        tuple(folder.removesuffix("/.git") for folder in nested),
        tuple(sorted(p for p in gone if not _is_byte_code(p) or _sourceless(root, p))),
    )


def _changed_within(root: str, spans: Spans) -> Iterator[str]:
    """Yield the files whose content, name or permissions changed within `spans`, without lopen's and git's own."""
    waiting, seen = [""], 0
    while waiting and seen < _MOST_FILES:
        folder = waiting.pop()
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"{root}/{folder}"):
                path = f"{folder}/{entry.name}" if folder else entry.name
                if path in (".git", ".lopen"):
                    continue
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif _within(entry.stat(follow_symlinks=False).st_ctime_ns, spans):
                    yield path


def _within(moment: int, spans: Spans) -> bool:
    at = bisect_right(spans, (moment + _TICK_NS, moment + _TICK_NS))
    return any(start - _TICK_NS <= moment <= end for start, end in spans[max(0, at - 2) : at])


def _is_git_folder(root: Path, folder: str) -> bool:
    """Return True for a repository's own folder that is not the project's, under any name."""
    return all(os.path.lexists(root / folder / name) for name in GIT_FOLDER)


def _uncommitted(repository: Checkout, git_folders: Sequence[str]) -> Iterator[str]:
    """Yield the git folders whose files are in no commit: git commits those that are not called `.git` like other files."""
    named_otherwise = [folder for folder in git_folders if ".git" not in folder.split("/")]
    head = repository.head().commit if named_otherwise else None
    committed = repository.entries(repository.tree_of(head)) if head else {}
    yield from (folder for folder in git_folders if f"{folder}/HEAD" not in committed)


def _runs_by_itself(root: Path, path: str, nested: Iterable[str]) -> bool:
    """Return True for a file that programs run or import without being told to."""
    place = PurePosixPath(path)
    if folder := next((f for f in nested if path.startswith(f"{f}/")), ""):
        rest = place.relative_to(folder).parts
        hook = "hooks" in rest[:-1] and place.suffix != ".sample"
        return hook or (rest[-1] in ("config", "config.worktree") and _names_a_program(root / path))
    if _EDITORS & set(place.parts[:-1]) or place.name in _STARTUP:
        return True
    return place.suffix in (".pth", ".egg-link") or _is_byte_code(path)


def _is_obeyed(path: str, hidden: set[str]) -> bool:
    """Return True for a file that tools obey beside the project's own files, not among what was built or installed."""
    outermost = _outermost(path, hidden)
    if found := _OBEYED_FOLDERS.search(path):
        return len(outermost.rstrip("/")) > found.start()
    return outermost == path and _OBEYED.fullmatch(path.rpartition("/")[2]) is not None


def _is_byte_code(path: str) -> bool:
    return path.endswith((".pyc", ".pyo"))


def _sourceless(root: Path, path: str) -> bool:
    """Return True for byte code that Python runs though its source is not there."""
    place = PurePosixPath(path)
    folder = place.parent.parent if place.parent.name == "__pycache__" else place.parent
    return not os.path.lexists(root / folder / f"{place.name.partition('.')[0]}.py")


def _names_a_program(config: Path) -> bool:
    try:
        return names_a_program(config.read_text("utf-8", "replace"))
    except OSError:
        return False


def _outermost(path: str, hidden: set[str]) -> str:
    """Return the outermost ignored folder that holds `path`, or `path`."""
    parents = [f"{parent}/" for parent in PurePosixPath(path).parents if parent.name]
    return next((folder for folder in reversed(parents) if folder in hidden), path)


def _in(path: str, nested: Iterable[str]) -> bool:
    """Return True for a path in a nested repository, with its files."""
    return any(path.startswith(f"{folder.removesuffix('/.git')}/") for folder in nested)


def _listed(paths: tuple[str, ...], most: int = _LISTED) -> str:
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more


def _created_within(path: str, spans: Spans) -> bool:
    """Return True if the file came into being within `spans` (statx(2)); False where the file system does not say."""
    buffer = ctypes.create_string_buffer(256)
    follow_no_links, birth_time = 0x100, 0x800
    libc = ctypes.CDLL(None)
    if (
        not hasattr(libc, "statx")
        or libc.statx(-100, os.fsencode(path), follow_no_links, birth_time, buffer) != 0
    ):
        return False
    mask = struct.unpack_from("=I", buffer, 0)[0]
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, 80)
    return bool(mask & birth_time) and _within(seconds * 1_000_000_000 + nanoseconds, spans)
