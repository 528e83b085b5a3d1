"""Calls of a model's tools: their inputs, validated, and their results as the endpoint takes them.

A wrong input becomes an error naming the field. A result is one JSON object on one line, followed by raw text if there
is any (docs/reference/tools.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lopen.core.escape import INVISIBLE
from lopen.models.messages import Json, ToolUse

Text = Annotated[str, StringConstraints(min_length=1)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class Input(BaseModel):
    """No field but the listed ones; no silent conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ReadFile(Input):
    path: Path
    offset: Annotated[int, Field(ge=1, description="first line, from 1")] | None = None
    limit: Annotated[int, Field(ge=1, description="lines")] | None = None


class ListFiles(Input):
    path: Path | None = None
    glob: Text | None = None


class SearchFiles(Input):
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    path: Path | None = None
    glob: Text | None = None


def explained(error: ValidationError) -> tuple[str, str]:
    """Return the invalid fields with the expected values on one line, and a hint."""
    described = []
    for problem in error.errors(include_url=False, include_context=False)[:8]:
        field = ".".join(str(p) for p in problem["loc"]) or "input"
        described.append(f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    return "; ".join(described), "correct the named fields and call again"


def result_text(fields: Mapping[str, Any], raw: str | None) -> str:
    """Return a result as the model reads it: its fields on one line, then `raw` without JSON escapes."""
    line = json.dumps(fields, ensure_ascii=False, default=str)
    line = INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], line)
    return line if raw is None else f"{line}\n{raw}"


def result_block(use: ToolUse, text: str, *, ok: bool) -> Json:
    """Return the answer to a tool call as the endpoint wants it."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": use.id, "content": text}
    return block if ok else block | {"is_error": True}
