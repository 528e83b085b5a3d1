"""The environment a command gets: what tools need to be found and to speak plainly, and nothing else.

An allow list, because a secret need not look like one; and the looks on top, because an allowed variable
may hold one (a proxy address with a password).
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from lopen.base.redaction import looks_secret_name, looks_secret_value
from lopen.sandbox.command import SandboxFailed

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
_PLAIN = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # .git is read-only; `git status` need not try to write its index
    "SHELL": "/bin/sh",
}
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Found through HOME by default, which is another one in the sandbox; shown read-only where they exist.
_BY_HOME = {"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm", "SDKMAN_DIR": ".sdkman"}


def command_environment(
    base: Mapping[str, str],
    extra: Mapping[str, str],
    *,
    home: Path,
    tmp: Path | None = None,
    session: str = "",
) -> dict[str, str]:
    """`base` (lopen's own environment) cleaned, with HOME, plain output and lopen's `extra`.

    `session` marks everything below as run by that session, so that person's commands refuse.
    """
    clean = dict(_cleaned(tuple(base.items())))
    clean |= {name: value for name, value in extra.items() if not _secret(name, value)}
    clean["HOME"] = str(home)
    if tmp is not None:
        clean["TMPDIR"] = str(tmp)
    clean[SESSION_VARIABLE] = session or "1"
    return clean


@lru_cache(maxsize=4)  # the same before every command of a session
def _cleaned(base: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """What `base` leaves of itself, and what every command gets."""
    given = dict(base)
    kept = {name: value for name, value in base if _allowed(name)}
    kept["PATH"] = search_path(given.get("PATH", ""))
    if given.get("HOME"):
        for name, folder in _BY_HOME.items():
            if name not in kept and (place := Path(given["HOME"], folder)).is_dir():
                kept[name] = str(place)
    return {name: value for name, value in (kept | _PLAIN).items() if not _secret(name, value)}


def _secret(name: str, value: str) -> bool:
    return looks_secret_name(name) or looks_secret_value(value)


def search_path(path: str) -> str:
    """PATH without what depends on the current folder (empty, `.` and relative entries)."""
    entries = [entry for entry in path.split(":") if entry.startswith("/")]
    return ":".join(dict.fromkeys(entries)) or _DEFAULT_PATH


def _allowed(name: str) -> bool:
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)


VERIFY = "verify"  # below .lopen/cache: what verify commands and hooks alone write, where the sandbox can see to it
_CACHE = (".lopen", "cache")


def cache_home(root: Path) -> Path:
    """`.lopen/cache/home`, the HOME of every command."""
    return cache_folder(root, "home")


def python_variables(root: Path, *, trusted: bool) -> dict[str, str]:
    """Where Python finds packages of a user without a virtual environment, and what it compiled.

    Both run inside of whatever Python program starts next. So packages lie where only trusted commands (verify
    commands, hooks) install them, for all to import; and what a trusted command loads, trusted ones compiled.
    """
    own = f"{root}/.lopen/cache/{VERIFY}"
    compiled = {"PYTHONPYCACHEPREFIX": f"{own}/pycache"} if trusted else {}
    return {"PYTHONUSERBASE": f"{own}/python", **compiled}


def forget_compiled(root: Path) -> None:
    """Take away what was compiled for trusted commands, where other commands could write it too."""
    shutil.rmtree(cache_folder(root, VERIFY) / "pycache", ignore_errors=True)


def cache_folder(root: Path, name: str) -> Path:
    """The folder `name`, real all the way down. What a repository or a command put in its way is taken away
    below `.lopen/cache` (it can be deleted at any time), and refused above it.
    """
    place = str(root)
    for depth, part in enumerate((*_CACHE, name)):
        place = f"{place}/{part}"
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            os.makedirs(place, exist_ok=True)
            continue
        if stat.S_ISDIR(mode):
            continue
        if depth == 0:
            raise SandboxFailed(f"{place} is no folder", hint="remove it, then: lopen init")
        os.unlink(place)
        os.mkdir(place)
    return Path(place)
