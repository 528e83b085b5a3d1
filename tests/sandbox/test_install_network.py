"""The network of a command that installs things: the outside without the machine's loopback."""

from __future__ import annotations

import os

import pytest

from lopen.sandbox.bubblewrap import Bubblewrap
from lopen.sandbox.command import Command
from tests.needs import require_sandbox
from tests.sandbox.world import World


def installing(world: World) -> Bubblewrap:
    require_sandbox("bwrap")
    sandbox = Bubblewrap(world.root, environ=world.environ)
    if sandbox.install_network == "host":
        pytest.skip("slirp4netns does not work here")
    return sandbox


def test_nothing_on_the_machine_s_loopback_is_reached(world: World) -> None:
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

    ran = installing(world).run(Command(f"{world.words()['python']} '{code}'", world.root, installs=True))

    assert ran.output == "tried\n"
    assert {name: listener.count for name, listener in world.listeners.items()} == calls


def test_no_descriptor_stays_open(world: World) -> None:
    sandbox = installing(world)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert sandbox.run(Command("true", world.root, installs=True)).exit_code == 0
    assert len(os.listdir("/proc/self/fd")) == descriptors
