"""Places in the work tree by which git starts programs: nested repositories, settings in subfolders, and the hooks and
configuration that git's configuration names. Only the user may change them (docs/reference/sandbox.md).

`git status` looks into a submodule and uses its configuration, so a program that a command configures there would
run later, outside the sandbox. The nested repositories come from git's index, not from a walk of the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.layout import Layout

# Entries of a git folder that determine which programs git starts
_CONFIGURING = ("config", "config.worktree", "commondir", "hooks", "info")
_GITLINK = "160000 "
_KNOWN = ("config", "config.worktree", "hooks", "info")  # protected in every git folder
# githooks(5): where the folder of hooks is the whole project, only these names are protected
_HOOKS = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
    "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-auto-gc", "post-rewrite",
    "reference-transaction", "push-to-checkout", "sendemail-validate", "fsmonitor-watchman", "post-index-change",
    "pre-receive", "update", "proc-receive", "post-receive", "post-update",
)  # fmt: skip
_MAX_FILES = 100
GIT_FOLDER = ("HEAD", "objects", "refs")
"""What a folder holds that git takes for a repository, whatever its name."""
# Settings of a repository that start no program
_PLAIN_SETTINGS = (
    "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
    "name", "email", "url", "fetch", "remote", "merge",
)  # fmt: skip

_Entry = tuple[str, str, str]  # origin (absolute path), key, value


@dataclass(frozen=True, slots=True)
class Nested:
    """Protected paths inside the work tree: absolute, except `settings` and `configured`."""

    starts: tuple[str, ...] = ()  # compared with everything below them, even if they do not exist yet
    folders: tuple[str, ...] = ()  # must stay folders
    present: tuple[str, ...] = ()  # `.git` files and folders that exist
    settings: tuple[str, ...] = ()  # nested `.claude/settings*` and `.lopen`, relative to the root
    configured: tuple[str, ...] = ()  # hooks and configuration in the work tree, relative to the root

    def with_configured(self, root: str, paths: Iterable[str]) -> Nested:
        """Protect `paths` too: hooks and configuration files inside the root."""
        paths = tuple(paths)
        inside = tuple(path.removeprefix(f"{root}/") for path in paths)
        parents = {place for path in inside if "/" in path for place in _above(root, os.path.dirname(path))}
        real = (path for path in paths if os.path.lexists(path) and os.path.realpath(path) == path)
        return replace(
            self,
            starts=(*self.starts, *paths),
            folders=tuple(sorted({*self.folders, *parents})),
            present=(*self.present, *real),
            configured=inside,
        )


NO_NESTED = Nested()


def find_nested(layout: Layout, git: GitCommand, embedded: Iterable[str]) -> Nested:
    """Find the submodules and settings in HEAD (`git` uses an index of it), and include `embedded` repositories."""
    links: list[str] = []
    settings: list[str] = []
    for entry in git.run("ls-files", "-z", "--stage").fields():
        about, _, path = entry.partition("\t")
        if about.startswith(_GITLINK):
            links.append(path)
        elif _is_settings(path):
            settings.append(path)
    starts: list[str] = []
    folders: set[str] = set()
    present: list[str] = []
    for path in dict.fromkeys((*links, *embedded)):
        place = f"{layout.root}/{path}/.git"
        folders |= set(_above(str(layout.root), path))
        mode = _mode(place)
        present += [place] if mode else []
        if stat.S_ISDIR(mode):
            folders.add(place)
            starts += [f"{place}/{name}" for name in _CONFIGURING]
            continue
        starts.append(place)
        starts += [
            f"{folder}/{name}" for folder in _linked_git_folder(layout, place) for name in _CONFIGURING
        ]
    return Nested(tuple(starts), tuple(sorted(folders)), tuple(present), tuple(settings))


def is_protected_path(path: str) -> bool:
    """Return True if only the user may write this path: nested settings, or anything in a `.git`."""
    return _is_settings(path) or ".git" in path.split("/")


def names_a_program(config: str) -> bool:
    """Return True unless every setting of a repository's configuration is known to start nothing."""
    settings = (line.strip().partition("=")[0].strip().lower() for line in config.splitlines())
    sections = ("[core]", "[user]", "[remote ", "[branch ", "[submodule")
    return any(s and not s.startswith(("#", ";", *sections)) and s not in _PLAIN_SETTINGS for s in settings)


