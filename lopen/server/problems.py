"""Errors as problem details (RFC 9457), the same for routes, validation and the gate in front of them."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from lopen.core.errors import LopenError, StorageError, StoreUnreachable
from lopen.limits.admin_actions import NoSuch
from lopen.server.budget_routes import TooManyExtensions
from lopen.server.dashboard.markup import Place, el, frame, link, prose
from lopen.server.served import NoSuchProject
from lopen.specification.modules import MissingSource
from lopen.store.folder import Locked
from lopen.store.sessions import NoSuchSession

MEDIA_TYPE = "application/problem+json"
# The first class that fits counts. Other failures of a command are conflicts with the present state.
STATUS: tuple[tuple[type[LopenError], int], ...] = (
    (TooManyExtensions, 429),
    (NoSuch, 404),
    (NoSuchSession, 404),
    (NoSuchProject, 404),
    (MissingSource, 404),
    (Locked, 409),
    (StoreUnreachable, 503),
    (StorageError, 503),
    (LopenError, 409),
)


# The refusals of a route or of the gate in front of it: status → reason, for the description of the API.
REASONS = {
    400: "The request is not HTTP, or its body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The request comes from another origin.",
    404: "There is nothing of that name.",
    409: "The present state does not allow it, or a process works on the session.",
    413: "The body is too large.",
    421: "The server does not answer to that host name.",
    422: "A parameter or a field is not valid.",
    429: "Budgets were extended too often; `Retry-After` says when it is possible again.",
    503: "The state cannot be read, or there are too many connections.",
}


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field("about:blank", description="The kind of problem; `about:blank`: the status says it.")
    title: str = Field(description="The status in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field("", description="The cause.", examples=["there is no budget module:calc"])
    hint: str = Field("", description="The next action.", examples=["lopen budget show lists them"])
    errors: list[dict[str, Any]] = Field(
        default_factory=list, description="The invalid fields of a request: `field` and `message`."
    )


DESCRIBED: dict[int | str, dict[str, Any]] = {
    status: {
        "description": reason,
        "content": {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}},
    }
    for status, reason in REASONS.items()
}


def problem(
    status: int,
    detail: str,
    *,
    hint: str = "",
    headers: dict[str, str] | None = None,
    **extra: Any,
) -> Response:
    """Return a problem as a response."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    body |= {"hint": hint} if hint else {}
    return Response(
        json.dumps(body | extra, ensure_ascii=False),
        status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


async def _failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, LopenError)
    status = next(code for kind, code in STATUS if isinstance(error, kind))
    if "text/html" in request.headers.get("accept", ""):
        projects = request.app.state.projects
        place = Place(projects.named(None).name, projects.several)
        body = (el("h1", prose(error.message)), el("p", prose(error.hint)), link("Overview", place.href()))
        return HTMLResponse(frame(place, "not shown", "Overview", *body), status)
    again = {"retry-after": str(error.wait_s)} if isinstance(error, TooManyExtensions) else None
    return problem(status, error.message, hint=error.hint, headers=again)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"field": ".".join(str(part) for part in found["loc"]), "message": found["msg"]}
        for found in error.errors()
    ]
    detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors)
    return problem(422, detail, errors=errors)


async def _bug(request: Request, error: Exception) -> Response:
    return problem(500, "lopen failed; the server's output has the traceback")


def add_problems(app: FastAPI) -> None:
    """Answer every error of `app` with problem details."""
    app.add_exception_handler(LopenError, _failure)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _bug)
