"""The part of a run that every sandbox shares: a command's environment, its cache folders, its working folder.

The environment has what tools need to be found and to print plain text, and nothing else. It starts from an allow
list, because a secret can look like any value; a check of the values follows, because an allowed variable can
contain a secret (a proxy address with a password).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from lopen.core.redaction import looks_secret_name, looks_secret_value
from lopen.sandbox import folders
from lopen.sandbox.command import Command, CommandLimits, Room, SandboxFailed
from lopen.sandbox.known_secrets import configured_credentials

SESSION_VARIABLE = "LOPEN_UNDER_SESSION"

_ALLOWED = frozenset((
    "PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "VIRTUAL_ENV", "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "RBENV_ROOT", "RBENV_VERSION", "NODENV_ROOT",
    "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "BUN_INSTALL", "PNPM_HOME", "ASDF_DIR", "ASDF_DATA_DIR",
    "MISE_DATA_DIR", "SDKMAN_DIR", "JAVA_HOME", "GRAALVM_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
    "DOTNET_ROOT", "GOROOT", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CC", "CXX", "AR", "CFLAGS", "CXXFLAGS",
    "CPPFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "MANPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE", "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SOURCE_DATE_EPOCH", "CI", "TERMINFO",
))  # fmt: skip
_ALLOWED_PREFIXES = ("LC_",)
_FIXED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # .git is read-only, so `git status` must not try to write its index
    "SHELL": "/bin/sh",
}
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Tools that HOME locates by default. HOME differs in the sandbox, which shows these folders read-only.
_HOME_TOOLS = {"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm", "SDKMAN_DIR": ".sdkman"}


def command_environment(
    base: Mapping[str, str],
    extra: Mapping[str, str],
    *,
    home: Path,
    tmp: Path | None = None,
    session: str | None = "",
) -> dict[str, str]:
    """Return the allowed part of `base` (lopen's own environment) with HOME, plain output and lopen's `extra`.

    `session` marks every descendant process, so that commands reserved for a person refuse to run there. None: no
    mark, by which code could tell that it is being verified.
    """
    clean = dict(_inherited(tuple(base.items())))
    clean |= {name: value for name, value in extra.items() if not _secret(name, value)}
    clean["HOME"] = str(home)
    if tmp is not None:
        clean["TMPDIR"] = str(tmp)
    if session is not None:
        clean[SESSION_VARIABLE] = session or "1"
    return clean


@lru_cache(maxsize=4)  # the same before every command of a session
def _inherited(base: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return the allowed variables of `base` with the fixed ones."""
    given = dict(base)
    kept = {name: value for name, value in base if _allowed(name)}
    kept["PATH"] = search_path(given.get("PATH", ""))
    if given.get("HOME"):
        for name, folder in _HOME_TOOLS.items():
            if name not in kept and (place := Path(given["HOME"], folder)).is_dir():
                kept[name] = str(place)
    return {name: value for name, value in (kept | _FIXED).items() if not _secret(name, value)}


def _secret(name: str, value: str) -> bool:
    return looks_secret_name(name) or looks_secret_value(value)


def search_path(path: str) -> str:
    """Return PATH without entries that depend on the current folder (empty, `.` and relative ones)."""
    entries = [entry for entry in path.split(":") if entry.startswith("/")]
    return ":".join(dict.fromkeys(entries)) or _DEFAULT_PATH


def _allowed(name: str) -> bool:
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)


def command_home(root: Path) -> Path:
    """Return `.lopen/cache/home`, the HOME of every command; create it without following links.

    Something else in its place is deleted below `.lopen/cache`, whose content is disposable, and refused above it.
    """
    place = str(root)
    for part in (".lopen", "cache", "home"):
        place = f"{place}/{part}"
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # another process makes it too
                os.mkdir(place, 0o700)
            continue
        if stat.S_ISDIR(mode):
            continue
        if part == ".lopen":
            raise SandboxFailed(f"{place} is not a folder", hint="remove it, then: lopen init")
        os.unlink(place)
        os.mkdir(place, 0o700)
    return Path(place)


