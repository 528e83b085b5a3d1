"""Servers that run: each leaves a record in the person's data folder, outside every repository and sandbox.

The token lies there too: one for all servers of this person, in a file that only they can read. It outlives a
server, so that a browser reconnects to the next one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lopen.core.errors import LopenError
from lopen.core.files import create_file, replace_file
from lopen.core.person import data_folder, required
from lopen.core.process_identity import lives, start_time

OPEN = "/open"  # the path of links that work once
LINK_SECONDS = 600  # a link that `lopen serve --link` prints
FIRST_LINK_SECONDS = 86_400  # the link that a server prints when it starts
TOKEN_BYTES = 32
TOKEN_CHARACTERS = 43  # of 32 bytes in URL-safe base64


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server's record: its process, its address and the projects that it serves."""

    pid: int
    started: int | None
    url: str
    roots: tuple[str, ...]


def _folder() -> Path:
    return required(data_folder()) / "servers"


def server_token(*, renew: bool = False) -> str:
    """Return the token for every server of this person; `renew` makes a new one, and the old one opens nothing.

    Raises:
        LopenError: the data folder cannot be written.
    """
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        path = folder / "token"
        if renew:
            path.unlink(missing_ok=True)
        found = _read_token(path)
        if found is None:
            path.unlink(missing_ok=True)
            create_file(str(path), secrets.token_urlsafe(TOKEN_BYTES).encode("ascii"))
            found = _read_token(path)
    except OSError as error:
        raise LopenError(
            f"{error.filename or data_folder()}: {error.strerror or error}",
            hint="make that folder writable, or set XDG_DATA_HOME to one that is",
        ) from error
    if found is None:
        raise LopenError(f"{path} is not a token file of yours", hint="remove it and start the server again")
    return found


def token_mac(token: str, purpose: str, text: str) -> str:
    """Return a proof that its maker has the token, for one purpose and text."""
    return hmac.new(token.encode(), f"lopen {purpose} {text}".encode(), hashlib.sha256).hexdigest()


def new_link(url: str, token: str, seconds: int = LINK_SECONDS) -> str:
    """Return a link that opens the server at `url` once, for so many seconds."""
    head = f"{int(time.time()) + seconds}.{secrets.token_urlsafe(12)}"
    return f"{url}{OPEN}?key={head}.{token_mac(token, 'link', head)}"


def _read_token(path: Path) -> str | None:
    """Return the token in a file that belongs to this person and that nobody else may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, encoding="ascii", errors="replace") as file:
        about = os.fstat(descriptor)
        text = file.read(TOKEN_CHARACTERS + 1)
    private = about.st_uid == os.geteuid() and not about.st_mode & 0o077
    return text if private and len(text) == TOKEN_CHARACTERS else None


@contextmanager
def announced(url: str, roots: tuple[Path, ...]) -> Iterator[RunningServer]:
    """Keep a record of this process as a server of `roots` within the context."""
    pid = os.getpid()
    server = RunningServer(pid, start_time(pid), url, tuple(str(root) for root in roots))
    path = _folder() / f"{pid}.json"
    replace_file(path, json.dumps(asdict(server)).encode())
    try:
        yield server
    finally:
        path.unlink(missing_ok=True)


def running_servers(root: Path | None = None) -> list[RunningServer]:
    """Return the servers that run now, of `root` if it is given. Records of servers that died are removed."""
    found = []
    with suppress(OSError, LopenError):
        for path in sorted(_folder().glob("*.json")):
            server = _read_record(path)
            if server is None or not lives(server.pid, server.started):
                path.unlink(missing_ok=True)
            elif root is None or str(root) in server.roots:
                found.append(server)
    return found


def _read_record(path: Path) -> RunningServer | None:
    try:
        values = json.loads(path.read_text("utf-8"))
        return RunningServer(values["pid"], values["started"], values["url"], tuple(values["roots"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
