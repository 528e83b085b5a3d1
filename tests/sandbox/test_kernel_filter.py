"""The filter of system calls: what it denies, and that ordinary programs run under it."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from lopen.sandbox.kernel_filter import filter_program

START = """
import ctypes, os, socket, subprocess, sys, threading
from lopen.sandbox.kernel_filter import install_filter
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
install_filter(private_ipc={private})
"""


def under_filter(code: str, *, private: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START.format(private=private) + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not filter_program(private_ipc=True), reason=f"no filter for {platform.machine()}")
@pytest.mark.parametrize("private", [True, False])
def test_shared_memory_is_denied_where_no_namespace_makes_it_private(private: bool) -> None:
    code = "s = libc.shmget(0, 4096, 0o1600); print(s >= 0); s >= 0 and libc.shmctl(s, 0, None)"
    assert under_filter(code, private=private).stdout == f"{private}\n"


@pytest.mark.skipif(not filter_program(private_ipc=True), reason=f"no filter for {platform.machine()}")
def test_ordinary_programs_run_under_the_filter() -> None:
    code = """
assert subprocess.run(["/bin/sh", "-c", "echo a | cat"], capture_output=True).stdout == b"a\\n"
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
one, other = socket.socketpair(); one.send(b"x"); print(other.recv(1))
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname())
pid = os.fork()
if pid == 0: os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    ran = under_filter(code)
    assert (ran.stdout, ran.stderr) == ("thread\nb'x'\n7\n", "")


def test_a_machine_of_unknown_calls_has_no_filter() -> None:
    assert filter_program(private_ipc=True, machine="riscv64") == b""
    assert len(filter_program(private_ipc=True, machine="aarch64")) % 8 == 0
