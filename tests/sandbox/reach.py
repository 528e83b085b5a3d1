"""Tries to reach one thing outside of a sandbox, by the kernel's own calls. Run by an attempt: `python reach.py WHAT …`.

Prints CANARY where it succeeds (or what it read, which holds one). x86-64 alone.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import sys

REQUEST_KEY, KEYCTL, OPEN_BY_HANDLE = 249, 250, 304
SEARCH, READ = 10, 11
SESSION_KEYRING, USER_KEYRING, USER_SESSION_KEYRING = -3, -4, -5
FOUND = "CANARY"
_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


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


def shm(number: str) -> None:
    """A segment of System V shared memory."""
    segment = _libc.shmget(int(number), 0, 0)
    if segment >= 0 and (place := _libc.shmat(segment, None, 0)) not in (None, ctypes.c_void_p(-1).value):
        tell(ctypes.string_at(place, 16).decode("ascii", "replace"))


def semaphores(number: str) -> None:
    """A set of System V semaphores."""
    if _libc.semget(int(number), 0, 0) >= 0:
        tell(FOUND)


def messages(number: str) -> None:
    """A System V message queue."""
    if _libc.msgget(int(number), 0) >= 0:
        tell(FOUND)


def queue(name: str) -> None:
    """A POSIX message queue."""
    if _libc.syscall(240, name.encode(), os.O_RDWR, 0, None) >= 0:
        tell(FOUND)


def family(number: str) -> None:
    """A socket of a family that no network namespace confines."""
    with socket.socket(int(number), socket.SOCK_STREAM):
        tell(FOUND)


def handle(kind: str, content: str) -> None:
    """A file by its handle, through the file system of the working folder."""
    raw = bytes.fromhex(content)
    mount = os.open(".", os.O_RDONLY)
    opened = _libc.syscall(OPEN_BY_HANDLE, mount, struct.pack("Ii", len(raw), int(kind)) + raw, os.O_RDONLY)
    if opened >= 0:
        tell(os.read(opened, 100).decode())


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
