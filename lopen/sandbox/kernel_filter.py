"""The system calls that a command may not make, as a program for the kernel (seccomp(2)), and its session keyring.

The calls are those that reach beyond a command's processes and files: the kernel's keyrings, mounts and namespaces,
files by handle, machine-wide tracing, limits of other processes, and sockets of families that no network namespace confines (AF_VSOCK). Tracing
(ptrace(2)) stays: the pid namespace or Landlock confines it to the command's own processes, and leak checkers need it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_libc = ctypes.CDLL(None, use_errno=True)

# linux/bpf_common.h: load a word, jump if equal, if at least, if a bit is set, return
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # the bit of a call by the x32 interface

_FAMILIES = (0, 1, 2, 10, 16)  # unspecified, unix, IPv4, IPv6, netlink
_TYPING = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put input into a terminal
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW* of sched.h
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_JOIN_SESSION_KEYRING = 1


@dataclass(frozen=True, slots=True)
class _Calls:
    """The numbers of one architecture's calls."""

    architecture: int  # AUDIT_ARCH_* of linux/audit.h
    denied: tuple[int, ...]
    shared_memory: tuple[
        int, ...
    ]  # System V IPC and message queues, which only an IPC namespace makes private
    socket: int
    ioctl: int
    clone: int
    unshare: int
    keyctl: int
    prlimit: int


# On all architectures: io_uring_setup to io_uring_register, open_tree to fspick, pidfd_getfd, mount_setattr,
# quotactl_fd, open_tree_attr.
_NEWER = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 467)
_CLONE3 = 435  # its flags are in memory, which a filter cannot read; libraries use clone instead
# syslog, pivot_root, acct, settimeofday, mount, umount2, swapon, swapoff, reboot, init_module, delete_module,
# quotactl, add_key, request_key, keyctl, perf_event_open, name_to_handle_at, open_by_handle_at, clock_adjtime,
# setns, kcmp, finit_module, bpf, kexec_load, kexec_file_load, userfaultfd, fanotify_init; on x86-64 also iopl, ioperm
_X86_64 = _Calls(
    0xC000003E,
    (103, 155, 163, 164, 165, 166, 167, 168, 169, 175, 176, 179, 248, 249, 250, 298, 303, 304, 305,
     308, 312, 313, 321, 246, 320, 323, 300, 172, 173),
    (29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241),
    socket=41, ioctl=16, clone=56, unshare=272, keyctl=250, prlimit=302,
)  # fmt: skip
_AARCH64 = _Calls(
    0xC00000B7,
    (116, 41, 89, 170, 40, 39, 224, 225, 142, 105, 106, 60, 217, 218, 219, 241, 264, 265, 266, 268, 272, 273, 280,
     104, 294, 282, 262),
    (194, 196, 195, 190, 193, 191, 197, 186, 189, 188, 187, 192, 180, 181),
    socket=198, ioctl=29, clone=220, unshare=97, keyctl=219, prlimit=261,
)  # fmt: skip
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}

_Program = list[tuple[int, int, int, int]]  # code, steps if true, steps if false, operand


@lru_cache(maxsize=4)
def filter_program(*, private_ipc: bool, machine: str = platform.machine()) -> bytes:
    """Return the filter for the kernel; empty on an architecture whose calls are not known here.

    Without `private_ipc` it also denies System V shared memory, semaphores and message queues.
    """
    calls = _CALLS.get(machine)
    if calls is None:
        return b""
    program: _Program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, calls.architecture),  # another one, such as 32-bit, has other numbers
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    program += _denied((_CLONE3,), errno.ENOSYS)
    program += _denied((*calls.denied, *_NEWER, *(() if private_ipc else calls.shared_memory)), errno.EPERM)
    families = [(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
    program += _by_argument(
        calls.socket,
        _FIRST,
        [*families, (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)],
    )
    program += _by_argument(calls.ioctl, _SECOND, [*_denied(_TYPING, errno.EPERM), (_RETURN, 0, 0, _ALLOW)])
    for call in (calls.clone, calls.unshare):
        flags: _Program = [(_HAS_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
        program += _by_argument(call, _FIRST, [*flags, (_RETURN, 0, 0, _ALLOW)])
    # Any process of the user can be limited, lopen too; 0 is the caller, whose limits children inherit.
    others: _Program = [(_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _ERRNO | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    program += _by_argument(calls.prlimit, _FIRST, others)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in program)


def _denied(values: Iterable[int], error: int) -> _Program:
    """Return the steps that answer each value with an error."""
    return [step for value in values for step in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | error))]


def _by_argument(call: int, argument: int, steps: _Program) -> _Program:
    """Return the steps that decide on one call by the low half of an argument."""
    return [(_EQUAL, 0, len(steps) + 1, call), (_LOAD, 0, 0, argument), *steps]


def filter_file(*, private_ipc: bool) -> int | None:
    """Return a descriptor from which the filter can be read; None where there is none."""
    program = filter_program(private_ipc=private_ipc)
    if not program:
        return None
    file = os.memfd_create("filter")
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    return file


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def install_filter(*, private_ipc: bool) -> None:
    """Filter the calls of this thread and everything that it starts, for good. It has no new privileges already.

    Raise OSError if the kernel refuses.
    """
    program = filter_program(private_ipc=private_ipc)
    if not program:
        return
    # The step of a program is 8 bytes long, so a bytes object holds it as the kernel reads it.
    wanted = _Filter(len(program) // 8, program)
    if _libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(wanted), 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def join_new_keyring() -> bool:
    """Give this thread and everything that it starts an empty session keyring (session-keyring(7)).

    Return False where the system has no keyrings or refuses.
    """
    calls = _CALLS.get(platform.machine())
    return calls is not None and _libc.syscall(calls.keyctl, _JOIN_SESSION_KEYRING, None) >= 0
