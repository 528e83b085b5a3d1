"""The files that decide what verify-setup installs, and a person's approval of their states.

They are manifests, lock files, and what the set-up command runs by.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from lopen.core.untrusted_tables import read_json_table, read_toml_table
from lopen.sandbox.command import Sandbox
from lopen.store.journal import Journal
from lopen.workflow import changes
from lopen.workflow.pauses import ChangedSetup, Confirmation, Pause

LOCK_FILES = frozenset(
    {
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "Pipfile.lock",
        "Cargo.lock",
        "go.sum",
        "Gemfile.lock",
        "composer.lock",
        "gradle.lockfile",
        "flake.lock",
    }
)
# Texts in which a file that set-up runs may be named
_SCRIPTS = frozenset({"GNUmakefile", "Makefile", "justfile", "makefile", "noxfile.py", "setup.py", "tox.ini"})
_MANIFESTS = (
    LOCK_FILES
    | _SCRIPTS
    | {
        ".npmrc",
        ".python-version",
        ".tool-versions",
        ".yarnrc.yml",
        "Cargo.toml",
        "Gemfile",
        "Pipfile",
        "build.gradle",
        "build.gradle.kts",
        "composer.json",
        "environment.yml",
        "gradle.properties",
        "go.mod",
        "package.json",
        "pnpm-workspace.yaml",
        "pom.xml",
        "pyproject.toml",
        "rust-toolchain.toml",
        "settings.gradle",
        "settings.gradle.kts",
        "setup.cfg",
    }
)
_REQUIREMENTS = re.compile(r"(?:requirements|constraints)[^/]*\.(?:txt|in)|.*\.(?:csproj|gemspec|cabal)")
_INSTALLING = ("preinstall", "install", "postinstall", "prepare", "prepublish")  # scripts of a package.json
_WORD = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)*")
LONGEST_TEXT = 200_000  # characters of one file that are searched for names

Read = Callable[[list[str]], Mapping[str, bytes]]
"""Return path → content of files of the tree."""


def is_lock_file(path: str) -> bool:
    """Return True if a package manager writes a file of this name."""
    return PurePosixPath(path).name in LOCK_FILES


def is_manifest(path: str) -> bool:
    """Return True if a package manager reads a file of this name."""
    name = PurePosixPath(path).name
    return name in _MANIFESTS or _REQUIREMENTS.fullmatch(name) is not None


def setup_key(files: Mapping[str, str], command: str, read: Read) -> str:
    """Return the SHA-256 (hex) of the set-up `command` and the files that decide what it installs.

    `files` is path → blob id of the tree. Files count that the command, an installing script or a build back end names.
    """
    manifests = [path for path in files if is_manifest(path)]
    texts = [command]
    folders: list[str] = []
    for path, raw in read([p for p in manifests if PurePosixPath(p).name not in LOCK_FILES]).items():
        text = raw[:LONGEST_TEXT].decode("utf-8", "replace")
        name = PurePosixPath(path).name
        texts += (
            [text] if name in _SCRIPTS else list(_install_scripts(text)) if name == "package.json" else []
        )
        folders += _own_back_end(text, path) if name == "pyproject.toml" else []
    named = {word.removeprefix("./") for text in texts for word in _WORD.findall(text)}
    deciding = {path for path in files if path in named or path.startswith(tuple(folders))} | {*manifests}
    lines = [command, *(f"{path}\0{files[path]}" for path in sorted(deciding))]
    return hashlib.sha256("\0\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _install_scripts(text: str) -> Iterator[str]:
    document = read_json_table(text)
    scripts = None if document is None else document.get("scripts", {})
    if isinstance(scripts, dict):
        yield from (str(scripts[name]) for name in _INSTALLING if name in scripts)
    else:
        yield text


def _own_back_end(text: str, path: str) -> Iterator[str]:
    """Yield the folders of a build back end that lies in the tree (`backend-path`)."""
    build = (read_toml_table(text) or {}).get("build-system")
    folders = build.get("backend-path") if isinstance(build, dict) else None
    if isinstance(folders, list):
        base = PurePosixPath(path).parent
        yield from (f"{base / str(folder)}/".removeprefix("./") for folder in folders)


NEEDED = "verify-setup waits until a person has confirmed the changed dependency files"
_REASON = (
    "verify-setup would run with files that changed since the specification was approved, and here it reaches services "
    "on this machine; look at the dependency files and build scripts, then confirm"
)


class SetupApproval:
    """The approved states of one session's dependency files. Without a sandbox every state is approved.

    A person is asked only where the sandbox has no network without the loopback. The files are approved as they are
    before anything is built; each later state waits for `lopen confirm`. docs/reference/sandbox.md
    """

    def __init__(self, journal: Journal, key: Callable[[str, str], str], sandbox: Sandbox | None) -> None:
        """`key`: the hash of the files of a tree that decide what a command installs."""
        self._journal = journal
        self._key = key
        self._sandbox = sandbox
        self.pause: Pause | None = None  # for what the last set-up waits

    def approve(self, tree: str, command: str | None) -> None:
        """Approve the state of `tree` if nothing is built yet."""
        session = self._journal.session
        if command is not None and self._asks and not any(True for _ in session.tree.tasks):
            state = ChangedSetup(self._key(tree, command))
            if state not in session.limits.confirmed:
                self._journal.save(changes.confirm(session, state))

    @property
    def _asks(self) -> bool:
        return self._sandbox is not None and self._sandbox.install_network == "host"

    def holds(self, tree: str, command: str) -> bool:
        """Return True, with the reason in `pause`, if a person has to look at the state of `tree` first."""
        self.pause = None
        session = self._journal.session
        if self._asks:
            state = ChangedSetup(self._key(tree, command))
            if state not in session.limits.confirmed:
                self.pause = Confirmation(session.id, state, _REASON)
        return self.pause is not None