def room_temporary_folder(room: Room) -> Path:
    """Create and return the folder for temporary files in a room's HOME, which is emptied after each command."""
    folder = room.home / "tmp"
    folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def mount_points(shown: Iterable[tuple[Path, Path]], *tops: Path) -> Iterator[list[tuple[Path, Path]]]:
    """Yield the paths of `shown` that can be mounted below `tops`, with an empty file or folder at each place that
    lacks one.

    No link is followed. These files and folders are removed afterwards if they are still empty.
    """
    made: list[Path] = []
    usable = []
    try:
        for source, place in shown:
            top = next(top for top in tops if folders.inside(place, top))
            above = [place.parents[n] for n in reversed(range(len(place.relative_to(top).parts) - 1))]
            wanted = stat.S_IFDIR if source.is_dir() else stat.S_IFREG
            with contextlib.suppress(OSError):  # a place that cannot be made, or that another process changes
                if all(_stands(folder, stat.S_IFDIR, made) for folder in above) and _stands(
                    place, wanted, made
                ):
                    usable.append((source, place))
        yield usable
    finally:
        for place in reversed(made):
            with contextlib.suppress(OSError):
                place.rmdir() if place.is_dir() else _unlink_empty(place)


def _stands(place: Path, wanted: int, made: list[Path]) -> bool:
    """Return True if an entry of the `wanted` type is at `place`; make it, and note it in `made`, if nothing is there."""
    if not os.path.lexists(place):
        place.mkdir(mode=0o755) if wanted == stat.S_IFDIR else place.touch()
        made.append(place)
    return stat.S_IFMT(os.lstat(place).st_mode) == wanted


def _unlink_empty(place: Path) -> None:
    if place.lstat().st_size == 0:
        place.unlink()


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What the sandboxes of a project share. `session` marks the commands; `environ` is lopen's own environment;
    `readable` are paths of the machine that the user wants commands to read. `at` is the checkout that the root stands
    for: bubblewrap shows the root there, Landlock hides it.
    """

    limits: CommandLimits = field(default_factory=CommandLimits)
    session: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    readable: tuple[Path, ...] = ()
    at: Path | None = None


DEFAULT_OPTIONS = SandboxOptions()


class ProjectSandbox:
    """The base of the sandboxes."""

    def __init__(self, root: Path, options: SandboxOptions = DEFAULT_OPTIONS) -> None:
        self._root = root.resolve()
        self._at = options.at.resolve() if options.at else self._root
        self._readable = tuple(path.resolve() for path in options.readable if path.exists())
        self._limits = options.limits
        self._session = options.session
        self._environ = dict(options.environ)  # `os.environ` decodes a variable at every access

    @cached_property
    def _homes(self) -> tuple[Path, ...]:
        return folders.home_folders(self._environ)

    @cached_property
    def _hidden(self) -> tuple[Path, ...]:
        return folders.hidden_folders(self._homes)

    @cached_property
    def _tools(self) -> tuple[Path, ...]:
        tools = folders.tool_folders(self._environ, self._homes, self._hidden, self._root)
        return folders.outermost((*tools, *self._readable))

    def _credentials(self, shown: Iterable[Path]) -> tuple[Path, ...]:
        """Return the credentials that a command would see with `shown` visible."""
        configured = configured_credentials(self._environ, self._root)
        return folders.visible_credentials(self._homes, shown, self._hidden, configured)

    def _working_folder(self, command: Command) -> Path:
        cwd = self._root if command.cwd == self._root else command.cwd.resolve()
        if not folders.inside(cwd, self._root):
            raise SandboxFailed(f"{command.cwd} is outside of the project")
        return cwd

    def _environment(self, command: Command, home: Path, tmp: Path | None = None) -> dict[str, str]:
        session = None if command.room else self._session
        return command_environment(self._environ, command.env, home=home, tmp=tmp, session=session)
