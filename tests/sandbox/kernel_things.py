"""What a person has in the kernel, besides files: a key, shared memory, queues, a pipe, a terminal, a file's handle."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ADD_KEY, KEYCTL, NAME_TO_HANDLE = 248, 250, 303
UNLINK, USER_KEYRING = 9, -4
CREATE, REMOVE = 0o1600, 0  # IPC_CREAT with the owner's permissions; IPC_RMID
_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


@dataclass(frozen=True, slots=True)
class KernelThings:
    """The words of the attempts for what there is."""

    words: dict[str, object]


@contextlib.contextmanager
def kernel_things(beside: Path, secret: Path) -> Iterator[KernelThings]:
    """Make them, and take them away. `beside` gets the pipe; the handle is of `secret`."""
    number = 0x10000 + os.getpid()
    with contextlib.ExitStack() as stack:
        name = f"lopen-test-{os.getpid()}"
        key = _libc.syscall(ADD_KEY, b"user", name.encode(), b"CANARY-KEY", 10, USER_KEYRING)
        stack.callback(_libc.syscall, KEYCTL, UNLINK, key, USER_KEYRING)
        segment = _libc.shmget(number, 4_096, CREATE)
        stack.callback(_libc.shmctl, segment, REMOVE, None)
        place = _libc.shmat(segment, None, 0)
        ctypes.memmove(place, b"CANARY-SHM", 10)
        stack.callback(_libc.shmdt, ctypes.c_void_p(place))
        stack.callback(_libc.semctl, _libc.semget(number, 1, CREATE), 0, REMOVE)
        stack.callback(_libc.msgctl, _libc.msgget(number, CREATE), REMOVE, None)
        master, terminal = pty.openpty()
        stack.callback(os.close, master)
        stack.callback(os.close, terminal)
        pipe = beside / "fifo"
        os.mkfifo(pipe)
        ends = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        stack.callback(os.close, ends)
        stop = threading.Event()
        feeding = threading.Thread(target=_feed, args=(stop, ends, master))
        feeding.start()
        stack.callback(feeding.join)
        stack.callback(stop.set)
        kind, handle = _handle(secret)
        yield KernelThings(
            {
                "key": key,
                "keyname": name,
                "ipc": number,
                "fifo": pipe,
                "terminal": os.ttyname(terminal),
                "handle": f"{kind} {handle.hex()}",
            }
        )


def _feed(stop: threading.Event, pipe: int, master: int) -> None:
    """Keep something to read in the pipe and at the terminal, as a program and a person do."""
    os.set_blocking(pipe, False)
    os.set_blocking(master, False)
    while not stop.wait(0.05):
        waiting = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
        with contextlib.suppress(BlockingIOError):
            if waiting < 1_000:  # there is always something to read, and room to write
                os.write(pipe, b"CANARY-FIFO\n" * 10)
            os.write(master, b"CANARY-TYPED\n")
        with contextlib.suppress(BlockingIOError):
            os.read(master, 65_536)


def _handle(path: Path) -> tuple[int, bytes]:
    """Return the type and the bytes of a file's handle (name_to_handle_at(2))."""
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 8 + 128)
    mount = ctypes.c_int()
    if _libc.syscall(NAME_TO_HANDLE, -100, bytes(path), buffer, ctypes.byref(mount), 0) != 0:
        raise OSError(ctypes.get_errno(), "no handle", str(path))
    size, kind = struct.unpack_from("Ii", buffer)
    return kind, buffer.raw[8 : 8 + size]
