"""The network of a command that installs things: the outside without the machine's loopback."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator

import pytest

from lopen.sandbox.bubblewrap import Bubblewrap
from lopen.sandbox.command import Command, InstallNetwork
from lopen.sandbox.install_network import CONNECTORS, find_connector
from tests.needs import require_sandbox
from tests.sandbox.world import World


class Index(http.server.BaseHTTPRequestHandler):
    """Answers every request with the path that it was asked for."""

    def do_GET(self) -> None:
        body = f"index {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent."""


@pytest.fixture
def index() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def installing(world: World, kind: InstallNetwork, indexes: tuple[str, ...] = ()) -> Bubblewrap:
    require_sandbox("bwrap")
    sandbox = Bubblewrap(world.root, environ=world.environ, indexes=indexes)
    if kind in CONNECTORS and not (
        find_connector(kind, world.environ, world.root) and sandbox._connects(kind)
    ):
        pytest.skip(f"{kind} does not work here")
    sandbox._installing = kind
    return sandbox


FETCH = """{python} 'import urllib.request as u
for url in {urls}:
    try: print(u.urlopen(url, timeout=5).read().decode())
    except OSError as error: print(error)'"""


def test_the_proxy_reaches_the_named_indexes_alone(world: World, index: str) -> None:
    other = world.listeners["tcp"].name[1]
    calls = world.listeners["tcp"].count
    urls = [f"http://{index}/simple/", f"http://127.0.0.1:{other}/", f"https://127.0.0.1:{other}/"]
    line = FETCH.format(python=world.words()["python"], urls=urls).replace("['", '["').replace("']", '"]')
    line = line.replace("', '", '", "')

    ran = installing(world, "proxy", (index,)).run(Command(line, world.root, installs=True))

    answers = ran.output.splitlines()
    assert answers[0] == "index /simple/", ran.output
    assert "Not in sandbox.package_indexes" in answers[1]
    assert "403" in answers[2]
    assert world.listeners["tcp"].count == calls


def test_a_tunnel_through_the_proxy_passes_bytes_both_ways(world: World, index: str) -> None:
    code = (
        "import os, socket, urllib.parse as p\n"
        'a = p.urlsplit(os.environ["HTTPS_PROXY"]); s = socket.create_connection((a.hostname, a.port))\n'
        f's.sendall(b"CONNECT {index} HTTP/1.1\\r\\n\\r\\n"); print(s.recv(99))\n'
        's.sendall(b"GET /x HTTP/1.0\\r\\n\\r\\n")\n'
        'data = b""\n'
        "while piece := s.recv(99): data += piece\n"
        'print(data.endswith(b"index /x"))'
    )
    line = f"{world.words()['python']} '{code}'"

    ran = installing(world, "proxy", (index,)).run(Command(line, world.root, installs=True))

    assert ran.output == "b'HTTP/1.1 200 Connected\\r\\n\\r\\n'\nTrue\n"


@pytest.mark.parametrize("kind", [*CONNECTORS, "proxy"])
def test_nothing_on_the_machine_s_loopback_is_reached(world: World, kind: InstallNetwork) -> None:
    calls = {name: listener.count for name, listener in world.listeners.items()}
    port = world.listeners["tcp"].name[1]
    abstract = world.words()["abstract"]
    code = (
        "import socket\n"
        'hosts = ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0", "10.0.2.2", "169.254.2.1"]\n'
        'hosts += [f"{int(w[6:8], 16)}.{int(w[4:6], 16)}.{int(w[2:4], 16)}.{int(w[:2], 16)}"\n'
        '          for w in (line.split()[2] for line in open("/proc/net/route").readlines()[1:])]\n'
        "for host in hosts:\n"
        f"    try: socket.create_connection((host, {port}), 0.5)\n"
        "    except OSError: pass\n"
        f'try: socket.socket(socket.AF_UNIX).connect("\\0{abstract}")\n'
        "except OSError: pass\n"
        'print("tried")'
    )

    ran = installing(world, kind).run(
        Command(f"{world.words()['python']} '{code}'", world.root, installs=True)
    )

    assert ran.output == "tried\n"
    assert {name: listener.count for name, listener in world.listeners.items()} == calls


def test_what_works_here_is_chosen_by_trying(world: World) -> None:
    require_sandbox("bwrap")
    sandbox = Bubblewrap(world.root, environ=world.environ, indexes=("pypi.org",))
    assert sandbox.install_network in (*CONNECTORS, "proxy")
    descriptors = len(os.listdir("/proc/self/fd"))
    assert sandbox.run(Command("true", world.root, installs=True)).exit_code == 0
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert world.sandbox("landlock").install_network == "host"
