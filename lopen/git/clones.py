"""Clones of a person's repository that lopen owns: making one, its configuration, and what goes between the two.

lopen writes the clone's configuration, so nothing that the person's repository configures runs there. Its git folder
lies beside the files, so that a sandbox can show it read-only. Objects are hard links to the person's if the file
system allows it. git never writes into the file of an object, and `git gc` there removes names, not files. See
docs/decisions/0009-own-clone.md.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lopen.core.clock import Clock
from lopen.core.files import replace_file
from lopen.git.command import GitCommand, find_git
from lopen.git.configuration import clone_configuration
from lopen.git.errors import GitError, RefMoved
from lopen.git.ignores import CACHE_PATTERNS, HALF_WRITTEN, STATE_PATTERNS, with_lines
from lopen.git.layout import Layout
from lopen.git.refs import HEADS, require_id
from lopen.git.repository import CheckoutOptions, Repository

GIT_FOLDER = ".repository"  # beside the clone's files, which have the name of the project's folder
FETCHED = "refs/lopen/fetched"  # in the clone: where the person's branch stood when lopen moved it last
PERSONS_HEAD = "refs/lopen/head"  # in the clone: where the person's HEAD was when a branch began
LOOSE = "refs/lopen/loose"  # in the clone: a commit that no branch has
NAME, EMAIL = "lopen", "lopen@localhost"
_BY_FILE = {"GIT_ALLOW_PROTOCOL": "file"}
_CHECKED = {
    "fetch.fsckObjects": "true",
    "core.fsync": "committed,reference",
    "fetch.writeCommitGraph": "false",
}


def files_of(folder: Path, person: Repository) -> Path:
    """Return the folder of the clone's files in the clone's `folder`."""
    return folder / person.root.name


def make_clone(
    person: Repository, folder: Path, commit: str, options: CheckoutOptions, *, links: bool
) -> Repository:
    """Clone the person's repository into `folder`, with a detached HEAD at `commit`; a killed attempt leaves no clone.

    `links`: objects may be hard links to the person's.

    Raises:
        GitError: git cannot clone it, or it lacks objects of the commit.
    """
    unfinished = folder.with_name(f".{folder.name}.making")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700, parents=True)
    git = GitCommand(person.git.executable, unfinished, person.git.clock)
    own = () if links else ("--no-hardlinks",)
    git.with_options({**_BY_FILE, "GIT_DEFAULT_REF_FORMAT": "files"}).run(
        "clone",
        "--quiet",
        "--bare",
        "--local",
        *own,
        "--template=",
        "--",
        str(person.layout.common_dir),
        GIT_FOLDER,
    )
    files_of(unfinished, person).mkdir()
    (unfinished / GIT_FOLDER / "HEAD").write_text(f"{commit}\n", "ascii")
    try:
        made = open_clone(person, unfinished, options)
        if not made.has_commit(commit):  # of a detached HEAD, which no branch holds
            fetch_all(person, made, "")
        made.git.run("read-tree", "--reset", "-u", commit)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    unfinished.rename(folder)
    return open_clone(person, folder, options)


def open_clone(
    person: Repository, folder: Path, options: CheckoutOptions, *, alone: bool = True
) -> Repository:
    """Open the clone in `folder`; its configuration and its `.git` are written anew where they differ.

    Not `alone`: a run may use it at the same time.

    Raises:
        GitError: git cannot read it.
    """
    files, git_dir = files_of(folder, person), folder / GIT_FOLDER
    if not (git_dir / "HEAD").is_file() or files.is_symlink() or not files.is_dir():
        raise GitError(f"{folder} holds no clone of lopen's")
    if alone:
        for lock in git_dir.rglob("*.lock"):  # left by a killed process; the module's lock keeps others out
            lock.unlink(missing_ok=True)
    git = GitCommand(person.git.executable, files, person.git.clock)
    _configure(person, git_dir)
    layout = Layout(files, git_dir, git_dir, git_dir / "objects", person.layout.object_format)
    write_pointer(layout)
    return Repository.over(layout, git, options, person, alone=alone)


def require_own(person: Repository, clone: Repository) -> None:
    """Refuse a clone of another repository that stood at the same path.

    Raises:
        GitError: the person's repository lacks the commit that lopen left there.
    """
    known = clone.references.tip(FETCHED) or clone.references.tip(PERSONS_HEAD)
    if known is not None and not person.has_commit(known):
        raise GitError(f"the clone belongs to another repository, which has {known[:12]}")


def write_pointer(layout: Layout) -> None:
    """Let `.git` in the clone's files name its git folder, in place of a command's file there."""
    pointer = layout.root / ".git"
    if pointer.is_dir() and not pointer.is_symlink():
        shutil.rmtree(pointer)
    _replace_if_different(pointer, b"gitdir: " + os.fsencode(layout.git_dir) + b"\n")


def _configure(person: Repository, git_dir: Path) -> None:
    """Write the clone's configuration: lopen's own, and how the person's repository stores content."""
    text = clone_configuration(person.settings, person.layout.object_format, person.root)
    _replace_if_different(git_dir / "config", text)
    info, theirs = git_dir / "info", person.layout.common_dir / "info"
    info.mkdir(exist_ok=True)
    exclude = os.fsdecode(_read_or_empty(theirs / "exclude"))
    patterns = (*STATE_PATTERNS, *CACHE_PATTERNS, HALF_WRITTEN)
    _replace_if_different(info / "exclude", os.fsencode(with_lines(exclude, patterns)))
    _replace_if_different(info / "attributes", _read_or_empty(theirs / "attributes"))


