"""What of a checkout's git folder a command may not change: where it lies, as it was, and putting it back."""

from __future__ import annotations

from lopen.git import protection
from lopen.git.layout import Layout
from lopen.git.nested import Nested, find_nested
from lopen.git.protection import NO_STATE, NOTHING, ProtectedState, Tampering
from lopen.git.refs import References
from lopen.git.snapshot import Snapshots


class Guard:
    """Where there is no repository: nothing of git to keep."""

    def state(self) -> ProtectedState:
        """HEAD, references, configuration and hooks as they are now. Starts no process but the first time."""
        return NO_STATE

    def put_back(self, before: ProtectedState) -> Tampering:
        """Undo what a command changed of the protected files, and look whether objects vanished."""
        return NOTHING

    def exposed(self) -> tuple[str, ...]:
        """What a sandbox has to keep read-only besides `.git`, by absolute path: git's folders elsewhere in the
        project, the `.git` of nested repositories, and `settings`.
        """
        return ()

    def scattered(self) -> bool:
        """Whether there is more of git to guard than one `.git` folder at the top."""
        return False

    def settings(self) -> tuple[str, ...]:
        """Versioned `.claude/settings*` and `.lopen` further down, relative to the root."""
        return ()

    def look_again(self) -> None:
        """HEAD moved, and with it which nested repositories and settings there are."""


class RepositoryGuard(Guard):
    """Over one repository. `own` is the only shared reference that is guarded, where others move theirs meanwhile."""

    def __init__(self, layout: Layout, references: References, snapshots: Snapshots, own: str = "") -> None:
        self._layout = layout
        self._references = references
        self._snapshots = snapshots
        self._own = own
        self._nested: Nested | None = None  # not looked for yet

    def look_again(self) -> None:
        self._nested = None

    def state(self) -> ProtectedState:
        return protection.take_state(self._layout, self._own, self._inside())

    def put_back(self, before: ProtectedState) -> Tampering:
        restored = protection.put_back(self._layout, before, self._own, self._inside())
        vanished = protection.objects_missing(self._layout, before) and not self._is_whole()
        return Tampering(restored, vanished)

    def exposed(self) -> tuple[str, ...]:
        root = f"{self._layout.root}/"
        folders = map(str, (self._layout.git_dir, self._layout.common_dir))
        elsewhere = [folder for folder in folders if folder.startswith(root)]
        nested = self._inside()
        places = (*elsewhere, *nested.present, *(root + path for path in nested.settings))
        return tuple(p for p in dict.fromkeys(places) if not f"{p}/".startswith(f"{root}.git/"))

    def scattered(self) -> bool:
        return bool(self._inside().starts) or self._layout.git_dir != self._layout.root / ".git"

    def settings(self) -> tuple[str, ...]:
        return self._inside().settings

    def _inside(self) -> Nested:
        """The nested repositories and settings; looked for once, and again when HEAD moved."""
        if self._nested is None:
            self._snapshots.follow(self._references.head().commit)
            git = self._snapshots.ready()
            embedded = self._snapshots.survey().embedded
            self._nested = find_nested(self._layout, git, embedded)
        return self._nested

    def _is_whole(self) -> bool:
        """Whether every object that HEAD needs can be read."""
        head = self._references.head().commit
        if head is None:
            return True
        answer = self._references.git.run("rev-list", "--objects", "--quiet", head, accept=(0, 1, 128))
        return answer.exit_code == 0
