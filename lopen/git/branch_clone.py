"""A small repository that holds what a clone of the branch would: its history, its tags, and a commit of the tree at hand.

git in the clean room answers from it. What the project's own repository holds besides is not there: objects of earlier
attempts, stashes, backups, reflogs, history that no reference of a clone leads to. It is brought from tree to tree by
writing the objects that the tree has beyond its parent. docs/reference/completion.md
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.commits import identity
from lopen.git.errors import GitError, NoIdentity
from lopen.git.git_files import read_or_empty
from lopen.git.loose_objects import copy_loose_object
from lopen.git.refs import HEADS, Head, References
from lopen.git.trees import GITLINK, TreeChange

MOST_COMMITS = 2_000  # of the history; a longer one is cut as in a shallow clone
ORIGIN = "refs/remotes/origin/"
_MADE_BY_GIT = {
    "description": "Unnamed repository; edit this file 'description' to name the repository.\n",
    "info/exclude": "",
}
_PARTIAL = r"^(extensions\.partialclone|remote\..*\.promisor)$"
_NOBODY = "nobody <nobody@localhost>"
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
_NOTHING = Head(None, None), "", ""
# Nothing here has to survive a power cut, and speed counts for more than size
_QUICK: Mapping[str, str] = {"core.fsync": "none", "pack.compression": "1"}

Changes = Callable[[str, str], Iterable[TreeChange]]
"""Return the files and folders that differ between two trees or commits."""


class BranchClone:
    """The repository in `folder`, which nothing else writes.

    `reader` returns git that reads every object of the project; `copy_index` writes an index of a tree to a path.
    """

    def __init__(
        self,
        folder: Path,
        references: References,
        reader: Callable[[], GitCommand],
        changes: Changes,
        copy_index: Callable[[str, Path], None],
    ) -> None:
        self.folder = folder
        self._layout = references.layout
        self._references = references
        self._reader = reader
        self._changes = changes
        self._copy_index = copy_index
        self._at = _NOTHING
        self._history: set[str] = set()  # the commits that it has
        self._loose: set[str] = set()  # objects of the tree at hand
        self._packed: tuple[Path, ...] = ()  # those that the project keeps in packs
        self._states: dict[str, tuple[int, ...]] = {}
        self._shared: list[
            tuple[str, str, str]
        ] = []  # the references of a clone: object, commit of a tag, name

    @cached_property
    def _who(self) -> str:
        """The person as git names an author."""
        git = self._references.git
        try:
            found = identity(git)
            return f"{found['GIT_AUTHOR_NAME']} <{found['GIT_AUTHOR_EMAIL']}>"
        except NoIdentity:
            return git.run("log", "-1", "--format=%an <%ae>", accept=(0, 128)).text or _NOBODY

    @cached_property
    def _origin(self) -> str:
        """Where a clone comes from."""
        known = self._references.git.run("config", "remote.origin.url", accept=(0, 1)).text
        return _CREDENTIALS.sub("", known.strip().partition("\n")[0]) or f"file://{self._layout.root}"

    def remove(self) -> None:
        """Delete the repository; the next `bring_to` makes it anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._at, self._history, self._loose, self._packed = _NOTHING, set(), set(), ()

    def bring_to(self, tree: str, message: str, *, exposed: bool) -> None:
        """Make HEAD a commit of `tree` on the project's branch, with this `message` where the branch has none of it.

        `exposed`: commands can write here, so look first.
        """
        if exposed and self._at != _NOTHING and self._found() != self._states:
            self.remove()
        head = self._references.head()
        if (head, tree, message) == self._at:
            return
        try:
            if head != self._at[0]:
                self._follow(head)
            self._commit(head, tree, message)
        except BaseException:
            self.remove()
            raise
        for folder, _, names in os.walk(
            self.folder
        ):  # times tell how long ago what was here before was written
            for name in ("", *names):
                os.utime(f"{folder}/{name}")
        self._at = head, tree, message
        self._states = self._found() if exposed else {}

    def _follow(self, head: Head) -> None:
        """Bring the history to `head`: by what is new where it continues the known one, else from the beginning."""
        before = self._at[0].commit
        for folder in (HEADS, "logs"):  # of another branch
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        parents = dict(self._parents(head.commit)) if head.commit else {}
        new = {commit: above for commit, above in parents.items() if commit not in self._history}
        if before in parents and all(p in parents or p in self._history for ps in new.values() for p in ps):
            self._history |= new.keys()
            self._pack([*new, *self._refer(), f"^{before}"])
            return
        self.remove()
        self._history = set(parents)
        cut = self._begin(parents)
        self._pack(
            [*(f"--shallow {name}" for name in cut), *([head.commit] if head.commit else []), *self._refer()]
        )

    def _parents(self, commit: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the newest commits with their parents."""
        found = self._references.git.run("rev-list", "--parents", f"--max-count={MOST_COMMITS}", commit)
        for line in found.text.splitlines():
            name, *above = line.split(" ")
            yield name, above

    def _begin(self, parents: Mapping[str, list[str]]) -> list[str]:
        """Make an empty repository for this history; return the commits at which it is cut."""
        (self.folder / "objects" / "pack").mkdir(mode=0o755, parents=True)
        for folder in ("refs/tags", "objects/info", "hooks", "info", "branches"):
            (self.folder / folder).mkdir(parents=True)
        for name, text in _MADE_BY_GIT.items():
            (self.folder / name).write_text(text)
        sha256 = self._layout.object_format == "sha256"
        extension = "[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""
        config = f"[core]\n\trepositoryformatversion = {int(sha256)}\n\tfilemode = true\n\tbare = false\n"
        config += "\tlogallrefupdates = true\n"
        remote = f'[remote "origin"]\n\turl = {_quoted(self._origin)}\n\tfetch = +{HEADS}*:{ORIGIN}*\n'
        (self.folder / "config").write_text(config + extension + remote, "utf-8", "surrogateescape")
        known = read_or_empty(self._layout.common_dir / "shallow").decode("ascii", "replace").split()
        cut = {commit for commit, above in parents.items() if any(p not in parents for p in above)}
        shallow = sorted(cut | parents.keys() & set(known))
        if shallow:
            (self.folder / "shallow").write_text("".join(f"{commit}\n" for commit in shallow))
        return sorted(cut)

    def _refer(self) -> list[str]:
        """Note the references to the tags and branches of the project that lead into the history; return their objects."""
        wanted = ("--format=%(objectname) %(*objectname) %(refname)", "refs/heads", "refs/tags")
        lines = self._references.git.run("for-each-ref", *wanted).text.removesuffix("\n").split("\n")
        found = (line.split(" ", 2) for line in lines if line)  # a name may hold what `splitlines` splits at
        self._shared = [
            (name, peeled, ref.replace(HEADS, ORIGIN, 1))
            for name, peeled, ref in found
            if (peeled or name) in self._history
        ]
        return sorted({name for name, _, _ in self._shared})

    def _pack(self, wanted: list[str]) -> None:
        """Pack what the commits and tags lead to. Without objects that the project lacks (a partial clone), nothing."""
        if not wanted:
            return
        git = self._references.git.with_options(config=_QUICK)
        lines = "".join(f"{line}\n" for line in wanted).encode()
        try:
            git.run(
                "pack-objects",
                "--revs",
                "--quiet",
                "--window=0",
                f"{self.folder}/objects/pack/pack",
                stdin=lines,
            )
        except GitError:
            if not _is_partial(self._references.git):
                raise

    def _commit(self, head: Head, tree: str, message: str) -> None:
        """Write the objects of `tree` that the history lacks, the commit, the index, and the references of a clone."""
        changes = list(self._changes(head.commit or self._layout.empty_tree, tree))
        wanted = {c.after for c in changes if c.after and c.mode_after != GITLINK}
        self._bring_objects(wanted | {tree} if changes or head.commit is None else set())
        self._copy_index(tree, self.folder / "index")
        commit = head.commit
        if commit is None or changes:
            parent = f"parent {commit}\n" if commit else ""
            now = f"{self._who} {_now()}"
            text = f"tree {tree}\n{parent}author {now}\ncommitter {now}\n\n{message}"
            commit = self._write("commit", text.encode("utf-8", "surrogateescape"))
        refs = {ref: (name, peeled) for name, peeled, ref in self._shared}
        if head.branch is not None:
            refs[ORIGIN + head.branch] = commit, ""
        lines = ["# pack-refs with: peeled fully-peeled sorted \n"]
        for ref, (name, peeled) in sorted(refs.items()):
            lines.append(f"{name} {ref}\n" + (f"^{peeled}\n" if peeled else ""))
        self._put("packed-refs", "".join(lines))
        log = f"{'0' * len(commit)} {commit} {self._who} {_now()}\tclone: from {self._origin}\n"
        self._put("logs/HEAD", log)
        if head.branch is None:
            self._put("HEAD", f"{commit}\n")
            return
        self._put(HEADS + head.branch, f"{commit}\n")
        self._put(f"logs/{HEADS}{head.branch}", log)
        self._put(f"logs/{ORIGIN}HEAD", log)
        self._put(f"{ORIGIN}HEAD", f"ref: {ORIGIN}{head.branch}\n")
        self._put("HEAD", f"ref: {HEADS}{head.branch}\n")
        self._follow_origin(head.branch)

    def _follow_origin(self, branch: str) -> None:
        """Let the branch follow that of `origin`, as in a clone."""
        text = (self.folder / "config").read_text("utf-8", "surrogateescape").partition('[branch "')[0]
        follow = f"[branch {_quoted(branch)}]\n\tremote = origin\n\tmerge = {HEADS}{branch}\n"
        self._put("config", text + follow)

    def _put(self, name: str, text: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(os.fsencode(text))

    def _bring_objects(self, wanted: set[str]) -> None:
        """Hold these objects besides the history, and no other ones."""
        for name in self._loose - wanted:
            self._place(name).unlink(missing_ok=True)
        for pack in self._packed:
            pack.unlink(missing_ok=True)
        self._loose &= wanted
        self._packed = ()
        elsewhere = []
        for name in sorted(wanted - self._loose):
            if copy_loose_object(self._layout, name, self._place(name)):
                self._loose.add(name)
            else:
                elsewhere.append(name)
        if elsewhere:
            base = self.folder / "objects" / "pack" / "tree"
            git = self._reader().with_options(config=_QUICK)
            lines = "".join(f"{name}\n" for name in elsewhere).encode()
            found = git.run("pack-objects", "--quiet", "--window=0", str(base), stdin=lines).text
            self._packed = tuple(base.parent.glob(f"{base.name}-{found}.*"))
            git.run("verify-pack", f"{base}-{found}.idx")

    def _write(self, kind: str, body: bytes) -> str:
        """Write an object; return its name."""
        whole = f"{kind} {len(body)}\0".encode() + body
        name = hashlib.new(self._layout.object_format, whole, usedforsecurity=False).hexdigest()
        self._keep(name, zlib.compress(whole, 1))
        return name

    def _keep(self, name: str, content: bytes) -> None:
        """Write a loose object as git stores it."""
        place = self._place(name)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
        self._loose.add(name)

    def _place(self, name: str) -> Path:
        return self.folder / "objects" / name[:2] / name[2:]

    def _found(self) -> dict[str, tuple[int, ...]]:
        """Return the state of every file and folder."""
        found: dict[str, tuple[int, ...]] = {}
        for folder, folders, names in os.walk(self.folder):
            for name in (*folders, *names):
                stat = os.lstat(f"{folder}/{name}")
                found[f"{folder}/{name}"] = (stat.st_ino, stat.st_mode, stat.st_size, stat.st_ctime_ns)
        return found


def _quoted(value: str) -> str:
    """Return a value as git's configuration takes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _now() -> str:
    return f"{int(time.time())} {time.strftime('%z')}"


def _is_partial(git: GitCommand) -> bool:
    """Return True for a repository that lacks objects on purpose: a partial clone."""
    return git.run("config", "--get-regexp", _PARTIAL, accept=(0, 1)).exit_code == 0
