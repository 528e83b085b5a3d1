"""Running the server: its socket, its token, and a graceful end."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from lopen.application.servers import FIRST_LINK_SECONDS, announced, new_link, server_token
from lopen.core.errors import LopenError
from lopen.server.access import AccessKeys
from lopen.server.served import ServedProjects
from lopen.server.web_application import create_app

GRACE_S = 3
MOST_CONNECTIONS = 500


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server listens."""

    host: str
    port: int
    cert: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()  # host names that it also answers to

    @property
    def secure(self) -> bool:
        """True if the server speaks TLS."""
        return self.cert is not None


def is_loopback(host: str) -> bool:
    """Return True for an address that only this machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket; raises `LopenError` if the address is taken or not of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(
            family, kind, protocol
        )  # without the protocol asyncio leaves Nagle's delay of 40 ms on
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise LopenError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint="for a free port: lopen serve --port 0",
        ) from error
    return found


class _Server(uvicorn.Server):
    """A server that ends its streams first, and whose end by a signal is not a failure."""

    def __init__(
        self, config: uvicorn.Config, ending: Callable[[], None], started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ending = ending
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()


def serve(
    roots: Sequence[Path],
    address: ServerAddress,
    tell: Callable[[str, str], None],
    *,
    new_token: bool = False,
) -> None:
    """Serve the projects until a signal comes; `tell` gets the address and a link that opens it once."""
    token = server_token(renew=new_token)
    with bound_socket(address.host, address.port) as listening:
        port = listening.getsockname()[1]
        host = f"[{address.host}]" if ":" in address.host else address.host
        url = f"{'https' if address.secure else 'http'}://{host}:{port}"
        projects = ServedProjects(roots)
        names = frozenset({address.host, *address.names})
        application = create_app(projects, AccessKeys(token, port), names=names, secure=address.secure)
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            http="h11",
            ws="none",
            lifespan="on",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
            ssl_certfile=address.cert,
            ssl_keyfile=address.key,
        )
        try:
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise LopenError(
                f"cannot use {address.cert} and {address.key}: {error.strerror or error}",
                hint="name a certificate and its private key, both as PEM",
            ) from error
        link = new_link(url, token, FIRST_LINK_SECONDS)
        server = _Server(config, application.close, lambda: tell(url, link))
        with announced(url, tuple(project.root for project in projects)):
            asyncio.run(server.serve([listening]))
