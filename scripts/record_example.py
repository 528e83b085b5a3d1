"""Write the bundled example's recording: `python -m scripts.record_example` in the repository's root.

Plays the answers of `example_answers` through a Messages endpoint on loopback, with recording on, and runs lopen
against it as a person would. Times and token counts differ a little from machine to machine; a recording that
differs in nothing else is left as it is.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lopen.application.command_context import CommandContext, RunOptions
from lopen.application.demo_project import as_demo, prepare
from lopen.application.driving import drive_module
from lopen.application.workplaces import recording_path
from lopen.core.errors import ExitCode
from lopen.example import MODULE, RECORDING
from lopen.models.messages import Usage
from lopen.models.recording import Recording, load, save
from scripts.example_answers import TURNS, VERDICTS
from tests.fake_api import Answer, Message, MessagesEndpoint, Status

CREATED = "2026-03-02T09:00:00+00:00"


class Author:
    """Answers requests in the order of the script: the oracle's from `VERDICTS`, all others from `TURNS`."""

    def __init__(self) -> None:
        self._turns, self._verdicts = list(TURNS), list(VERDICTS)
        self._numbers = itertools.count(1)

    def __call__(self, body: dict[str, Any]) -> Answer:
        oracle = any(tool["name"] == "submit_verdict" for tool in body.get("tools", ()))
        if not (self._verdicts if oracle else self._turns):
            return Status(400, "the script has no answer left")
        if oracle:
            return Message([self._call("submit_verdict", self._verdicts.pop(0))], "tool_use")
        turn = self._turns.pop(0)
        words = [{"type": "text", "text": turn.say}] if turn.say else []
        return Message([*words, *(self._call(*call) for call in turn.calls)], "tool_use")

    @property
    def left(self) -> int:
        """Answers that were not asked for."""
        return len(self._turns) + len(self._verdicts)

    def _call(self, tool: str, given: Any) -> dict[str, Any]:
        return {
            "type": "tool_use",
            "id": f"toolu_{next(self._numbers):04}",
            "name": tool,
            "input": dict(given),
        }


def record(folder: Path, sandbox: str = "none") -> Recording:
    """Build the example in the empty `folder` against the script, and give back what was recorded.

    Points this process's environment at the script's endpoint.

    Raises `RuntimeError` where the run does not complete, or leaves answers over.
    """
    author = Author()
    context = as_demo(CommandContext(folder))
    prepare(context)
    with MessagesEndpoint(author) as endpoint:
        os.environ |= {"ANTHROPIC_BASE_URL": endpoint.url, "ANTHROPIC_API_KEY": "unused"}
        code = drive_module(context, MODULE, RunOptions(sandbox=sandbox))
    if code is not ExitCode.OK or author.left:
        raise RuntimeError(
            f"the run ended with exit code {code}, and {author.left} answers were not asked for"
        )
    (path,) = recording_path(folder, "x").parent.glob("*.gz")
    return replace(load(path), created=CREATED)


def without_counts(recording: Recording) -> Recording:
    """The recording with everything taken out that differs from machine to machine."""
    return replace(recording, exchanges=tuple(_uncounted(recording)))


def _uncounted(recording: Recording) -> Iterator[Any]:
    for exchange in recording.exchanges:
        # The judge is shown how many mutants there was time for.
        opening = "" if exchange.purpose == "oracle" else exchange.opening
        yield replace(exchange, opening=opening, response=replace(exchange.response, usage=Usage()))


def main() -> int:
    """Record, and replace the bundled recording where it says something else."""
    with tempfile.TemporaryDirectory(prefix="lopen-record-") as folder:
        new = record(Path(folder))
    if RECORDING.exists() and without_counts(load(RECORDING)) == without_counts(new):
        sys.stdout.write(f"{RECORDING} says the same already\n")
        return 0
    save(RECORDING, new)
    sys.stdout.write(f"wrote {RECORDING}: {len(new.exchanges)} exchanges, {RECORDING.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
