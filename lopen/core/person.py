"""This person: their own folders, and the seal that tells their records from a repository's.

The folders follow the rule of `platformdirs`. A relative path in an XDG variable or in HOME does not count (XDG Base
Directory Specification): it would name a folder inside the project.

One key, made once, lies in the person's own data folder. The database and every approval in it carry a seal made
with that key. A `state.db` that came with a clone has no seal, so its approvals do not count. Where that folder cannot
be written the key lasts as long as the process.

See docs/reference/storage.md.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, MutableMapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from lopen.core.errors import LopenError
from lopen.core.files import create_file

if TYPE_CHECKING:
    import sqlite3

_MAC = "Library/Application Support"
# Commands of lopen that only a person may give (docs/reference/workflow.md)
PERSONS_COMMANDS = frozenset(
    {
        *("approve", "answer", "confirm", "pause", "skip", "tell", "revert", "merge", "pr", "serve", "demo"),
        *("budget extend", "budget reset", "circuit ack", "circuit reset", "alerts ack", "session delete"),
        *("hooks install", "hooks uninstall", "config set", "config unset"),
    }
)


def data_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of this person's own data; "" where no home folder is known."""
    return _folder(environ, "XDG_DATA_HOME", ".local/share")


def config_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of the person's configuration; "" where no home folder is known."""
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def cache_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of data that can be made again; "" where no home folder is known."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache", "Library/Caches")


def required(folder: str) -> Path:
    """Return the folder as a path. Raise `LopenError` where no home folder is known."""
    if not folder:
        raise LopenError("your home folder is not known", hint="set HOME to its absolute path")
    return Path(folder)


def use_absolute_path(environ: MutableMapping[str, str]) -> None:
    """Take empty and relative entries out of PATH, so that no program is ever looked up in the current folder."""
    if "PATH" in environ:
        kept = (entry for entry in environ["PATH"].split(os.pathsep) if os.path.isabs(entry))
        environ["PATH"] = os.pathsep.join(kept) or os.defpath


def _folder(environ: Mapping[str, str], variable: str, below_home: str, on_mac: str = _MAC) -> str:
    base = environ.get(variable, "")
    if os.path.isabs(base):
        return os.path.join(base, "lopen")
    home = _home(environ)
    return os.path.join(home, on_mac if sys.platform == "darwin" else below_home, "lopen") if home else ""


def _home(environ: Mapping[str, str]) -> str:
    """Return HOME, else the home folder of the user database; "" where neither is an absolute path."""
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return ""
    return home if os.path.isabs(home) else ""


KEY_BYTES = 32
_NAME = "seal.key"
_TABLE = "CREATE TABLE owner (name TEXT NOT NULL, seal TEXT NOT NULL)"
_keys: dict[str, tuple[bytes, str]] = {}  # by folder


def sealed(*parts: str) -> str:
    """The seal over `parts`, in hexadecimal."""
    mac = blake2b(digest_size=32, key=_key(data_folder())[0])
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        mac.update(len(raw).to_bytes(8, "big") + raw)  # with lengths, so that no two lists read the same
    return mac.hexdigest()


def holds(seal: object, *parts: str) -> bool:
    """Return True if `seal` was made by this person over exactly `parts`."""
    return seal == sealed(*parts)


def unkept() -> str:
    """Why seals end with this process, in the system's words; "" where they last."""
    return _key(data_folder())[1]


def _key(folder: str) -> tuple[bytes, str]:
    """The key, and why it could not be kept; the same in this process from then on."""
    if folder not in _keys:
        _keys[folder] = _found_key(folder)
    return _keys[folder]


def _found_key(folder: str) -> tuple[bytes, str]:
    if not folder:
        return os.urandom(KEY_BYTES), "your home folder is not known: HOME is not an absolute path"
    path = os.path.join(folder, _NAME)
    try:
        return _read(path) or _made(folder, path), ""
    except OSError as error:
        return os.urandom(KEY_BYTES), f"{folder}: {error.strerror or error}"


def _read(path: str) -> bytes | None:
    """The key that lies there; None where there is none, or nothing that can be one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        found = file.read(KEY_BYTES + 1)
    return found if len(found) == KEY_BYTES else None


def _made(folder: str, path: str) -> bytes:
    """A new key, whole or not there at all; where another process was quicker, that one's."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    create_file(path, os.urandom(KEY_BYTES))
    found = _read(path)
    if found is None:
        raise OSError(0, f"{_NAME} is not a key; remove it")
    return found


def stamp(connection: sqlite3.Connection) -> None:
    """Mark a new database as this person's; in the transaction that makes it."""
    connection.execute(_TABLE)
    name = os.urandom(16).hex()
    connection.execute("INSERT INTO owner VALUES (?, ?)", (name, sealed("database", name)))


def owner(connection: sqlite3.Connection) -> str:
    """The name that a database got when it was made; "" where it has none."""
    row = connection.execute("SELECT name FROM owner LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def is_own(connection: sqlite3.Connection) -> bool:
    """Return True if the database is this person's, or has nothing in it yet. It may be moved and copied.

    Only the table that `stamp` makes is read: a view of that name could compute for ever.
    """
    found = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'owner'").fetchone()
    if found is None:
        return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    row = (
        connection.execute("SELECT name, seal FROM owner LIMIT 1").fetchone() if found[0] == _TABLE else None
    )
    return row is not None and holds(row[1], "database", str(row[0]))
