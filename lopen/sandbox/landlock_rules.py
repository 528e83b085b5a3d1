"""What the kernel is asked for by Landlock (landlock(7)): a thread confines itself, and all that it starts."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = 64

# linux/landlock.h
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 8, 1 << 9, 1 << 10, 1 << 11
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15
_READ = EXECUTE | READ_FILE | READ_DIR
_WRITE = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_SCOPES = 0b11  # abstract unix sockets, signals


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Landlock's version in this kernel, 0 where it has none or it is off."""
    version = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, int(version))


def handled(version: int) -> int:
    """Every file access that this version can deny; what is not allowed by a rule, is."""
    known = (1 << 13) - 1
    for since, access in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if version >= since:
            known |= access
    return known


def confine(read: Iterable[str], write: Iterable[str], devices: Iterable[str]) -> None:
    """From here on only what is listed can be opened, and no privilege is gained, for this thread and all it starts.

    There is no way back: the thread is to end. Raises OSError where the kernel refuses.
    """
    version = abi()
    if version == 0:
        raise OSError("this kernel has no Landlock, or it is switched off")
    known = handled(version)
    attributes = _Ruleset(known, 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _check(_libc.syscall(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0))
    for paths, access in (
        (read, _READ),
        (write, _READ | _WRITE | REFER | TRUNCATE),
        (devices, READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV),
    ):
        for path in paths:
            _allow(ruleset, path, access & known)
    for capability in range(
        _CAPABILITIES
    ):  # root keeps none over an exec; without any, this is refused: fine
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone, or not ours: not allowed, then
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _ON_FILES
        rule = _Beneath(access, descriptor)
        _check(_libc.syscall(ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
