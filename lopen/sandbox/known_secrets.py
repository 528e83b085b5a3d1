"""The secrets of this machine and project: values of secret-named variables and of `.env` files.

lopen removes these values from everything that it stores, shows or sends. It reads the files for the values only:
nothing in them becomes configuration.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from lopen.core.errors import LopenError
from lopen.core.files import Signature, read_own, signature
from lopen.core.person import data_folder
from lopen.core.redaction import find_secrets, hidden, is_placeholder, looks_secret_name, redact, spelt

MIN_LENGTH = 8  # a shorter value occurs in texts by chance
MAX_WORD_LENGTH = 12
MAX_WALKED_FOLDERS = 5_000  # folders in the walk at the start
MAX_DEPTH = 12  # below the project's root
_SKIPPED = frozenset(
    (
        ".git", ".gradle", ".hypothesis", ".lopen", ".mypy_cache", ".next", ".nox", ".nuxt", ".pytest_cache",
        ".ruff_cache", ".terraform", ".tox", ".venv", "__pycache__", "node_modules", "target", "venv",
    )
)  # fmt: skip
_FILE = re.compile(r"\.env(\.[\w.-]+)?|[\w-]+\.env|\.envrc|\.npmrc|\.pypirc|\.netrc")
_SAMPLE = re.compile(r"example|sample|template|dist|default", re.IGNORECASE)
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?(?P<name>[A-Za-z_][\w.-]*)\s*=\s*(?P<value>.*?)\s*$", re.MULTILINE)


class KnownSecrets:
    """The known secret values by their source. `refresh` reads the files that changed.

    The start walks the whole project once. A refresh checks the files found then, files in the project's root, and
    files that tools read since (`watch_file`).
    """

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._variables = {v: n for n, v in environ.items() if looks_secret_name(n) and is_distinctive(v)}
        self._files: dict[str, tuple[Signature, dict[str, str]]] = {}
        self._values: tuple[str, ...] = tuple(sorted(self._variables))
        self._watched = list(_find_files(str(root)))
        self.refresh()

    def refresh(self) -> None:
        """Add the current values of the project's files. A value stays known after its file is deleted."""
        in_root = (f"{self._root}/{name}" for name in _entries(str(self._root))[0])
        for path in dict.fromkeys((*in_root, *self._watched)):
            try:
                found = os.stat(path)
            except OSError:
                continue
            current = signature(found)
            name = os.path.relpath(path, self._root)
            if self._files.get(name, (None,))[0] != current:
                before = self._files[name][1] if name in self._files else {}
                self._files[name] = (current, before | _values_of(Path(path), name))
        values = {*self._variables, *(v for _, held in self._files.values() for v in held)}
        if len(values) != len(self._values):
            self._values = tuple(sorted(values))

    def watch_file(self, path: str) -> None:
        """Add the file at this absolute path, which a tool reads, to the refreshed ones if its name indicates secrets."""
        if _is_secret_file(os.path.basename(path)) and path not in self._watched:
            self._watched.append(path)
            self.refresh()

    @property
    def values(self) -> tuple[str, ...]:
        """The known values as of the last refresh."""
        return self._values

    def current(self) -> tuple[str, ...]:
        """Refresh and return the known values."""
        self.refresh()
        return self._values

    def redact(self, text: str) -> str:
        """Remove the known values and everything that looks like a secret from `text`."""
        return redact(text, self._values)

    def hide(self, text: str) -> str:
        """Remove only the known values from `text`."""
        return hidden(text, self._values)

    def sources(self, text: str) -> set[str]:
        """Return the names of the variables and files whose values occur in `text`; of two files, the project's own."""
        files = reversed(self._files.items())  # files that only tools read come last
        named = {value: name for name, (_, held) in files for value in held} | self._variables
        return {name for value, name in named.items() if any(s in text for s in spelt(value))}


def is_distinctive(value: str) -> bool:
    """Return True if removing `value` from texts protects a secret; False for a short word, a placeholder, a path."""
    if len(value) < MIN_LENGTH or is_placeholder(value) or _is_word(value):
        return False
    return not (value.startswith("/") and os.path.exists(value))


