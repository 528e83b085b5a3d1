"""A filter for the kernel (seccomp(2)) against accesses that neither a namespace nor Landlock stops. These are the
person's keys, and sockets of families that no network namespace confines (AF_VSOCK).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)

# linux/bpf_common.h: load a word, jump if equal, if at least, return
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # the bit of a call by the x32 interface
_FAMILIES = (0, 1, 2, 10, 16)  # unspecified, unix, IPv4, IPv6, netlink
_IO_URING = 425  # by which a program makes sockets without the call
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_JOIN_SESSION_KEYRING = 1

# AUDIT_ARCH_* of linux/audit.h; the numbers of socket, request_key, keyctl
_CALLS = {"x86_64": (0xC000003E, 41, 249, 250), "aarch64": (0xC00000B7, 198, 218, 219)}


def filter_program() -> bytes:
    """Return the filter for the kernel; empty on an architecture whose calls are not known here."""
    if (calls := _CALLS.get(platform.machine())) is None:
        return b""
    architecture, socket, *keys = calls
    refused = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),  # another one, such as 32-bit, has other numbers
        refused,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        refused,
    ]
    for call in (_IO_URING, *keys):
        program += [(_EQUAL, 0, 1, call), refused]
    program += [(_EQUAL, 0, len(_FAMILIES) + 2, socket), (_LOAD, 0, 0, _FIRST)]
    program += [(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
    program += [(_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in program)


def filter_file() -> int | None:
    """Return a descriptor from which the filter can be read; None where there is none."""
    if not (program := filter_program()):
        return None
    file = os.memfd_create("filter")
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    return file


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def install_filter() -> None:
    """Filter the calls of this thread and everything that it starts, for good. It has no new privileges already.

    Raise OSError if the kernel refuses.
    """
    if not (program := filter_program()):
        return
    # The step of a program is 8 bytes long, so a bytes object holds it as the kernel reads it.
    wanted = _Filter(len(program) // 8, program)
    if _libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(wanted), 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def join_new_keyring() -> None:
    """Give this thread and everything that it starts an empty session keyring (session-keyring(7)), where there are any."""
    if (calls := _CALLS.get(platform.machine())) is not None:
        _libc.syscall(calls[-1], _JOIN_SESSION_KEYRING, None)
