"""The place where a session works: a clone of the person's repository that lopen owns, one a module.

`home` is the person's checkout. It holds `.lopen/` and `specs/<module>/`, which people read, edit and approve there. The
clone gets a copy of the module's documents, so that its commits contain them. See docs/decisions/0009-own-clone.md.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lopen.files.paths import Root
from lopen.files.protection import ToolRefused, write_protection
from lopen.files.workspace import encoded
from lopen.git import clones
from lopen.git.errors import GitError
from lopen.git.refs import BACKUPS, HEADS, require_commit
from lopen.git.repository import CheckoutOptions, Repository

NOTES = "RESEARCH-*.md"
DOCUMENTS = ("SPECIFICATION.md", NOTES)
MOST_NAMED = 5  # files in a message


@dataclass(frozen=True)
class Workplace:
    """One session's clone and the person's repository. `notices` tell the person in what state it was found."""

    person: Repository
    repository: Repository
    notices: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        """The person's checkout."""
        return self.person.root

    @property
    def root(self) -> Path:
        """The folder in which the work is done."""
        return self.repository.root

    @property
    def folder(self) -> Path:
        """The clone: its files and its git folder."""
        return self.root.parent

    def write_document(self, name: str, text: str) -> None:
        """Write a document of lopen (`specs/<module>/…`) to the folder in which people read it.

        A new note of research lies in `.lopen/` of the checkout: the branch brings it to `specs/` with the merge.
        """
        content, kept = encoded(text), self.home / name
        is_note = kept.match(NOTES) and not kept.exists()
        Root(self.home).replace_file(str(_notes(name)) if is_note else name, content, own=True)
        self._copy(name, content)

    def copy_documents(self, module: str) -> tuple[str, ...]:
        """Copy the module's documents that a person changed; return the paths that differed."""
        documents = module_documents(self.home, module)
        return tuple(name for name, content in documents.items() if self._copy(name, content))

    def _copy(self, name: str, content: bytes) -> bool:
        """Write the file unless it has this content; return True if it was written. Follow no link out of the clone."""
        target = self.root / name
        if not target.is_symlink() and _content(target) == content:
            return False
        try:
            Root(self.root).replace_file(name, content, own=True)  # bytes, so that any encoding survives
        except ToolRefused:
            return False
        return True

    def put_back(self, module: str) -> tuple[str, ...]:
        """Put back what only a person may write, where a command changed it; return the paths."""
        clones.write_pointer(self.repository.layout)
        documents = module_documents(self.home, module)
        changed = self.repository.dirty(lambda path: not write_protection(path.split("/")))
        wrong = tuple(p for p in changed if p not in documents or _content(self.root / p) != documents[p])
        head = self.repository.head().commit
        if wrong and head is not None:
            self.repository.restore(self.repository.tree_of(head), wrong)
        self.copy_documents(module)
        return wrong

    def check_out_start(self, branch: str) -> None:
        """Bring the clone to the commit at which the module's new branch starts, with the person's other branches."""
        start = start_commit(self.person, branch)
        clones.fetch_all(self.person, self.repository, branch)
        if not self.repository.has_commit(start):
            self.fetch(branch)
        if self.repository.head().commit != start:
            self.repository.reset_to(start)

    def not_part_of_it(self, module: str) -> str:
        """Return one line on the uncommitted files of the person's checkout, "" if there are none."""

        def own(path: str) -> bool:
            return path.startswith((".lopen/", f"specs/{module}/"))

        dirty = self.person.dirty(own)
        if not dirty:
            return ""
        named = ", ".join(dirty[:MOST_NAMED]) + (", …" if len(dirty) > MOST_NAMED else "")
        one = len(dirty) == 1
        files = "1 uncommitted file" if one else f"{len(dirty)} uncommitted files"
        return f"{files} of your checkout {'is' if one else 'are'} not part of this build: {named}"

    def publish(self, branch: str) -> None:
        """Bring the branch into the person's repository, where it must be as lopen left it.

        Raises:
            RefMoved: it moved, or a checkout of the person stands on it; nothing was changed.
        """
        theirs, ours = self.person.branch_tip(branch), self.repository.branch_tip(branch)
        if theirs != ours:
            clones.publish(self.person, self.repository, HEADS + branch, theirs)
        self.remember(branch)

    def remember(self, branch: str) -> None:
        """Note that the person's repository has the branch as it is in the clone."""
        references = self.repository.references
        now, before = references.tip(HEADS + branch), references.tip(clones.FETCHED)
        if now and now != before:
            references.move(clones.FETCHED, now, before, "in the person's repository")

    def fetch(self, branch: str) -> None:
        """Bring the objects of the person's branch into the clone."""
        clones.fetch_objects(self.person, self.repository, HEADS + branch)

    def bring_objects(self, branch: str) -> None:
        """Bring the objects of the clone's branch into the person's repository; no reference moves."""
        clones.bring_objects(self.person, self.repository, HEADS + branch)

    def bring_commit(self, commit: str) -> None:
        """Bring a commit of the clone that no branch has into the person's repository; no reference moves there."""
        self.repository.references.move(
            clones.LOOSE, commit, self.repository.references.tip(clones.LOOSE), "merge"
        )
        clones.bring_objects(self.person, self.repository, clones.LOOSE)

    def take_over(self, branch: str, commit: str) -> None:
        """Go on from the person's `commit`, with uncommitted work where it touches other files.

        Raises:
            GitError: uncommitted work stands against it; nothing was changed.
        """
        if not self.repository.has_commit(commit):
            clones.fetch_all(self.person, self.repository, branch)
        if not self.repository.has_commit(commit):
            self.fetch(branch)
        self.repository.carry_to(commit)
        self.remember(branch)

    def follow(self, branch: str) -> None:
        """Put the clone on the branch as the person's repository has it; files stay, as uncommitted work."""
        clone, theirs = self.repository, self.person.branch_tip(branch)
        if (
            theirs is not None
            and clone.branch_tip(branch) not in (None, theirs)
            and clone.references.tip(clones.FETCHED) == theirs
        ):
            self.publish(branch)  # a killed run had come to the commit alone
            theirs = self.person.branch_tip(branch)
        clones.fetch_objects(self.person, clone, f"+{BACKUPS}*:{BACKUPS}*")
        if theirs is not None and clone.branch_tip(branch) != theirs:
            self.fetch(branch)
            clone.references.move(
                HEADS + branch, theirs, clone.branch_tip(branch), "follow the person's branch"
            )
        clone.references.attach_head(branch)
        clone.align_index()

    def publish_backup(self, name: str) -> None:
        """Bring a backup into the person's repository."""
        clones.publish(self.person, self.repository, name, self.person.references.tip(name))

    def move_back(self, branch: str, old: str, new: str) -> None:
        """Move the person's branch from `old` to `new`, where the clone's is now."""
        if self.person.branch_tip(branch) != new:
            self.person.references.move(HEADS + branch, new, old, f"revert to {new[:12]}")
        self.remember(branch)

    def close(self) -> str:
        """Remove the clone after the session's end; where it holds uncommitted work, keep it and return why."""
        branch = self.repository.head().branch or ""
        try:
            lost = unsaved_files(self.home, self.repository)
            if self.person.branch_tip(branch) != self.repository.branch_tip(branch):
                lost = (*lost, f"commits of {branch}")
        except GitError as error:  # the session is complete nevertheless
            return f"lopen keeps its clone {self.root}: {error.message}"
        if lost:
            return (
                f"lopen keeps its clone {self.root}: it has uncommitted work ({', '.join(lost[:MOST_NAMED])})"
            )
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.parent.rmdir()  # succeeds for the project's last clone
        return ""


