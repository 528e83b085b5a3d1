"""What a person has in the kernel, besides files: a key, a pipe, a terminal."""

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

ADD_KEY, KEYCTL = 248, 250
UNLINK, USER_KEYRING = 9, -4
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class KernelThings:
    """The words of the attempts for what there is."""

    words: dict[str, object]


@contextlib.contextmanager
def kernel_things(beside: Path) -> Iterator[KernelThings]:
    """Make them, and take them away. `beside` gets the pipe."""
    with contextlib.ExitStack() as stack:
        name = f"lopen-test-{os.getpid()}"
        key = _libc.syscall(ADD_KEY, b"user", name.encode(), b"CANARY-KEY", 10, USER_KEYRING)
        stack.callback(_libc.syscall, KEYCTL, UNLINK, key, USER_KEYRING)
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
        yield KernelThings(
            {
                "key": key,
                "keyname": name,
                "fifo": pipe,
                "terminal": os.ttyname(terminal),
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
