"""The OpenAPI description: what every route may answer beside its own response."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lopen.server.problems import MEDIA_TYPE, ProblemDetails

REFERENCE = {"$ref": "#/components/schemas/ProblemDetails"}
ALWAYS = {
    "400": "The request is not HTTP, or its body is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from another origin.",
    "404": "There is nothing of that name.",
    "408": "The body took too long.",
    "413": "The body is too large.",
    "421": "The server does not answer to that host name.",
    "422": "A parameter or a field is not valid.",
    "503": "The state cannot be read, or there are too many connections.",
}
ACTING = {"409": "The present state does not allow it, or a process works on the session."}
LIMITED = {"429": "Too many requests of this kind; `Retry-After` says when it is possible again."}
UNCHANGED = {"description": "Unchanged since the answer with the `ETag` that `If-None-Match` names."}


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
        for method, operation in methods.items():
            _complete(operation, method, path)
    app.openapi_schema = found
    return found


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    """Add the responses that the gate and the error handlers give."""
    responses, streams = operation["responses"], path.endswith("/events")
    statuses = ALWAYS | ACTING | (LIMITED if path.endswith("/extend") else {})
    for status, description in statuses.items():
        content = {MEDIA_TYPE: {"schema": REFERENCE}}
        responses[status] = {"description": description, "content": content}
    if method == "get" and not streams:
        tag = {"description": "Of this answer.", "schema": {"type": "string"}}
        responses["200"].setdefault("headers", {})["ETag"] = tag
        responses["304"] = UNCHANGED
        condition = {
            "name": "If-None-Match",
            "in": "header",
            "schema": {"type": "string"},
        }
        operation.setdefault("parameters", []).append(condition)
    if streams:
        responses["200"]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
