"""The repository's own commit hooks: record them at a session's start, and run them before a commit.

The caller's runner runs them in the sandbox, with a scratch index and a scratch object folder, from a copy in lopen's clone.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lopen.git.command import GitCommand
from lopen.git.commits import with_trailers_of
from lopen.git.configuration import read_settings
from lopen.git.errors import GitError
from lopen.git.layout import Layout

HookName = Literal["pre-commit", "commit-msg"]
Runner = Callable[[Sequence[str], Mapping[str, str]], tuple[int, str]]
"""(argv, variables) → (exit code, output). Runs in the project's root."""

_NAMES: tuple[HookName, ...] = ("pre-commit", "commit-msg")


@dataclass(frozen=True, slots=True)
class CommitHook:
    """One hook script as it was at the session's start."""

    name: HookName
    path: str  # relative to the checkout, "" for a hook outside of it
    content: bytes


@dataclass(frozen=True, slots=True)
class HooksSnapshot:
    """The hooks that a session's commits must pass. No other hook runs."""

    hooks: tuple[CommitHook, ...] = ()

    def to_json(self) -> str:
        """Return the snapshot as JSON, to store with the session."""
        return json.dumps(
            [
                {"name": h.name, "path": h.path, "content": base64.b64encode(h.content).decode()}
                for h in self.hooks
            ]
        )

    @staticmethod
    def from_json(text: str) -> HooksSnapshot:
        """Return the snapshot in the JSON of `to_json`."""
        return HooksSnapshot(
            tuple(CommitHook(h["name"], h["path"], base64.b64decode(h["content"])) for h in json.loads(text))
        )


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The result of the hooks. If `tree_after` differs from the tree they received, verifications are stale."""

    passed: bool
    output: str
    tree_after: str
    message_after: str


def read_hooks(layout: Layout, git: GitCommand) -> HooksSnapshot:
    """Return the executable pre-commit and commit-msg hooks that git would run, in `core.hooksPath` if set."""
    folder = _hooks_folder(layout, git)
    return HooksSnapshot(
        tuple(hook for name in _NAMES if (hook := _hook(folder / name, name, layout.root)) is not None)
    )


class HookRun:
    """One run of the hooks over a tree before it is committed."""

    def __init__(self, git: GitCommand, layout: Layout, folder: Path, runner: Runner) -> None:
        self._git = git
        self._layout = layout
        self._folder = folder  # writable for the hooks; emptied first
        self._runner = runner

    def run(self, snapshot: HooksSnapshot, tree: str, message: str) -> tuple[bool, str, str]:
        """Run the hooks until one refuses; return (passed, output, message after)."""
        if not snapshot.hooks:
            return True, "", message
        self._empty()
        variables = self._prepare(tree)
        file = self._folder / "COMMIT_EDITMSG"
        file.write_text(message, "utf-8", "replace")
        outputs: list[str] = []
        for hook in snapshot.hooks:
            arguments = [str(file)] if hook.name == "commit-msg" else []
            exit_code, output = self._runner([self._script(hook), *arguments], variables)
            outputs += [output] if output.strip() else []
            if exit_code != 0:
                return False, "\n".join([*outputs, f"{hook.name} hook refused ({exit_code})"]), message
        rewritten = file.read_text("utf-8", "replace") if file.is_file() else message
        return True, "\n".join(outputs), with_trailers_of(message, rewritten)

    def _empty(self) -> None:
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()
        elif self._folder.exists():
            shutil.rmtree(self._folder)
        self._folder.mkdir(parents=True)

    def _prepare(self, tree: str) -> dict[str, str]:
        """Create a scratch index and object folder, so that a hook can stage files without changing the repository."""
        objects = self._folder / "objects"
        objects.mkdir()
        index = self._folder / "index"
        git = self._git.with_options({"GIT_INDEX_FILE": str(index)})
        git.run("read-tree", "--reset", tree)
        git.run("update-index", "-q", "--refresh", accept=(0, 1))
        return {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._layout.objects),
            "GIT_EDITOR": ":",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def _script(self, hook: CommitHook) -> str:
        """Return the clone's own file of the hook if it is unchanged, or else a copy of the recorded one."""
        place = self._layout.root / hook.path if hook.path else None
        if place is not None and _holds(place, hook.content):
            return str(place)
        copy = self._folder / hook.name
        copy.write_bytes(hook.content)
        copy.chmod(0o700)
        return str(copy)


def copy_hooks_folder(snapshot: HooksSnapshot, person: Path, clone: Path) -> None:
    """Copy the folders of hooks that lie in the person's checkout and that git does not track (husky's `_`)."""
    for folder in {Path(hook.path).parent for hook in snapshot.hooks if hook.path}:
        if not (clone / folder).exists():
            shutil.copytree(person / folder, clone / folder, symlinks=True)


def _hooks_folder(layout: Layout, git: GitCommand) -> Path:
    """Return git's hooks folder, ignoring lopen's own setting that disables hooks."""
    named = [value for _, key, value in read_settings(git) if key == "core.hookspath"]
    if not named:
        return layout.common_dir / "hooks"
    return layout.root / Path(named[-1]).expanduser()


def _hook(path: Path, name: HookName, root: Path) -> CommitHook | None:
    """Return the hook if git would run it."""
    try:
        if not path.is_file() or not os.access(path, os.X_OK):
            return None
        inside = path.is_relative_to(root) and not path.is_relative_to(root / ".git")
        return CommitHook(name, str(path.relative_to(root)) if inside else "", path.read_bytes())
    except OSError as error:
        raise GitError(f"cannot read the {name} hook: {error}", hint=f"see: ls -l {path}") from error


def _holds(path: Path, content: bytes) -> bool:
    try:
        return os.access(path, os.X_OK) and path.read_bytes() == content
    except OSError:
        return False
