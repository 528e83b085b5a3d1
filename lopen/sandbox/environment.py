"""The environment a command gets: what tools need to be found and to speak plainly, and nothing else.

An allow list, because a secret need not look like one; and the looks on top, because an allowed variable
may hold one (a proxy address with a password).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from lopen.secrets import looks_secret_name, looks_secret_value

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

    `session` marks everything below as run by that session, so that person's commands refuse (contract §2).
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