def _is_word(value: str) -> bool:
    """Return True for a word such as a desktop's name, which a secret-named variable can contain too."""
    return len(value) < MAX_WORD_LENGTH and value.isalpha() and value.islower()


def _find_files(root: str) -> Iterator[str]:
    """Yield the secret files of the whole project within the limits, nearest first; skip caches and links."""
    waiting = deque([(root, 0)])
    for _ in range(MAX_WALKED_FOLDERS):
        if not waiting:
            return
        folder, depth = waiting.popleft()
        files, folders = _entries(folder)
        yield from (f"{folder}/{name}" for name in files)
        if depth < MAX_DEPTH:
            waiting.extend((f"{folder}/{name}", depth + 1) for name in folders if name not in _SKIPPED)


def _is_secret_file(name: str) -> bool:
    return bool(_FILE.fullmatch(name)) and not _SAMPLE.search(name)


def _entries(folder: str) -> tuple[list[str], list[str]]:
    """Return the secret files and the folders in a folder, sorted."""
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_secret_file(entry.name):
                    files.append(entry.name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def _values_of(path: Path, name: str) -> dict[str, str]:
    """Return value → the file's name. An unreadable file has no values, because commands cannot read it either."""
    try:
        text = read_own(path) or ""
    except LopenError:
        return {}
    found = {text[s.start : s.end] for s in find_secrets(text)}
    for match in _ASSIGNED.finditer(text):
        value = _unquoted(match["value"])
        if looks_secret_name(match["name"]):
            found.add(value)
    return {value: name for value in found if is_distinctive(value)}


def _unquoted(value: str) -> str:
    for quote in ("'", '"'):
        if value.startswith(quote) and value.find(quote, 1) > 0:
            return value[1 : value.find(quote, 1)]
    return value.partition(" #")[0].rstrip()


# Variable → the secret parts of the folder that it names, "" for the whole path
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "ANTHROPIC_CONFIG_DIR", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AZURE_CONFIG_DIR", "AZURE_FEDERATED_TOKEN_FILE", "BOTO_CONFIG", "CLAUDE_CONFIG_DIR", "CLOUDSDK_CONFIG",
            "DOCKER_CONFIG", "GH_CONFIG_DIR", "GIT_CONFIG_GLOBAL", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS",
            "HF_TOKEN_PATH", "KUBECONFIG", "NETRC", "NPM_CONFIG_USERCONFIG", "PASSWORD_STORE_DIR", "PGPASSFILE",
            "PIP_CONFIG_FILE", "TF_CLI_CONFIG_FILE", "XDG_CONFIG_HOME", "npm_config_userconfig",
        ),
        ("",),
    ),
    "CARGO_HOME": ("credentials", "credentials.toml"),
    "COMPOSER_HOME": ("auth.json",),
    "HF_HOME": ("token", "stored_tokens"),
    "XDG_DATA_HOME": ("keyrings", "uv/credentials"),
}  # fmt: skip
_MIN_PARTS = 3  # parts of a folder's path: hiding `/etc` for a variable that names it would break the machine


def configured_credentials(environ: Mapping[str, str], project: Path) -> tuple[Path, ...]:
    """Return the existing credentials that variables name, with links resolved, except credentials in the project."""
    found = {
        Path(os.path.realpath(name))
        for name in _credential_paths(tuple(environ.items()))
        if name.startswith("/")
    }
    return tuple(
        sorted(
            path
            for path in found
            # Not `path.is_file`, which raises an error for a path that is not accessible.
            if (os.path.isfile(path) or (os.path.isdir(path) and len(path.parts) >= _MIN_PARTS))
            and path != project
            and project not in path.parents
        )
    )


@lru_cache(maxsize=4)  # the same before every command of a session
def _credential_paths(environ: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    given = dict(environ)
    return (*filter(None, [data_folder(given)]), *_paths_of_variables(given))


def _paths_of_variables(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, parts in _VARIABLES.items():
        for place in environ.get(variable, "").split(os.pathsep):  # KUBECONFIG is a list
            if place:
                yield from (os.path.join(os.path.expanduser(place), part).rstrip("/") for part in parts)
