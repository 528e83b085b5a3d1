"""The server: the routes behind the access gate, their socket, and a graceful end."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from lopen import __version__
from lopen.application.servers import FIRST_LINK_SECONDS, announced, new_link, server_token
from lopen.core.errors import LopenError
from lopen.server import budget_routes, event_stream, metrics, module_routes, page_routes, session_routes
from lopen.server.access import AccessGate, AccessKeys
from lopen.server.problems import DESCRIBED, add_problems
from lopen.server.served import ServedProjects

DESCRIPTION = "What lopen builds, and what it waits for. See docs/reference/server.md."
LARGEST_BODY = 64 * 1024
GRACE_S = 3
MOST_CONNECTIONS = 500


def create_app(
    projects: ServedProjects, keys: AccessKeys, *, names: frozenset[str] = frozenset()
) -> AccessGate:
    """Return the ASGI application. `names`: host names that it answers to."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for project in projects:
            await project.close()

    # The gate checks the token; this only describes it
    token = HTTPBearer(scheme_name="token", description="The token of `servers/token`.", auto_error=False)
    app = FastAPI(
        title="lopen",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        max_body_size=LARGEST_BODY,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        dependencies=[Depends(token)],
        responses=DESCRIBED,
    )
    app.state.projects = projects
    app.state.metrics = metrics.ServerMetrics(projects)
    app.state.extension_rate = budget_routes.ExtensionRate()
    add_problems(app)
    for routes in (session_routes, module_routes, budget_routes, event_stream, metrics, page_routes):
        app.include_router(routes.routes)
    app.mount("/static", page_routes.FILES)
    return AccessGate(app, keys=keys, names=names)


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

    def __init__(self, config: uvicorn.Config, projects: ServedProjects, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._projects = projects
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for project in self._projects:
            project.ending = True
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()


def serve(
    roots: Sequence[Path],
    host: str,
    port: int,
    tell: Callable[[str, str], None],
    *,
    names: Sequence[str] = (),
    new_token: bool = False,
) -> None:
    """Serve the projects until a signal comes; `tell` gets the address and a link that opens it once.

    `names`: host names that the server also answers to. Port 0 takes a free one.
    """
    token = server_token(renew=new_token)
    with bound_socket(host, port) as listening:
        port = listening.getsockname()[1]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        projects = ServedProjects(roots)
        config = uvicorn.Config(
            create_app(projects, AccessKeys(token, port), names=frozenset({host, *names})),
            log_config=None,
            access_log=False,
            http="h11",
            ws="none",
            lifespan="on",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        )
        link = new_link(url, token, FIRST_LINK_SECONDS)
        server = _Server(config, projects, lambda: tell(url, link))
        with announced(url, tuple(project.root for project in projects)):
            asyncio.run(server.serve([listening]))
