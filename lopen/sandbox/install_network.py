"""The network of verify-setup: the outside without the machine's loopback.

verify-setup runs code of the model (`setup.py`, `package.json`), and services on the loopback interface trust who
reaches them. So the command gets a network of its own, which slirp4netns(1) connects to the outside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lopen.core.trusted_programs import find_program
from lopen.sandbox.command import SandboxFailed

NAMESERVER = "10.0.2.3"  # slirp4netns forwards questions to it to the machine's resolver

_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_GET_USER_NAMESPACE = 0xB701  # NS_GET_USERNS of linux/nsfs.h
_READY_S = 5.0
_POLL_S = 0.005


def find_connector(environ: Mapping[str, str], project: Path) -> str | None:
    """Return the absolute path of slirp4netns, never one in the project; None if it is not installed."""
    return find_program("slirp4netns", (*_FOLDERS, *environ.get("PATH", "").split(":")), project)


@contextlib.contextmanager
def connected(program: str, pid: int) -> Iterator[None]:
    """Connect the network namespace of process `pid` within the context. Raise SandboxFailed if that does not work."""
    _wait_for(
        lambda: b"127.0.0.1" in Path(f"/proc/{pid}/net/fib_trie").read_bytes()
    )  # bwrap configures loopback
    with contextlib.ExitStack() as stack:
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, network)
        user = fcntl.ioctl(network, _GET_USER_NAMESPACE)
        stack.callback(os.close, user)
        argv = [program, "--configure", "--mtu=65520", "--disable-host-loopback", "--netns-type=path"]
        argv += [f"--userns-path=/proc/self/fd/{user}", f"/proc/self/fd/{network}", "tap0"]
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            pass_fds=(user, network),
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        routes = Path(f"/proc/{pid}/net/route")
        ready = _wait_for(lambda: process.poll() is not None or routes.read_bytes().count(b"\n") > 1)
        if not ready or process.poll() is not None:
            raise SandboxFailed("slirp4netns cannot connect the command to the network")
        yield


def _wait_for(met: Callable[[], bool]) -> bool:
    """Wait for a condition in another network namespace, of which the kernel does not tell; False if it is not met."""
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if met():
                return True
        time.sleep(_POLL_S)
    return False
