"""A project with hooks, and the events that Claude Code would send there."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lopen.claude_hooks.entry import main
from lopen.limits.budget import BudgetState
from lopen.limits.circuits import CircuitState
from lopen.limits.sqlite_store import SqliteStore
from lopen.store.database import Database

ROOT = Path(__file__).parents[2]
UNHURRIED = {"LOPEN_HOOKS__TIMEOUT_S": "30"}  # a busy machine ends no hook; tests of the limit set their own
COMMAND = [sys.executable, "-I", "-m", "lopen", "hook"]


@dataclass(frozen=True)
class Answered:
    """How the process ended."""

    exit_code: int
    out: str
    errors: str

    @property
    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out) if self.out else {}
        return found

    @property
    def context(self) -> str:
        """What it gives into the context, in either shape."""
        holder = self.fields.get("hookSpecificOutput", self.fields)
        return str(holder.get("additionalContext", ""))

    @property
    def told(self) -> str:
        """What the person is shown."""
        return str(self.fields.get("systemMessage", ""))

    @property
    def stopped(self) -> str:
        """Why the loop ends here."""
        return str(self.fields["stopReason"]) if self.fields.get("continue") is False else ""

    @property
    def reason(self) -> str:
        """Why it is refused."""
        specific = self.fields.get("hookSpecificOutput", {})
        if specific.get("permissionDecision") == "deny":
            return str(specific["permissionDecisionReason"])
        return str(self.fields["reason"]) if self.fields.get("decision") == "block" else self.stopped

    @property
    def code(self) -> int:
        """2 where the event is refused, in either shape."""
        return 2 if self.reason else self.exit_code

    @property
    def err(self) -> str:
        """Everything that it says."""
        return "\n".join(filter(None, (self.reason, self.context, self.told, self.errors)))


class HookedProject:
    """A project with a `.lopen` folder, and a Claude Code session in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root.parent / "home"
        self.home.mkdir(exist_ok=True)
        (root / ".lopen").mkdir(parents=True, exist_ok=True)
        self.transcript = root.parent / "transcript.jsonl"
        self.environ: dict[str, str] = {}
        self.calls = 0

    def env(self) -> dict[str, str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("LOPEN_", "CLAUDE", "XDG_", "TOKEN_", "CIRCUIT_"))
        }
        own = {"XDG_DATA_HOME": os.environ["XDG_DATA_HOME"]}  # the same person's as the test's
        return kept | own | {"PYTHONPATH": str(ROOT), "HOME": str(self.home)} | UNHURRIED | self.environ

    def raw(self, event: str, stdin: bytes) -> Answered:
        """Answer the event as `lopen hook` does, but here: starting a process for each event takes most of a test's time."""
        environ, folder = dict(os.environ), os.getcwd()
        out, errors = io.StringIO(), io.StringIO()
        _surround(self.env(), str(self.root))
        try:
            code = main([event], io.BytesIO(stdin), out, errors)
        finally:
            _surround(environ, folder)
        return Answered(code, out.getvalue(), errors.getvalue())

    def start(self, tool: str, arguments: Mapping[str, Any]) -> Answered:
        """Announce a call to a process of its own, as Claude Code does."""
        self.calls += 1
        name = f"call{self.calls}"
        event = {"session_id": "abc", "tool_name": tool, "tool_input": arguments, "tool_use_id": name}
        done = subprocess.run(
            [*COMMAND, "pre-tool-use"],
            input=json.dumps(event),
            capture_output=True,
            text=True,
            cwd=self.root,
            env=self.env(),
            timeout=120,
            check=False,
        )
        return Answered(done.returncode, done.stdout, done.stderr)

    def send(self, event: str, session: str = "abc", **fields: Any) -> Answered:
        return self.raw(event, json.dumps({"session_id": session, "cwd": str(self.root), **fields}).encode())

    def before(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> Answered:
        self.calls += 1
        fields = {"tool_name": tool, "tool_input": arguments, "tool_use_id": f"call{self.calls}", **more}
        return self.send("pre-tool-use", **fields)

    def bash(self, command: str, **more: Any) -> Answered:
        return self.before("Bash", {"command": command}, **more)

    def store(self) -> SqliteStore:
        return SqliteStore(Database(self.root / ".lopen" / "state.db"))

    def budget(self, session: str = "abc") -> BudgetState:
        return next(b for b in self.store().budgets() if b.budget_id == f"session:{session}")

    def circuit(self, session: str = "abc") -> CircuitState:
        return next(c for c in self.store().circuits() if c.circuit_id == f"session:{session}")

    def says(self, *lines: Mapping[str, Any]) -> None:
        """Lines appended to the transcript."""
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def _surround(environ: Mapping[str, str], folder: str) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)


def message(message_id: str, output: int, *, session: str = "abc", **more: Any) -> dict[str, Any]:
    """A transcript line of the model's."""
    usage = {"input_tokens": 100, "output_tokens": output, "cache_read_input_tokens": 1_000}
    body = {"id": message_id, "role": "assistant", "model": "claude-opus-5-5", "usage": usage, "content": []}
    return {"type": "assistant", "sessionId": session, "message": body, **more}
