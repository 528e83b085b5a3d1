"""The secrets this machine and project hold: values of variables that are called so, and those of `.env` files.

They are known by value, and taken out wherever they would be kept, shown or sent. The files are
looked at for their values alone: nothing of them becomes configuration.

See docs/reference/sandbox.md.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from lopen.base.errors import LopenError
from lopen.base.redaction import find_secrets, hidden, is_placeholder, looks_secret_name, redact, spelt
from lopen.base.stat_cache import Signature, signature
from lopen.base.user_folders import data_folder
from lopen.settings.files import read_own

SHORTEST = 8  # a shorter value is a word that stands in texts by chance
LONGEST_WORD = 12
MOST_FOLDERS = 200  # beside the project's root, that are looked into again and again
MOST_WALKED = 5_000  # folders, once at the start
DEEPEST = 12  # below the project's root
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
    """Every known value, by where it stands. `look` reads the files that changed since.

    The whole project is walked once, at the start; after that the files found then and those near the root are
    looked at, and what `take_in` is told of.
    """

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._variables = {v: n for n, v in environ.items() if looks_secret_name(n) and telling(v)}
        self._files: dict[str, tuple[Signature, dict[str, str]]] = {}
        self._values: tuple[str, ...] = tuple(sorted(self._variables))
        self._further = list(_walked(str(root)))
        self.look()

    def look(self) -> None:
        """Take in what the project's files hold now. A value stays known when its file is gone."""
        for path in dict.fromkeys((*_candidates(str(self._root)), *self._further)):
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

    def take_in(self, path: str) -> None:
        """A tool reads the file at this absolute path: from now on it is one of those looked at, if it is of the kind."""
        if _of_the_kind(os.path.basename(path)) and path not in self._further:
            self._further.append(path)
            self.look()

    @property
    def values(self) -> tuple[str, ...]:
        """What must not be passed on."""
        return self._values

    def now(self) -> tuple[str, ...]:
        """The values, with what the files hold at this moment."""
        self.look()
        return self._values

    def redact(self, text: str) -> str:
        """`text` without these, and without what looks like a secret."""
        return redact(text, self._values)

    def hide(self, text: str) -> str:
        """`text` without these alone."""
        return hidden(text, self._values)

    def places(self, text: str) -> set[str]:
        """Where those values that stand in `text` come from: names of variables and of files."""
        named = {value: name for name, (_, held) in self._files.items() for value in held} | self._variables
        return {name for value, name in named.items() if any(s in text for s in spelt(value))}


def telling(value: str) -> bool:
    """Whether taking `value` out of every text protects something: no short word, no placeholder, no path."""
    if len(value) < SHORTEST or is_placeholder(value) or _is_word(value):
        return False
    return not (value.startswith("/") and os.path.exists(value))


def _is_word(value: str) -> bool:
    """A session's or desktop's name, say: variables that sound secret hold such too."""
    return len(value) < LONGEST_WORD and value.isalpha() and value.islower()


def _candidates(root: str) -> Iterator[str]:
    """Files of this kind at the project's root and one folder below."""
    files, folders = _listed(root)
    yield from (f"{root}/{name}" for name in files)
    for folder in [name for name in folders if not name.startswith(".")][:MOST_FOLDERS]:
        yield from (f"{root}/{folder}/{name}" for name in _listed(f"{root}/{folder}")[0])


def _walked(root: str) -> Iterator[str]:
    """Files of this kind in the whole project, nearest first, as far as is bearable; caches and links left out."""
    waiting = deque([(root, 0)])
    for _ in range(MOST_WALKED):
        if not waiting:
            return
        folder, depth = waiting.popleft()
        files, folders = _listed(folder)
        yield from (f"{folder}/{name}" for name in files)
        if depth < DEEPEST:
            waiting.extend((f"{folder}/{name}", depth + 1) for name in folders if name not in _SKIPPED)


def _of_the_kind(name: str) -> bool:
    return bool(_FILE.fullmatch(name)) and not _SAMPLE.search(name)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """The files of this kind in a folder, and its folders; sorted."""
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _of_the_kind(entry.name):
                    files.append(entry.name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def _values_of(path: Path, name: str) -> dict[str, str]:
    """Value → the file's name. One that cannot be read holds nothing that a command could read either."""
    try:
        text = read_own(path) or ""
    except LopenError:
        return {}
    found = {text[s.start : s.end] for s in find_secrets(text)}
    for match in _ASSIGNED.finditer(text):
        value = _unquoted(match["value"])
        if looks_secret_name(match["name"]):
            found.add(value)
    return {value: name for value in found if telling(value)}


def _unquoted(value: str) -> str:
    for quote in ("'", '"'):
        if value.startswith(quote) and value.find(quote, 1) > 0:
            return value[1 : value.find(quote, 1)]
    return value.partition(" #")[0].rstrip()


# Variable → what of the place it names is secret, "" for all of it
_NAMED: Mapping[str, tuple[str, ...]] = {
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
_ROOMY = 3  # parts of a folder's path: a variable that names `/etc` hides no credential but the machine


def named_credentials(environ: Mapping[str, str], project: Path) -> tuple[Path, ...]:
    """What there is of it, links resolved; not what lies in the project, which commands are to work with."""
    found = {Path(os.path.realpath(name)) for name in _named(tuple(environ.items())) if name.startswith("/")}
    return tuple(
        sorted(
            path
            for path in found
            # Not `path.is_file`: what cannot be looked at, nobody's command can read either.
            if (os.path.isfile(path) or (os.path.isdir(path) and len(path.parts) >= _ROOMY))
            and path != project
            and project not in path.parents
        )
    )


@lru_cache(maxsize=4)  # the same before every command of a session
def _named(environ: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    given = dict(environ)
    return (*filter(None, [data_folder(given)]), *_places(given))


def _places(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, parts in _NAMED.items():
        for place in environ.get(variable, "").split(os.pathsep):  # KUBECONFIG is a list
            if place:
                yield from (os.path.join(os.path.expanduser(place), part).rstrip("/") for part in parts)
