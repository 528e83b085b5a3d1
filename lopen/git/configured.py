"""Files in the work tree that git's configuration names: included configuration and the folder of hooks.

They decide which programs git starts, as `.git/config` and `.git/hooks` do, so only the user may change them
(docs/reference/sandbox.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.layout import Layout

_KNOWN = ("config", "config.worktree", "hooks", "info")  # protected in every git folder
# githooks(5): where the folder of hooks is the whole project, only these names are protected
_HOOKS = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
    "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-auto-gc", "post-rewrite",
    "reference-transaction", "push-to-checkout", "sendemail-validate", "fsmonitor-watchman", "post-index-change",
    "pre-receive", "update", "proc-receive", "post-receive", "post-update",
)  # fmt: skip
_MAX_FILES = 100

_Entry = tuple[str, str, str]  # origin (absolute path), key, value


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