def fetch_all(person: Repository, clone: Repository, branch: str) -> None:
    """Bring the person's branches, tags and HEAD into the clone, but for `branch`, which moves by itself."""
    wanted = [f"+{HEADS}*:{HEADS}*", f"+HEAD:{PERSONS_HEAD}", *([f"^{HEADS}{branch}"] if branch else [])]
    git = clone.git.with_options(_BY_FILE)
    git.run(
        "fetch", "--quiet", "--prune", "--tags", "--force", "--no-write-fetch-head", str(person.root), *wanted
    )


def fetch_objects(person: Repository, clone: Repository, *refs: str) -> None:
    """Bring the objects of these references of the person's into the clone; only those written `+from:to` move there."""
    git = clone.git.with_options(_BY_FILE)
    git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(person.root), *refs)


def publish(person: Repository, clone: Repository, ref: str, old: str | None) -> str:
    """Bring `ref` of the clone into the person's repository, whose own must be at `old`; return its commit.

    git checks every new object there. The reference moves after them, so that a killed fetch is simply made again.

    Raises:
        RefMoved: the person's reference is not at `old`, or their checkout stands on it; nothing was moved.
    """
    new = require_id(clone.references.tip(ref) or "")
    branch = ref.removeprefix(HEADS)
    if ref.startswith(HEADS) and (place := person.references.checked_out(branch)):
        raise RefMoved(f"{branch} is checked out in {place}", hint="switch to another branch there")
    bring_objects(person, clone, ref)
    person.references.move(ref, new, old, "work of lopen")
    return new


def bring_objects(person: Repository, clone: Repository, ref: str) -> None:
    """Bring what `ref` of the clone leads to into the person's repository, checked by git; no reference moves there."""
    git = person.git.with_options(_BY_FILE, config=_CHECKED)
    source = str(clone.layout.git_dir)
    git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", source, ref)


def create_repository(root: Path, *, clock: Clock, branch: str = "main") -> Repository:
    """Create a repository without a commit in the empty folder `root`, with HEAD on `branch`."""
    git = GitCommand(find_git(root), root, clock)
    git.run("init", "--quiet", "--template=", f"--initial-branch={branch}")
    return _opened(git)


def clone_repository(source: Path, target: Path, *, commit: str, branch: str, clock: Clock) -> Repository:
    """Clone `source` into the empty folder `target`, with the single branch `branch` checked out at `commit`.

    Raises:
        GitError: `source` is not a repository, or does not contain the commit.
    """
    git = GitCommand(find_git(source), target, clock)
    plain = ("--quiet", "--template=", "--no-checkout", "--no-hardlinks", "--no-tags")
    git.with_options(_BY_FILE).run("clone", *plain, "--", str(source), str(target))
    git.run("remote", "remove", "origin")
    for ref in git.run("for-each-ref", "--format=%(refname)", "refs/heads").text.split():
        git.run("update-ref", "-d", ref)
    git.run("symbolic-ref", "HEAD", HEADS + branch)
    repository = _opened(git)
    repository.git.run("read-tree", "--reset", "-u", require_id(commit))
    repository.references.move("HEAD", commit, None, "clone")
    return repository


def _opened(git: GitCommand) -> Repository:
    """Open the repository in the command's folder, with its own identity and hooks folder."""
    for key, value in (
        ("user.name", NAME),
        ("user.email", EMAIL),
        ("core.hooksPath", str(git.folder / ".git" / "hooks")),
    ):
        git.run("config", key, value)
    return Repository.open(git.folder, clock=git.clock)


def _read_or_empty(path: Path) -> bytes:
    """Return the content of a file; empty if it does not exist or is not readable."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _replace_if_different(path: Path, wanted: bytes) -> None:
    """Replace a file as a whole if its content differs; a symbolic link in its place is replaced, not followed."""
    if not path.is_symlink() and _read_or_empty(path) == wanted and path.is_file():
        return
    replace_file(path, wanted, durable=False)
