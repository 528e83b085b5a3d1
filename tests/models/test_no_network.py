"""The guard that keeps tests on this machine."""

from __future__ import annotations

import socket

import pytest

from tests.no_network import NetworkForbidden, forbidden_network


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_another_machine_cannot_be_reached(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as connection, pytest.raises(NetworkForbidden):
        connection.connect((host, 443))


def test_no_name_server_is_asked() -> None:
    with pytest.raises(NetworkForbidden):
        socket.getaddrinfo("api.anthropic.com", 443)


def test_loopback_can_be_reached() -> None:
    with forbidden_network(), socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()[:2]).close()
