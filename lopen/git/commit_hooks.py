"""The repository's own commit hooks: which there were when a session began, and running them before a commit.

They run where the caller's runner runs them (the sandbox), on a scratch index and a scratch object folder, and
exactly as they were: one that was changed since is run from the copy that was kept.
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
from lopen.git.errors import GitError
from lopen.git.git_files import replace_if_different
from lopen.git.layout import Layout
from lopen.git.private import PrivateFolder

HookName = Literal["pre-commit", "commit-msg"]
Runner = Callable[[Sequence[str], Mapping[str, str]], tuple[int, str]]
"""(argv, variables) → (exit code, output). Runs in the project's root."""

_NAMES: tuple[HookName, ...] = ("pre-commit", "commit-msg")


@dataclass(frozen=True, slots=True)
class CommitHook:
    """One hook script as it was when the session began."""

    name: HookName
    path: str  # absolute
    content: bytes


@dataclass(frozen=True, slots=True)
class HooksSnapshot:
    """The hooks that a session's commits have to pass; none other runs."""

    hooks: tuple[CommitHook, ...] = ()

    def to_json(self) -> str:
        """For keeping it with the session."""
        return json.dumps(
            [
                {"name": h.name, "path": h.path, "content": base64.b64encode(h.content).decode()}
                for h in self.hooks
            ]
        )

    @staticmethod
    def from_json(text: str) -> HooksSnapshot:
        """What `to_json` wrote."""
        return HooksSnapshot(
            tuple(CommitHook(h["name"], h["path"], base64.b64decode(h["content"])) for h in json.loads(text))
        )


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What the hooks said. Where `tree_after` differs from the tree they were given, verifications are stale."""

    passed: bool
    output: str
    tree_after: str
    message_after: str


def take_hooks(layout: Layout, git: GitCommand) -> HooksSnapshot:
    """The executable pre-commit and commit-msg hooks that git would run here, `core.hooksPath` honoured."""
    folder = _hooks_folder(layout, git)
    return HooksSnapshot(tuple(hook for name in _NAMES if (hook := _hook(folder / name, name)) is not None))


class HookRun:
    """One pass of the hooks over a tree that is about to be committed."""

    def __init__(self, private: PrivateFolder, folder: Path, runner: Runner) -> None:
        self._private = private
        self._folder = folder  # writable for the hooks; what is left there from before is no hook's to find
        self._runner = runner

    def run(self, snapshot: HooksSnapshot, tree: str, message: str) -> tuple[bool, str, str]:
        """(passed, output, message after): the first hook that refuses ends it."""
        if not snapshot.hooks:
            return True, "", message
        self._empty()
        variables = self._prepare(tree)
        file = self._folder / "COMMIT_EDITMSG"
        replace_if_different(file, message.encode("utf-8", "replace"))
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
        """Scratch index and objects; a hook may stage what it likes without reaching the repository."""
        objects = self._folder / "objects"
        objects.mkdir()
        index = self._folder / "index"
        self._private.git(index).run("read-tree", "--reset", tree)
        self._private.git(index).run("update-index", "-q", "--refresh", accept=(0, 1))
        return {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._private.layout.objects),
            "GIT_EDITOR": ":",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def _script(self, hook: CommitHook) -> str:
        """The script to run: in its own place while it is unchanged, else the copy that was kept."""
        if _is_unchanged(hook):
            return hook.path
        copy = self._folder / hook.name
        replace_if_different(copy, hook.content)
        copy.chmod(0o700)
        return str(copy)


def _hooks_folder(layout: Layout, git: GitCommand) -> Path:
    """Where git looks for hooks. Only this question is asked without the setting that switches hooks off."""
    fields = git.run("config", "--list", "-z", "--show-scope").fields()
    entries = [
        entry.partition("\n")
        for scope, entry in zip(fields[::2], fields[1::2], strict=True)
        if scope != "command"
    ]
    named = [value for key, _, value in entries if key == "core.hookspath"]
    if not named:
        return layout.common_dir / "hooks"
    return layout.root / Path(named[-1]).expanduser()


def _hook(path: Path, name: HookName) -> CommitHook | None:
    """The hook, if there is one that git would run."""
    try:
        if not path.is_file() or not os.access(path, os.X_OK):
            return None
        return CommitHook(name, str(path), path.read_bytes())
    except OSError as error:
        raise GitError(f"the {name} hook cannot be read: {error}", hint=f"see: ls -l {path}") from error


def _is_unchanged(hook: CommitHook) -> bool:
    path = Path(hook.path)
    try:
        return os.access(path, os.X_OK) and path.read_bytes() == hook.content
    except OSError:
        return False
