"""Tries to reach one thing outside of a sandbox, by the kernel's own calls. Run by an attempt: `python reach.py WHAT …`.

Prints CANARY where it succeeds (or what it read, which holds one). x86-64 alone.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import sys

REQUEST_KEY, KEYCTL = 249, 250
SEARCH, READ = 10, 11
SESSION_KEYRING, USER_KEYRING, USER_SESSION_KEYRING = -3, -4, -5
FOUND = "CANARY"
_libc = ctypes.CDLL(None, use_errno=True)


def tell(text: str) -> None:
    """Print what was reached."""
    sys.stdout.write(f"{text}\n")


def key(name: str, number: str) -> None:
    """The person's key: requested, searched in every keyring, and by its number."""
    found = [_libc.syscall(REQUEST_KEY, b"user", name.encode(), None, 0), int(number)]
    for ring in (SESSION_KEYRING, USER_KEYRING, USER_SESSION_KEYRING):
        found.append(_libc.syscall(KEYCTL, SEARCH, ring, b"user", name.encode(), 0))
    content = ctypes.create_string_buffer(64)
    for one in found:
        if one > 0 and _libc.syscall(KEYCTL, READ, one, content, 64) > 0:
            tell(content.value.decode())


def keynames(name: str) -> None:
    """The name of the person's key in the kernel's list."""
    with open("/proc/keys", encoding="utf-8") as listed:
        tell(FOUND if name in listed.read() else "")


def family(number: str) -> None:
    """A socket of a family that no network namespace confines."""
    with socket.socket(int(number), socket.SOCK_STREAM):
        tell(FOUND)


def fifo(path: str, way: str) -> None:
    """A named pipe of somebody outside, read or written."""
    file = os.open(path, (os.O_RDONLY if way == "read" else os.O_WRONLY) | os.O_NONBLOCK)
    if way == "write":
        tell(FOUND if os.write(file, b"x") else "")
    elif select.select([file], [], [], 1)[0]:
        tell(os.read(file, 100).decode())


def terminal(path: str, way: str) -> None:
    """A person's terminal: what is typed there, or a text for it."""
    file = os.open(path, (os.O_RDONLY if way == "read" else os.O_WRONLY) | os.O_NONBLOCK | os.O_NOCTTY)
    if way == "write":
        tell(FOUND if os.write(file, b"x") else "")
    elif select.select([file], [], [], 1)[0]:
        tell(os.read(file, 100).decode())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
