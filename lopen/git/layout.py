"""The folders of a repository, and the checks that lopen can work in it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.errors import GitError, NotARepository

OLDEST_GIT = (2, 36)

EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one repository, all absolute. A linked work tree has its own `git_dir` and shares `common_dir`."""

    root: Path
    git_dir: Path
    common_dir: Path
    objects: Path
    object_format: str  # "sha1" or "sha256"

    @property
    def empty_tree(self) -> str:
        """The id of the tree without entries; git knows it without storing it."""
        return EMPTY_TREE[self.object_format]

    @property
    def null_id(self) -> str:
        """The id that means "no object" as the expected old value of a reference."""
        return "0" * len(self.empty_tree)

    @property
    def index(self) -> Path:
        """The user's own index of this work tree."""
        return self.git_dir / "index"


def check_version(git: GitCommand) -> None:
    """Refuse a git older than 2.36, which lopen needs for `core.fsync`."""
    text = git.run("version").text
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        required = ".".join(map(str, OLDEST_GIT))
        raise GitError(f"{text} is too old; lopen needs git {required} or later", hint="update git")


def discover(git: GitCommand) -> Layout:
    """Return the layout of the repository whose top is `git.folder`.

    git itself finds the repository, so that its check of ownership runs.

    Raises:
        NotARepository: there is none, it is bare or another user's, or its top is another folder.
    """
    root = git.folder.resolve()
    answer = git.run(
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--git-dir",
        "--git-common-dir",
        "--git-path",
        "objects",
        "--show-object-format",
    )
    parts = answer.text.split("\n")
    if len(parts) != 5:
        raise NotARepository(f"the path of {root} contains a line break", hint="move the project elsewhere")
    top, git_dir, common_dir, objects = (Path(part) for part in parts[:4])
    if top.resolve() != root:
        raise NotARepository(
            f"{root} is not the top of its repository; {top} is",
            hint=f"work from {top} (lopen -C {shlex.quote(str(top))}), or create a repository in the folder: git init",
        )
    return Layout(root, git_dir, common_dir, objects, parts[4])