def module_documents(root: Path, module: str) -> dict[str, bytes]:
    """Return the module's specification and research in the checkout at `root`: path → content."""
    folder = root / "specs" / module
    notes = (root / _notes(f"specs/{module}/x")).parent.glob(NOTES)
    files = sorted(
        path for path in (*notes, *(p for each in DOCUMENTS for p in folder.glob(each))) if path.is_file()
    )
    return {f"specs/{module}/{path.name}": path.read_bytes() for path in files}


def _notes(name: str) -> Path:
    """Return the place in `.lopen/` of a note of research that the checkout's `specs/<module>/` lacks."""
    path = Path(name)
    return Path(".lopen", "modules", path.parent.name, path.name)


def unsaved_files(home: Path, clone: Repository) -> tuple[str, ...]:
    """Return the uncommitted files of a clone, except documents equal to the ones in `home`."""

    def is_kept(path: str) -> bool:
        content = _content(clone.root / path)
        return content in (_content(home / path), _content(home / _notes(path)))

    dirty = clone.dirty(lambda path: path.split("/", 1)[0] == ".lopen")
    return tuple(path for path in dirty if not (path.startswith("specs/") and is_kept(path)))


def start_commit(person: Repository, branch: str) -> str:
    """Return the commit at which a session on `branch` starts: the unmerged branch's tip, else the person's HEAD."""
    head, tip = person.head(), person.branch_tip(branch)
    start = require_commit(head)
    return start if tip is None or person.reachable(tip, start) else tip


def open_workplace(
    person: Repository, folder: Path, start: str, options: CheckoutOptions, *, links: bool
) -> Workplace:
    """Open the clone in `folder`, or make it at the commit `start`. The caller holds the module's lock.

    Raises:
        GitError: git cannot clone the repository.
    """
    if folder.resolve().is_relative_to(person.root):
        raise GitError(
            f"{folder} is in the project, which lopen leaves unchanged",
            hint="set XDG_CACHE_HOME to a folder outside of the project",
        )
    notices: tuple[str, ...] = ()
    if folder.exists():
        try:
            clone = clones.open_clone(person, folder, options)
            clones.require_own(person, clone)
            return Workplace(person, clone)
        except GitError as error:
            aside = folder.with_name(f".{folder.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
            folder.rename(aside)
            notices = (f"{error.message}; lopen moved its content to {aside}",)
    clone = clones.make_clone(person, folder, start, options, links=links)
    return Workplace(
        person, clone, (*notices, f"the session works in {clone.root}; your checkout stays unchanged")
    )


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
