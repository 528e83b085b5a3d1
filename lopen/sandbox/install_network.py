"""The network of verify-setup: the outside without the machine's loopback.

verify-setup runs what the model wrote (`setup.py`, `package.json`), and services on the loopback interface trust who
reaches them. So the command gets a network of its own: slirp4netns(1) or pasta(1) connects it to the outside; where
neither works, a proxy of lopen's reaches the package indexes that the user's configuration names, and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lopen.core.trusted_programs import find_program
from lopen.sandbox.command import InstallNetwork, SandboxFailed

CONNECTORS: tuple[InstallNetwork, ...] = ("slirp4netns", "pasta")
NAMESERVER = "10.0.2.3"  # the connectors forward questions to it to the machine's resolver

_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_GET_USER_NAMESPACE = 0xB701  # NS_GET_USERNS of linux/nsfs.h
_READY_S = 5.0
_POLL_S = 0.005
_HEAD = 16_384
_CHUNK = 65_536
_CONNECT_S = 30.0
_IDLE_S = 300.0
_REQUEST = re.compile(rb"(?P<method>[A-Z]+) (?P<target>\S+) (?P<version>HTTP/1\.[01])\r\n")
_URL = re.compile(r"http://(?P<host>[^/?#@]+)(?P<path>/.*)?")

_WRAPPER = """
import os, socket, sys
channel = socket.socket(fileno=int(sys.argv[1]))
listener = socket.create_server(("127.0.0.1", 0))
socket.send_fds(channel, [b"x"], [listener.fileno()])
address = "http://127.0.0.1:%d" % listener.getsockname()[1]
channel.close(); listener.close()
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ[name] = address
os.execvp(sys.argv[2], sys.argv[2:])
"""


def find_connector(name: InstallNetwork, environ: Mapping[str, str], project: Path) -> str | None:
    """Return the absolute path of slirp4netns or pasta, never one in the project; None if it is not installed."""
    return find_program(name, (*_FOLDERS, *environ.get("PATH", "").split(":")), project)


class InstallLink(contextlib.ExitStack):
    """What connects one command: nothing (None), a connector, or the proxy to `indexes`."""

    def __init__(self, kind: InstallNetwork | None, program: str, indexes: tuple[str, ...]) -> None:
        super().__init__()
        self._kind = kind
        self._program = program
        self._proxy = self.enter_context(IndexProxy(indexes)) if kind == "proxy" else None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that the command inherits."""
        return (self._proxy.descriptor,) if self._proxy else ()

    def wrapped(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command to start in place of `argv`."""
        return self._proxy.wrapped(argv) if self._proxy else argv

    def connect(self, pid: int | None) -> None:
        """Connect the network namespace of process `pid` before the command starts. Raise SandboxFailed."""
        if self._proxy is not None:
            self._proxy.close_inside()
        elif self._kind in CONNECTORS and pid is not None:
            ready = self.enter_context(connected(self._kind, self._program, pid))
            if not ready:
                raise SandboxFailed(f"{self._kind} cannot connect the command to the network")


@contextlib.contextmanager
def connected(name: InstallNetwork, program: str, pid: int) -> Iterator[bool]:
    """Connect the network namespace of process `pid` within the context; yield False if that does not work."""
    _wait_for(
        lambda: b"127.0.0.1" in Path(f"/proc/{pid}/net/fib_trie").read_bytes()
    )  # bwrap configures loopback
    with contextlib.ExitStack() as stack:
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, network)
        user = fcntl.ioctl(network, _GET_USER_NAMESPACE)
        stack.callback(os.close, user)
        joined = [f"/proc/self/fd/{user}", f"/proc/self/fd/{network}"]
        if name == "slirp4netns":
            argv = [program, "--configure", "--mtu=65520", "--disable-host-loopback", "--netns-type=path"]
            argv += [f"--userns-path={joined[0]}", joined[1], "tap0"]
        else:
            argv = [program, "--config-net", "--foreground", "--quiet", "--no-map-gw"]
            argv += ["--dns-forward", NAMESERVER]
            argv += [word for option in ("-t", "-u", "-T", "-U") for word in (option, "none")]
            argv += ["--runas", f"{os.getuid()}:{os.getgid()}"] if os.getuid() == 0 else []
            argv += ["--userns", joined[0], "--netns", joined[1]]
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
        yield _wait_for(lambda: process.poll() is not None or routes.read_bytes().count(b"\n") > 1) and (
            process.poll() is None
        )


def _wait_for(met: Callable[[], bool]) -> bool:
    """Wait for a condition in another network namespace, of which the kernel does not tell; False if it is not met."""
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if met():
                return True
        time.sleep(_POLL_S)
    return False


class IndexProxy:
    """An HTTP proxy to `indexes` (`host` or `host:port`) for one command.

    The command's wrapper listens in its own network namespace and passes the socket on; this accepts and connects outside.
    """

    def __init__(self, indexes: tuple[str, ...]) -> None:
        self._allowed = {
            (host, int(port or 0)) for host, _, port in (i.lower().partition(":") for i in indexes)
        }
        self._channel, self._inside = socket.socketpair()
        self._closing, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="index-proxy", daemon=True)

    def __enter__(self) -> IndexProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._inside.close()
        os.close(self._wake)
        self._thread.join(_READY_S)

    @property
    def descriptor(self) -> int:
        """The descriptor that the command inherits."""
        return self._inside.fileno()

    def wrapped(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command that opens the proxy's port and runs `argv` with its address."""
        python = os.path.realpath(sys.executable)
        return (python, "-I", "-S", "-c", _WRAPPER, str(self.descriptor), *argv)

    def close_inside(self) -> None:
        """Close the command's end in this process once the command has it."""
        self._inside.close()

    def _serve(self) -> None:
        with self._channel:
            ready = select.select([self._channel.fileno(), self._closing], [], [])[0]
            passed = self._channel.fileno() in ready
            descriptors = socket.recv_fds(self._channel, 1, 1)[1] if passed else []
        if descriptors:
            with socket.socket(fileno=descriptors[0]) as listener:
                listener.setblocking(False)
                while self._closing not in select.select([listener.fileno(), self._closing], [], [])[0]:
                    with contextlib.suppress(OSError):
                        connection, _ = listener.accept()
                        threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        os.close(self._closing)

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(_CONNECT_S)
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _HEAD:
                if not (piece := client.recv(_HEAD)):
                    return
                head += piece
            target = self._target(head)
            if target is None:
                client.sendall(b"HTTP/1.1 403 Not in sandbox.package_indexes\r\nContent-Length: 0\r\n\r\n")
                return
            address, first = target
            try:
                server = socket.create_connection(address, _CONNECT_S)
            except OSError:
                client.sendall(b"HTTP/1.1 502 Cannot connect\r\nContent-Length: 0\r\n\r\n")
                return
            with server:
                if first:
                    server.sendall(first)
                else:
                    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                _relay(client, server)

    def _target(self, head: bytes) -> tuple[tuple[str, int], bytes] | None:
        """Return where a request goes and what to send there first (b"" for a tunnel); None if that is not allowed."""
        asked = _REQUEST.match(head)
        if asked is None:
            return None
        name, tunnel = asked["target"].decode("latin-1"), asked["method"] == b"CONNECT"
        path = "/"
        if not tunnel:
            url = _URL.fullmatch(name)
            if url is None:
                return None
            name, path = url["host"], url["path"] or "/"
        host, _, port = name.lower().rpartition(":") if ":" in name else (name.lower(), "", "")
        number = int(port) if port.isdigit() else (443 if tunnel else 80)
        named = {(host, number)} | ({(host, 0)} if number in (80, 443) else set())
        if not named & self._allowed:
            return None
        if tunnel:
            return (host, number), b""
        # One request for each connection: a later one on it could name another host.
        lines = [
            b
            for b in head[asked.end() :].split(b"\r\n")
            if not b.lower().startswith((b"proxy-", b"connection:"))
        ]
        first = b"%s %s %s\r\nConnection: close\r\n" % (
            asked["method"],
            path.encode("latin-1"),
            asked["version"],
        )
        return (host, number), first + b"\r\n".join(lines)


def _relay(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes both ways until either side ends."""
    peers = {one: other, other: one}
    while ready := select.select([one, other], [], [], _IDLE_S)[0]:
        for source in ready:
            if not (piece := source.recv(_CHUNK)):
                return
            peers[source].sendall(piece)
