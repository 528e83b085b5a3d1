"""The content door: a private git folder with lopen's configuration, over the user's work tree and objects.

Through it git reads and writes the content of files, without reading the repository's own configuration. It
copies only values that change how content is stored and cannot start a program. Filters of the user's own
configuration, such as git-lfs, still work.

The folder is checked before each use and rewritten where it differs, because in a weak sandbox a command may have
changed it.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.errors import GitError
from lopen.git.git_files import read_or_empty, replace_if_different
from lopen.git.ignores import CACHE_PATTERNS, HALF_WRITTEN
from lopen.git.layout import Layout
from lopen.git.refs import is_id

_PORTABLE = frozenset(
    f"core.{key}"
    for key in (
        "autocrlf",
        "eol",
        "filemode",
        "ignorecase",
        "symlinks",
        "precomposeunicode",
        "excludesfile",
        "attributesfile",
        "sparsecheckout",
    )
) | {"user.signingkey"}
_TRUSTED_SCOPES = frozenset({"system", "global"})
_TRUSTED_SECTIONS = re.compile(r"(filter\..+|gpg(\..+)?)\.[^.]+", re.DOTALL)
_TRUE = frozenset({"true", "yes", "on", "1"})
_UNBORN = "ref: refs/heads/unborn"

CONTENT_CONFIG: Mapping[str, str] = {
    "core.untrackedCache": "false",  # the cache in a copied index may hide files
    "core.splitIndex": "false",
    "core.safecrlf": "false",
    "core.fsync": "committed",  # objects of a later commit must survive a power cut
    "status.showUntrackedFiles": "all",
}


@dataclass(frozen=True, slots=True)
class CopiedConfig:
    """The configuration that the private folder copies, and the filters that it ignores."""

    settings: tuple[tuple[str, str], ...] = ()
    ignored_filters: tuple[str, ...] = ()  # filter drivers that the repository alone configures


def read_copied_config(git: GitCommand) -> CopiedConfig:
    """Read the effective configuration of the repository; reading it starts no program."""
    fields = git.run("config", "--list", "-z", "--show-scope").fields()
    settings: dict[str, str] = {}
    drivers: dict[bool, set[str]] = {True: set(), False: set()}
    for scope, entry in zip(fields[::2], fields[1::2], strict=True):
        key, given, value = entry.partition("\n")
        trusted = scope in _TRUSTED_SCOPES
        if scope != "command" and (key in _PORTABLE or (trusted and _TRUSTED_SECTIONS.fullmatch(key))):
            settings[key] = value if given else "true"  # a key without a value
        if key.startswith("filter."):
            drivers[trusted].add(key.split(".", 1)[1].rsplit(".", 1)[0])
    return CopiedConfig(tuple(sorted(settings.items())), tuple(sorted(drivers[False] - drivers[True])))


class PrivateFolder:
    """One private git folder and its git command."""

    def __init__(
        self,
        path: Path,
        layout: Layout,
        git: GitCommand,
        *,
        settings: CopiedConfig,
        info: Path | None,
        own: Path | None = None,
    ) -> None:
        self.path = path
        self.indexes = own or path  # scratch indexes, out of reach of commands because lopen trusts them
        self.layout = layout
        self.is_sparse = dict(settings.settings).get("core.sparsecheckout", "").lower() in _TRUE
        given = dict(settings.settings)
        self._converting = "core.attributesfile" in given or given.get("core.autocrlf", "") not in (
            "",
            "false",
        )
        self.quarantine = self.indexes / "quarantine"
        self._info = info  # the repository's own `info` folder, for its exclude and attributes
        self._locks_removed = False
        self._config = _config_text(settings, layout.object_format)
        self._git = git.with_options(
            {
                "GIT_DIR": str(path),
                "GIT_COMMON_DIR": str(path),  # overrides a `commondir` file
                "GIT_WORK_TREE": str(layout.root),
                "GIT_OBJECT_DIRECTORY": str(layout.objects),
            },
            config=CONTENT_CONFIG,
        )

    def prepare(self, head: str | None) -> None:
        """Write the folder's files, with HEAD at the commit `head` (None: no commit yet)."""
        for folder in (self.path, self.path / "info", self.path / "refs", self.quarantine):
            _own_folder(folder)
        if not self._locks_removed:
            for lock in self.indexes.glob("index*.lock"):
                lock.unlink()  # left by a killed process; no other one uses this folder
            self._locks_removed = True
        patterns = "".join(f"{line}\n" for line in (*CACHE_PATTERNS, HALF_WRITTEN)).encode()
        replace_if_different(self.path / "config", self._config)
        replace_if_different(self.path / "HEAD", f"{head or _UNBORN}\n".encode())
        replace_if_different(self.path / "info" / "exclude", patterns + self._borrowed("exclude"))
        replace_if_different(self.path / "info" / "attributes", self._borrowed("attributes"))

    def converts(self) -> bool:
        """Return True if attributes or settings outside of the tree may have git store files with other bytes."""
        home = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
        places = (home / "git" / "attributes", Path("/etc/gitattributes"))
        return self._converting or bool(self._borrowed("attributes")) or any(p.exists() for p in places)

    def _borrowed(self, name: str) -> bytes:
        return read_or_empty(self._info / name) if self._info else b""

    def git(self, index: Path | None = None) -> GitCommand:
        """Return git on this door, with the index file `index` if given."""
        return self._git.with_options({"GIT_INDEX_FILE": str(index)}) if index else self._git

    def reader(self, index: Path | None = None, *, also: Path | None = None) -> GitCommand:
        """Return git that also reads quarantined objects, and those in the folder `also`.

        It must not write objects, which could refer to those.
        """
        more = ":".join(map(_listed, (self.quarantine, *([also] if also else []))))
        return self.git(index).with_options({"GIT_ALTERNATE_OBJECT_DIRECTORIES": more})

    def isolated(self, index: Path) -> GitCommand:
        """Return git that writes objects to the quarantine and only reads the repository's."""
        return self._git.with_options(
            {
                "GIT_INDEX_FILE": str(index),
                "GIT_OBJECT_DIRECTORY": str(self.quarantine),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _listed(self.layout.objects),
            }
        )


def _listed(folder: Path) -> str:
    """Return a folder as an entry of git's colon-separated list."""
    text = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def read_head(folder: Path) -> str | None:
    """Return the commit in a private folder's HEAD, or None."""
    head = read_or_empty(folder / "HEAD").decode("utf-8", "replace").strip()
    return head if is_id(head) else None


def _own_folder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise GitError(
            f"{path} is not a folder",
            hint=f"lopen keeps a folder of its own there; remove the link: rm {shlex.quote(str(path))}",
        )


def _config_text(settings: CopiedConfig, object_format: str) -> bytes:
    """Return the configuration file of the private folder."""
    sha256 = object_format == "sha256"
    lines = ["[core]", f"\trepositoryformatversion = {int(sha256)}", "\tbare = false"]
    if sha256:
        lines += ["[extensions]", "\tobjectFormat = sha256"]
    for key, value in settings.settings:
        section, name = key.split(".", 1)
        subsection, _, variable = name.rpartition(".")
        title = f'{section} "{_escaped(subsection)}"' if subsection else section
        lines += [f"[{title}]", f'\t{variable} = "{_escaped(value)}"']
    return os.fsencode("\n".join(lines) + "\n")


def _escaped(value: str) -> str:
    """Escape a value for the double quotes of a git configuration file."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\n", "\\n").replace("\t", "\\t")
