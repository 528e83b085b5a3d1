"""The server: the routes behind the access gate with their OpenAPI description, its socket, its token, and a graceful end."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lopen import __version__
from lopen.application.servers import FIRST_LINK_SECONDS, announced, new_link, server_token
from lopen.core.errors import LopenError
from lopen.server import budget_routes, event_stream, metrics, module_routes, session_routes
from lopen.server.access import AccessGate, AccessKeys
from lopen.server.dashboard import dashboard_routes
from lopen.server.event_stream import EventFeed
from lopen.server.problems import MEDIA_TYPE, ProblemDetails, add_problems
from lopen.server.served import ServedProjects

DESCRIPTION = "What lopen builds, and what it waits for. See docs/reference/server.md."
LARGEST_BODY = 64 * 1024


def create_app(
    projects: ServedProjects, keys: AccessKeys, *, names: frozenset[str] = frozenset(), secure: bool = False
) -> AccessGate:
    """Return the ASGI application. `names`: host names that it answers to; `secure`: it speaks TLS."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for project in projects:
            await project.close()

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
    )
    feeds = {project.name: EventFeed(project) for project in projects}
    app.state.projects = projects
    app.state.feeds = feeds
    app.state.metrics = metrics.ProjectMetrics(projects)
    app.state.extension_rate = budget_routes.ExtensionRate()
    app.openapi = partial(describe, app)  # type: ignore[method-assign]  # the documented way to extend it
    add_problems(app)
    for routes in (session_routes, module_routes, budget_routes, event_stream, metrics):
        app.include_router(routes.routes)
    app.include_router(dashboard_routes(projects))

    def close() -> None:
        for feed in feeds.values():
            feed.close()

    return AccessGate(app, keys=keys, names=names, secure=secure, close=close)


REFERENCE = {"$ref": "#/components/schemas/ProblemDetails"}
ALWAYS = {
    "400": "The request is not HTTP, or its body is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from another origin.",
    "404": "There is nothing of that name.",
    "413": "The body is too large.",
    "421": "The server does not answer to that host name.",
    "422": "A parameter or a field is not valid.",
    "503": "The state cannot be read, or there are too many connections.",
}
ACTING = {"409": "The present state does not allow it, or a process works on the session."}
LIMITED = {"429": "Too many requests of this kind; `Retry-After` says when it is possible again."}


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of `app`, made once."""
    if app.openapi_schema:
        return app.openapi_schema
    found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = found["components"]["schemas"]
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    found["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token of `servers/token`."}
    }
    found["security"] = [{"token": []}]
    for path, methods in found["paths"].items():
        for operation in methods.values():
            _complete(operation, path)
    app.openapi_schema = found
    return found


def _complete(operation: dict[str, Any], path: str) -> None:
    """Add the responses that the gate and the error handlers give."""
    responses, streams = operation["responses"], path.endswith("/events")
    statuses = ALWAYS | ACTING | (LIMITED if path.endswith("/extend") else {})
    for status, description in statuses.items():
        content = {MEDIA_TYPE: {"schema": REFERENCE}}
        responses[status] = {"description": description, "content": content}
    if streams:
        responses["200"]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}


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
