"""Evidence and answers that the oracle's tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from lopen.judge.evidence import Assignment, ChangedFile, Evidence, JudgedChange
from lopen.judge.submission import TOOL
from lopen.models.messages import Json, ModelError, Request, Response, StopReason, ToolSpec, ToolUse, Usage
from lopen.store.audit import VerifyResult

TESTS_PASSED = VerifyResult("verify_tests", "pytest -q", True, 0, "3 passed in 0.01s", "tree-1")
TESTS_FAILED = replace(TESTS_PASSED, passed=False, exit_code=1, output="E assert 3 == 4\n1 failed in 0.01s")

EVIDENCE = Evidence(
    Assignment(
        scope="task",
        subject="T-1",
        module="money",
        description="Add two amounts",
        sections=(("Behaviour > Rounding", "Amounts are rounded half even."),),
        criteria=(("AC-1", "add(2, 2) gives 4"), ("AC-2", "cents are kept")),
    ),
    JudgedChange(
        base_tree="tree-0",
        tree="tree-1",
        diff="diff --git a/money.py b/money.py\n--- a/money.py\n+++ b/money.py\n@@ -0,0 +1 @@\n+def add(a, b): return a + b\n",
        files=(ChangedFile("money.py", 34),),
    ),
    results=(TESTS_PASSED,),
    findings=(),
)


def changed(evidence: Evidence = EVIDENCE, **given: Any) -> Evidence:
    """Return the evidence with other fields, of its own or of the values in it."""
    for part in ("work", "change", "earlier"):
        value = getattr(evidence, part)
        own = {f.name: given.pop(f.name) for f in fields(value) if f.name in given and f.name != "findings"}
        evidence = replace(evidence, **{part: replace(value, **own)})
    return replace(evidence, **given)


PASSED: dict[str, Any] = {"passed": True, "confidence": "high", "summary": "It adds.", "findings": []}
FAILED: dict[str, Any] = {
    "passed": False,
    "confidence": "high",
    "summary": "Cents are lost.",
    "findings": [
        {"severity": "error", "message": "cents are lost", "path": "money.py", "line": 1, "criterion": "AC-2"}
    ],
}


def answer(*inputs: dict[str, Any] | None, name: str = TOOL, stop: StopReason = "tool_use") -> Response:
    """A response with one call of `name` for each of `inputs`; None stands for an input that is not JSON."""
    uses = [ToolUse(f"u{i}", name, value, "" if value else "not JSON") for i, value in enumerate(inputs)]
    return Response("m", "claude-haiku-5-5", [], uses, stop, Usage(1_000, 50))


def reading(*calls: tuple[str, dict[str, Any]]) -> Response:
    """A response that reads with the tools."""
    uses = [ToolUse(f"r{i}", name, given) for i, (name, given) in enumerate(calls)]
    blocks: list[Json] = [
        {"type": "tool_use", "id": use.id, "name": use.name, "input": use.input} for use in uses
    ]
    return Response("m", "claude-haiku-5-5", blocks, uses, "tool_use", Usage(1_000, 50))


class Files:
    """The reading tools over a few texts, by path."""

    specs = (ToolSpec("read_file", "A file", {"type": "object"}),)

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.read: list[str] = []

    def answer(self, use: ToolUse) -> Json:
        path = str((use.input or {}).get("path"))
        self.read.append(path)
        return {"type": "tool_result", "tool_use_id": use.id, "content": self.texts.get(path, "no such file")}


class Endpoint:
    """Answers in order, and keeps what it was asked."""

    def __init__(self, *answers: Response | ModelError) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        return answer

    @property
    def texts(self) -> Sequence[str]:
        """The text of each request's message."""
        return ["\n".join(block["text"] for block in r.messages[0]["content"]) for r in self.requests]
