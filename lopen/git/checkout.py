"""A work tree as the loop sees it: with a repository behind it (`Repository`), or with none (`ShadowTree`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path

from lopen.git.commit_hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.commits import CommitInfo
from lopen.git.private import PrivateFolder
from lopen.git.protection import GitFolderGuard, ProtectedState, Tampering
from lopen.git.refs import Head
from lopen.git.snapshot import Snapshots
from lopen.git.worktree import NO_EXCLUSIONS, WorkTree


class Checkout(WorkTree, ABC):
    """What is asked of either. Without a repository there is no head, no commit, no hook and no branch."""

    ignored_filters: tuple[str, ...] = ()
    """Content filters that only the repository configures. They never run; a person may move them to their own
    configuration (`git config --global filter.<name>.clean …`)."""

    def __init__(
        self,
        private: PrivateFolder,
        snapshots: Snapshots,
        guard: GitFolderGuard,
        *,
        base: Callable[[], str | None],
    ) -> None:
        super().__init__(private, snapshots, base=base)
        self._guard = guard

    @abstractmethod
    def head(self) -> Head:
        """What HEAD is: the commit (None before the first) and the branch (None where detached)."""

    @abstractmethod
    def branch_tip(self, name: str) -> str | None:
        """The commit of a branch, or None where there is no such branch."""

    @abstractmethod
    def reachable(self, commit: str, from_ref: str) -> bool:
        """Whether `commit` is in the history of `from_ref`: a branch name, `HEAD`, `refs/…` or an id."""

    @abstractmethod
    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        """lopen's commits (of one session where given) that `within` reaches, down to `since`, oldest first."""

    @abstractmethod
    def reached(self, within: str, *, since: str | None = None) -> frozenset[str]:
        """The ids of the commits that `within` reaches, down to `since`."""

    @abstractmethod
    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        """Remove what a killed run left: locks on index, HEAD and `branch`, half-written files; the paths removed."""

    @abstractmethod
    def ignore_suggestion(self) -> tuple[str, ...]:
        """The `.gitignore` lines that would cover the well-known caches which lie here and are not ignored."""

    @abstractmethod
    def hooks_snapshot(self) -> HooksSnapshot:
        """The commit hooks as they are now; taken when a session begins, they are all that ever runs in it."""

    @abstractmethod
    def run_hooks(
        self,
        snapshot: HooksSnapshot,
        tree: str,
        message: str,
        runner: Runner,
        *,
        folder: Path,
        exclude: Mapping[str, str] = NO_EXCLUSIONS,
    ) -> HookOutcome:
        """Run the hooks over `tree` before it is committed. `folder` is scratch space that they may write to."""

    def protected_state(self) -> ProtectedState:
        """HEAD, references, configuration and hooks as they are now (`Guard.state`)."""
        return self._guard.state()

    def put_back(self, before: ProtectedState) -> Tampering:
        """Undo what a command changed of the protected files (`Guard.put_back`)."""
        return self._guard.put_back(before)

    def exposed(self) -> tuple[str, ...]:
        """What a sandbox has to keep read-only besides `.git`, by absolute path (`Guard.exposed`)."""
        return self._guard.exposed()

    def scattered(self) -> bool:
        """Whether there is more of git to guard than one `.git` folder at the top."""
        return self._guard.scattered()

    def nested_settings(self) -> tuple[str, ...]:
        """Versioned `.claude/settings*` and `.lopen` further down, relative to the root."""
        return self._guard.settings()
