"""The result of a tool call: one JSON object on one line, followed by raw text if there is any.

See docs/reference/tools.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lopen.llm.messages import Json, ToolUse
from lopen.storage.audit import Outcome
from lopen.workflow.session import Pause


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the model, and the effect of the call on the iteration.

    `fields` are those besides `ok`; `raw` is text that the model reads without JSON escapes.
    """

    ok: bool
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None
    outcome: Outcome = "ok"
    content_hash: str | None = None  # of what was read or printed
    notice: str = ""  # a guardrail's correction, sent with the answer
    recorded: bool = False  # the step's result is recorded: the iteration ends
    pause: Pause | None = None  # only a person lets the run go on
    false_claim: bool = False  # the call claimed a completion without what it requires

    def text(self) -> str:
        """Return the text for the model."""
        head: dict[str, Any] = {"ok": self.ok} | dict(self.fields)
        if self.notice:
            head["notice"] = self.notice
        line = json.dumps(head, ensure_ascii=False, default=str)
        return line if self.raw is None else f"{line}\n{self.raw}"


def done(*, raw: str | None = None, content_hash: str | None = None, **fields: Any) -> ToolResult:
    """Return the result of a successful call."""
    return ToolResult(True, fields, raw, content_hash=content_hash)


def failed(error: str, hint: str = "", *, outcome: Outcome = "error", **fields: Any) -> ToolResult:
    """Return the result of a failed call: `error` describes the failure, `hint` names the alternative."""
    return ToolResult(False, {"error": error, **({"hint": hint} if hint else {}), **fields}, outcome=outcome)


def tool_result(use: ToolUse, result: ToolResult) -> Json:
    """Return the answer to a tool call as the endpoint wants it."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": use.id, "content": result.text()}
    return block if result.ok else block | {"is_error": True}
