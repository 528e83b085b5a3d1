"""No test reaches another machine: connecting or asking a name server beyond loopback fails, in this process.

An audit hook cannot be taken back, so one is installed once and asks whether it is wanted.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOPBACK_NAMES = frozenset({None, "", "localhost", b"localhost"})
_state = {"installed": False, "depth": 0}


class NetworkForbidden(BaseException):
    """A test tried to reach beyond loopback. No `except Exception` of the code under test can hide it."""


@contextmanager
def forbidden_network() -> Iterator[None]:
    """Within it, only loopback addresses and Unix sockets can be reached."""
    if not _state["installed"]:
        sys.addaudithook(_hook)
        _state["installed"] = True
    _state["depth"] += 1
    try:
        yield
    finally:
        _state["depth"] -= 1


def _hook(event: str, args: tuple[object, ...]) -> None:
    if not event.startswith("socket.") or not _state["depth"]:
        return
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
        if isinstance(address, tuple) and address and not _loopback(address[0]):
            raise NetworkForbidden(f"a test tried to reach {address[0]!r}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname") and not _loopback(args[0]):
        raise NetworkForbidden(f"a test tried to look up {args[0]!r}")


def _loopback(host: object) -> bool:
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False
