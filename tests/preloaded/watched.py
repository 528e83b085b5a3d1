"""Watching a process tree at its system calls: a seccomp filter stops each chosen call before the kernel begins it.

The filter asks only about the calls that leave something behind, over the whole tree of processes and in one order.
What the watcher answers is what the kernel does: go on, fail with an errno, or nothing, because the caller is killed.
Linux 5.9 or newer; no privilege is needed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

# What leaves something behind, by number. An architecture without the older calls has only the newer ones.
_X86_64: Final = {
    "write": 1,
    "pwrite64": 18,
    "writev": 20,
    "sendto": 44,
    "execve": 59,
    "fsync": 74,
    "fdatasync": 75,
    "ftruncate": 77,
    "rename": 82,
    "link": 86,
    "unlink": 87,
    "unlinkat": 263,
    "renameat": 264,
    "linkat": 265,
    "renameat2": 316,
}
_AARCH64: Final = {
    "unlinkat": 35,
    "linkat": 37,
    "renameat": 38,
    "ftruncate": 46,
    "write": 64,
    "writev": 66,
    "pwrite64": 68,
    "fsync": 82,
    "fdatasync": 83,
    "sendto": 206,
    "execve": 221,
    "renameat2": 276,
}
_TABLES: Final[Mapping[str, tuple[int, int, Mapping[str, int]]]] = {  # machine → arch, seccomp(2), calls
    "x86_64": (0xC000003E, 317, _X86_64),
    "aarch64": (0xC00000B7, 277, _AARCH64),
}

_SET_MODE_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_LOAD, _EQUAL, _GREATER, _RETURN = 0x20, 0x15, 0x25, 0x06
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_NO_NEW_PRIVILEGES, _SUBREAPER = 38, 36
_NOTICE = struct.Struct("=QII iIQ 6Q")
_ANSWER = struct.Struct("=QqiI")


class Unwatchable(Exception):
    """This kernel or architecture offers no seccomp notifications; says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that waits: who makes it, and its first argument (a descriptor, for most)."""

    id: int
    pid: int
    name: str
    argument: int

    def target(self) -> str:
        """The file that is written, where it can be told; else empty."""
        if self.name not in ("write", "writev", "pwrite64", "fsync", "fdatasync", "ftruncate"):
            return ""
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{self.argument}")
        except OSError:
            return ""


def available() -> str:
    """Why nothing can be watched here, empty where it can."""
    if platform.machine() not in _TABLES or platform.system() != "Linux":
        return f"seccomp notifications are not known on {platform.system()} {platform.machine()}"
    try:
        with open("/proc/sys/kernel/seccomp/actions_avail", encoding="ascii") as file:
            return "" if "user_notif" in file.read() else "the kernel has no seccomp notifications"
    except OSError as error:
        return f"the kernel has no seccomp: {error.strerror}"


def watch() -> int:
    """From here on this process and all it starts ask before each chosen call; the descriptor to answer on.

    Output on standard output and error is not asked about.
    """
    arch, seccomp, calls = _TABLES[platform.machine()]
    program = _program(arch, calls)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        descriptor: int = libc.syscall(seccomp, _SET_MODE_FILTER, flags, header)
        if descriptor >= 0:
            return descriptor
    raise Unwatchable(os.strerror(ctypes.get_errno()))


def adopt_orphans() -> None:
    """Whatever loses its parent below this process becomes its child."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def receive(listener: int) -> Call | None:
    """The next call that waits; None where its caller died meanwhile."""
    buffer = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    id_, pid, _, number, _, _, first, *_ = _NOTICE.unpack(buffer)
    return Call(id_, pid, _names()[number], first & 0xFFFFFFFF)


def answer(listener: int, call: Call, fails_with: int = 0) -> None:
    """Let the call go on, or make it fail with an errno. A caller that is gone needs no answer."""
    flags = 0 if fails_with else _CONTINUE
    try:
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(call.id, 0, -fails_with, flags))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def _names() -> Mapping[int, str]:
    return {number: name for name, number in _TABLES[platform.machine()][2].items()}


def _program(arch: int, calls: Mapping[str, int]) -> bytes:
    """The filter in the kernel's own small language. It loads architecture, number and, for a write, the descriptor."""
    return b"".join(_instructions(arch, calls))


def _instructions(arch: int, calls: Mapping[str, int]) -> Iterator[bytes]:
    def line(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    yield line(_LOAD, 0, 0, 4)
    yield line(_EQUAL, 1, 0, arch)
    yield line(_RETURN, 0, 0, _ALLOW)
    yield line(_LOAD, 0, 0, 0)
    for name in ("write", "writev"):
        yield line(_EQUAL, 0, 4, calls[name])
        yield line(_LOAD, 0, 0, 16)
        yield line(_GREATER, 1, 0, 2)
        yield line(_RETURN, 0, 0, _ALLOW)
        yield line(_RETURN, 0, 0, _ASK)
    for name in calls.keys() - {"write", "writev"}:
        yield line(_EQUAL, 0, 1, calls[name])
        yield line(_RETURN, 0, 0, _ASK)
    yield line(_RETURN, 0, 0, _ALLOW)
