"""Writing commits of snapshots: in whose name, and none that would add a secret to the history."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from lopen.git import commits, trees
from lopen.git.command import Command
from lopen.git.errors import GitError
from lopen.git.private import PrivateFolder
from lopen.git.screening import Leak, Screen


class CommitWriter:
    """Writes commit objects through the content door. No reference moves; `git` is only asked for the identity."""

    def __init__(self, git: Command, private: PrivateFolder, screen: Screen) -> None:
        self._git = git
        self._private = private
        self._screen = screen
        self._identity: Mapping[str, str] = {}

    def identity(self) -> Mapping[str, str]:
        """In whose name, as the variables that say so to git.

        Raises:
            NoIdentity: git has not been told; the hint says how.
        """
        if not self._identity:
            self._identity = commits.identity(self._git)
        return self._identity

    def write(self, tree: str, parent: str | None, message: str, *, purpose: str, sign: bool = False) -> str:
        """A commit of `tree` on top of `parent`, durable on return. `purpose` says what for: "committed", say.

        Raises:
            NoIdentity: nobody to commit as.
            GitError: it would add a secret.
        """
        self._private.prepare(parent)
        refuse_leaks(self._stored_leaks(tree, parent), purpose)
        git = self._private.git().having(self.identity())
        return commits.write_commit(git, tree, parent, message, sign=sign)

    def _stored_leaks(self, tree: str, parent: str | None) -> Sequence[Leak]:
        """The secrets in `tree` as it is in git's objects by now, whatever was looked over before."""
        git = self._private.git()
        layout = self._private.layout
        old = parent or layout.empty_tree
        changed = [(c.path, c.after) for c in trees.changes(git, old, tree) if c.mode_after != trees.GITLINK]
        return self._screen.stored(
            [(path, blob) for path, blob in changed if blob],
            layout.object_format,
            lambda blob: git.run("cat-file", "blob", blob).stdout,
            lambda path: trees.file_at(git, old, path),
        )


def refuse_leaks(leaks: Sequence[Leak], purpose: str) -> None:
    """Raises `GitError` where there is a leak: it would be `purpose` ("committed", say)."""
    if not leaks:
        return
    first = leaks[0]
    raise GitError(
        f"{first} holds what looks like a secret ({first.kind}); it would be {purpose}, in the repository for good",
        hint=f"take it out of the file, or have git ignore the file: echo {shlex.quote(f'/{first.path}')} >> .gitignore",
    )
