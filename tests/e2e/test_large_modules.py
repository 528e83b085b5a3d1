"""Modules far larger than one prompt complete, judged by an oracle that passes only what it was shown or has read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import opening as first_text
from tests.endpoint import tools, verdict
from tests.fake_api import Message
from tests.project import plan, verified

TASKS, FUNCTIONS = 8, 60
Body = Mapping[str, Any]

_SHOWN = re.compile(r"return (\w+)_end")
_ACCEPTED = re.compile(r'^calc-t(\d+) "Part \d+": passed \(high\)', re.MULTILINE)
_LISTED = re.compile(r'^"(part\d+\.py)": (\d+) bytes$', re.MULTILINE)


def name(part: int, function: int) -> str:
    return f"part{part}_f{function}"


def source(part: int, size: int) -> str:
    """Sixty functions of `size` bytes in all. A reader who sees the last line of one saw it whole."""
    each = size // FUNCTIONS
    functions = []
    for number in range(FUNCTIONS):
        head = f"def {name(part, number)}():\n    {name(part, number)}_end = {number}\n"
        last = f"    return {name(part, number)}_end\n\n\n"
        lines = (each - len(head) - len(last)) // 50
        functions.append(head + f"    _ = {'x' * 43!r}\n" * lines + last)
    return "".join(functions)


def build(part: int, size: int) -> Message:
    test = (
        f"import unittest\n\nimport part{part}\n\n\nclass TestPart{part}(unittest.TestCase):\n"
        f"    def test_each(self):\n        for n in range({FUNCTIONS}):\n"
        f"            self.assertEqual(getattr(part{part}, f'part{part}_f{{n}}')(), n)\n"
    )
    files = {f"part{part}.py": source(part, size), f"test_part{part}.py": test}
    writes = [("write_file", {"path": path, "content": content}) for path, content in files.items()]
    return tools(*writes, *verified(f"calc-t{part}"))


class StrictOracle:
    """Reads what is not shown, and passes where it saw every function that the work was to bring.

    With `builds_on_verdicts` a task that the evidence calls accepted needs no second look.
    """

    def __init__(self, *, builds_on_verdicts: bool) -> None:
        self.builds_on_verdicts = builds_on_verdicts
        self.judged: list[tuple[str, int]] = []  # scope and turns
        self.confidences: list[str] = []

    def __call__(self, body: Body) -> Message:
        blocks = [block for message in body["messages"] for block in message["content"]]
        shown = "\n".join(text_of(block) for block in blocks)
        opening = first_text(body)
        module = "Judge the whole module" in opening
        parts = range(1, TASKS + 1) if module else [int(re.search(r"Task Part (\d+) ", opening)[1])]  # type: ignore[index]  # it is there
        accepted = {int(n) for n in _ACCEPTED.findall(opening)} if self.builds_on_verdicts else set()
        due = {name(p, n) for p in parts if p not in accepted for n in range(FUNCTIONS)}
        missing = due - set(_SHOWN.findall(shown))
        calls = [call for path in sorted(_LISTED.findall(opening)) for call in self._reads(path, blocks)]
        if missing and calls and "tool_choice" not in body:
            return tools(*calls)
        self.judged.append(("module" if module else "task", len(body["messages"]) // 2 + 1))
        self.confidences.append("low" if missing else "high")
        return verdict(confidence=self.confidences[-1])

    @staticmethod
    def _reads(listed: tuple[str, str], blocks: Sequence[Body]) -> list[tuple[str, dict[str, Any]]]:
        """The calls that read a file whole, unless it was read already."""
        path, size = listed
        if any(block.get("name") == "read_file" and block["input"]["path"] == path for block in blocks):
            return []
        lines = int(size) // 50 + 4 * FUNCTIONS
        return [("read_file", {"path": path, "offset": at, "limit": 1_000}) for at in range(1, lines, 1_000)]


def text_of(block: Body) -> str:
    content = block.get("text") or block.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content)


@pytest.mark.parametrize(("size", "builds_on_verdicts"), [(400_000, True), (2_000_000, False)], ids=str)
def test_a_large_module_completes_in_as_many_commits_as_tasks(
    make_project: MakeProject, size: int, builds_on_verdicts: bool
) -> None:
    oracle = StrictOracle(builds_on_verdicts=builds_on_verdicts)
    script = [plan(tasks=[f"Part {n}" for n in range(1, TASKS + 1)])]
    script += [build(n, size // TASKS) for n in range(1, TASKS + 1)]
    limits = {"LOPEN_BUDGET__SESSION_TOKENS": "0", "LOPEN_BUDGET__TASK_TOKENS": "0"}
    project = make_project(script, oracle=oracle, **limits)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert set(oracle.confidences) == {"high"}
    assert [scope for scope, _ in oracle.judged] == ["task"] * TASKS + ["module"]
    assert len([s for s in project.subjects() if s.startswith("feat(calc): complete Part")]) == TASKS
    assert len(list(ran.named("session_complete"))) == 1
    assert project.endpoint is not None
    assert len(project.endpoint.requests) == 1 + TASKS, "no task was added"
    if builds_on_verdicts:
        assert len(project.endpoint.oracle_requests) == TASKS + 1
