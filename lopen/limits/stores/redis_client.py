"""A Redis client of what the limits' store needs, over one connection: the RESP2 protocol, standard library only.

A hook has no time to load a larger client. Nothing is ever sent twice: a reply that was lost would otherwise count an
amount again. Source: https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

import _socket as socket  # what it holds that hooks need; `socket` itself loads enumerations
import os

from lopen.core.person import sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Part = str | int | float
    Connection = socket.socket  # encrypted or not

LONGEST_LINE = 64 * 1024
DEEPEST_REPLY = 8


DEFAULT_PREFIX = "lopen"


def project_prefix(prefix: str, root: str) -> str:
    """The first part of every key: what the person set, else one with a name that this person's project alone has."""
    if prefix != DEFAULT_PREFIX:
        return prefix
    return f"{prefix}:{sealed('project', os.path.realpath(root))[:12]}"


class RedisError(Exception):
    """The server refused a command, or the server that answers is not a Redis server."""


class Conflict(Exception):
    """A watched key changed before the transaction was sent."""


class Address:
    """Where a server is: `redis://[user:password@]host[:port][/db]`, `rediss://…`, `unix://[user:password@]/path[?db=n]`."""

    def __init__(self, url: str) -> None:
        """ValueError where it is not such an address."""
        scheme, found, rest = url.partition("://")
        if not found or scheme not in ("redis", "rediss", "unix"):
            raise ValueError("the scheme is none of redis, rediss and unix")
        rest, _, query = rest.partition("?")
        login, _, place = rest.rpartition("@")
        user, _, password = login.partition(":")
        self.user, self.password = _unquoted(user), _unquoted(password)
        self.tls = scheme == "rediss"
        self.path = _unquoted(place) if scheme == "unix" else ""
        host, _, database = ("", "", "") if self.path else place.partition("/")
        name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdecimal() else (host, "", "6379")
        self.host, self.port = name.strip("[]") or "localhost", int(port)
        asked = dict(pair.partition("=")[::2] for pair in query.split("&"))
        self.database = int(asked.get("db", database) or 0)

    def __str__(self) -> str:
        """Without user and password."""
        return self.path or f"{self.host}:{self.port}"


def _unquoted(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def _open(where: Address, answer_s: float) -> Connection:
    """Connect to the first of the server's addresses that answers. Raises `OSError`."""
    if where.path:
        return _connect(socket.AF_UNIX, where.path, answer_s)
    if where.tls:
        import ssl
        from socket import create_connection

        plain = create_connection((where.host, where.port), timeout=answer_s)
        return ssl.create_default_context().wrap_socket(plain, server_hostname=where.host)
    *others, last = socket.getaddrinfo(where.host, where.port, 0, socket.SOCK_STREAM)
    for family, _, _, _, address in others:
        try:
            return _connect(family, address, answer_s)
        except OSError:
            continue  # the next address of the same server
    return _connect(last[0], last[4], answer_s)


def _connect(family: int, address: Any, answer_s: float) -> Connection:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(answer_s)
        connection.connect(address)
        if family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


class RedisClient:
    """Commands one at a time, or several at once. Connects when it is first needed, and again after a failure."""

    def __init__(self, address: Address, answer_s: float) -> None:
        """`answer_s`: a server that takes longer for one answer is gone (OSError)."""
        self._address = address
        self._answer_s = answer_s
        self._socket: Connection | None = None
        self._buffer = b""

    def __call__(self, *command: Part) -> Any:
        """The reply to one command; RedisError where the server refuses it."""
        [reply] = self.all([command])
        return reply

    def all(self, commands: Sequence[Sequence[Part]]) -> list[Any]:
        """The replies to several commands, sent together; RedisError where one is refused."""
        try:
            connection = self._socket or self._connected()
            connection.sendall(b"".join(map(_packed, commands)))
            replies = [self._reply(connection, 0) for _ in commands]
        except BaseException:
            self.close()  # what is still to be read belongs to no later command
            raise
        for reply in replies:
            if isinstance(reply, RedisError):
                raise reply
        return replies

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def _connected(self) -> Connection:
        where = self._address
        connection = _open(where, self._answer_s)
        self._socket = connection
        begin: list[tuple[Part, ...]] = []
        if where.password:
            begin.append(("AUTH", where.user, where.password) if where.user else ("AUTH", where.password))
        if where.database:
            begin.append(("SELECT", where.database))
        if begin:
            connection.sendall(b"".join(map(_packed, begin)))
            for reply in [self._reply(connection, 0) for _ in begin]:
                if isinstance(reply, RedisError):
                    raise reply
        return connection

    def _reply(self, connection: Connection, depth: int) -> Any:
        line = self._line(connection)
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode("utf-8", "replace")
        if kind == b"-":
            return RedisError(rest.decode("utf-8", "replace"))
        if kind in (b":", b"$", b"*") and depth < DEEPEST_REPLY:
            try:
                number = int(rest)
            except ValueError:
                raise RedisError("the server that answers is not a Redis server") from None
            if kind == b":":
                return number
            if number < 0:
                return None
            if kind == b"$":
                return self._bytes(connection, number + 2)[:-2].decode("utf-8", "replace")
            return [self._reply(connection, depth + 1) for _ in range(number)]
        raise RedisError("the server that answers is not a Redis server")

    def _line(self, connection: Connection) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > LONGEST_LINE:
                raise RedisError("the server that answers is not a Redis server")
            self._receive(connection)
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _bytes(self, connection: Connection, count: int) -> bytes:
        while len(self._buffer) < count:
            self._receive(connection)
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def _receive(self, connection: Connection) -> None:
        found = connection.recv(65_536)
        if not found:
            raise ConnectionError("the server closed the connection")
        self._buffer += found


class Transaction:
    """Reads under WATCH, then writes that land together where no watched key has changed."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._watching: list[str] = []  # told to the server with the next read
        self._writes: list[Sequence[Part]] = []

    def watch(self, *keys: str) -> None:
        """A change of these keys by somebody else makes `commit` fail."""
        self._watching += keys

    def read(self, *command: Part) -> Any:
        """The reply to a command that changes nothing."""
        watch, self._watching = self._watching, []
        return self._client.all([("WATCH", *watch), command] if watch else [command])[-1]

    def write(self, *command: Part) -> None:
        """A command for `commit`."""
        self._writes.append(command)

    def commit(self) -> None:
        """Send the writes; Conflict where another writer came between."""
        if not self._writes:
            self._client("UNWATCH")
            return
        watch = [("WATCH", *self._watching)] if self._watching else []
        if self._client.all([*watch, ("MULTI",), *self._writes, ("EXEC",)])[-1] is None:
            raise Conflict

    def abandon(self) -> None:
        """Watch nothing any more: the connection is for others."""
        try:
            self._client("UNWATCH")
        except (OSError, RedisError):
            self._client.close()


def pairs(reply: Sequence[str]) -> dict[str, str]:
    """The hash of a reply that lists names and values."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def flat(fields: dict[str, Any]) -> list[Any]:
    """The names and values of a hash, for a command."""
    return [part for pair in fields.items() for part in pair]


def _packed(command: Sequence[Part]) -> bytes:
    parts = [str(part).encode("utf-8", "surrogatepass") for part in command]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