def possible_git_folders(changed: Iterable[str]) -> set[str]:
    """Return the folders around changed files that may be repositories, by the names of a repository's parts."""
    parts = [path.split("/") for path in changed]
    return {
        "/".join(names[:n])
        for names in parts
        for n, name in enumerate(names)
        if n and name in (*GIT_FOLDER, *_CONFIGURING)
    }


def _is_settings(path: str) -> bool:
    *above, name = path.split("/")
    if ".lopen" in above[1:]:
        return True
    return len(above) > 1 and above[-1] == ".claude" and name.startswith("settings")


def _above(root: str, path: str) -> Iterator[str]:
    """Yield the folder at `path` and its parents below the root, none of which may become a link."""
    place = root
    for part in path.split("/"):
        place = f"{place}/{part}"
        yield place


def _linked_git_folder(layout: Layout, place: str) -> Iterator[str]:
    """Yield the git folder that a `.git` file names, if it is inside the project or the repository's git folder."""
    try:
        named = (
            Path(place).read_text("utf-8").removeprefix("gitdir:").strip() if os.path.isfile(place) else ""
        )
    except (OSError, UnicodeDecodeError):
        return
    folder = os.path.realpath(os.path.join(os.path.dirname(place), named)) if named else ""
    if any(folder.startswith(f"{os.path.realpath(top)}/") for top in (layout.root, layout.common_dir)):
        yield folder


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def find_configured(layout: Layout, git: GitCommand) -> tuple[str, ...]:
    """Return the absolute paths inside the root, existing or not, of hooks and of configuration that git reads.

    A conditional include counts although its condition does not hold now. Where a path leads through a link, the
    place that it leads to follows it.
    """
    pending = list(_active(layout, git))
    files = {origin for origin, _, _ in pending}
    found: list[str] = []
    while pending:
        origin, key, value = pending.pop()
        found.append(origin)
        if key == "core.hookspath" and value:
            found += _hooks(layout, value)
        elif key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
            included = _absolute(os.path.dirname(origin), value)
            found.append(included)
            if included not in files and len(files) < _MAX_FILES:
                files.add(included)
                pending += _entries_of(included, git)
    both = (place for path in found for place in (path, os.path.realpath(path)))
    return tuple(path for path in dict.fromkeys(both) if _is_ours(layout, path))


def _active(layout: Layout, git: GitCommand) -> Iterator[_Entry]:
    """Yield what git reads now, without lopen's own settings."""
    fields = git.run("config", "--list", "--show-scope", "--show-origin", "-z").fields()
    for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        if scope != "command" and origin.startswith("file:"):
            key, _, value = entry.partition("\n")
            yield _absolute(str(layout.root), origin.removeprefix("file:")), key, value


def _entries_of(path: str, git: GitCommand) -> Iterator[_Entry]:
    """Yield what is in one file; nothing where there is none, or git cannot read it."""
    if not os.path.isfile(path):
        return
    answer = git.run("config", "--file", path, "--no-includes", "--list", "-z", accept=(0, 1, 128))
    for entry in answer.fields():
        key, _, value = entry.partition("\n")
        yield path, key, value


def _hooks(layout: Layout, value: str) -> Iterator[str]:
    folder = _absolute(str(layout.root), value)
    if os.path.basename(folder) == "_":  # husky: the hooks in `_` start the scripts beside it
        yield folder
        folder = os.path.dirname(folder)
    if os.path.realpath(folder) == str(layout.root):
        yield from (f"{layout.root}/{name}" for name in _HOOKS)
    else:
        yield folder


def _absolute(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


def _is_ours(layout: Layout, path: str) -> bool:
    """Return True for a path inside the root that is not among the protected files of its git folder."""
    for folder in (layout.git_dir, layout.common_dir):
        if Path(path).is_relative_to(folder) and Path(path).relative_to(folder).parts[:1] in [
            (name,) for name in _KNOWN
        ]:
            return False
    return path.startswith(f"{layout.root}/")
