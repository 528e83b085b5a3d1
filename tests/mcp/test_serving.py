"""`lopen mcp` as a client of the official SDK sees it, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import closing
from typing import Any

from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.e2e.conftest import MakeProject, make_project
from tests.project import Project, build, plan

__all__ = ["make_project"]


async def _asked(
    project: Project, calls: list[tuple[str, dict[str, Any]]]
) -> tuple[dict[str, Any], list[str]]:
    from mcp import Client, StdioServerParameters

    variables = {
        name: value for name, value in project.environment().items() if name in VISIBLE or is_own(name)
    }
    server = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "lopen", "mcp"], env=variables, cwd=project.root
    )
    async with Client(server, read_timeout_seconds=100) as client:
        listed = await client.list_tools()
        answers = [await client.call_tool(name, arguments) for name, arguments in calls]
    hints = {tool.name: tool.annotations and tool.annotations.read_only_hint for tool in listed.tools}
    return hints, ["\n".join(getattr(part, "text", "") for part in answer.content) for answer in answers]


VISIBLE = ("PYTHONPATH", "HOME", "PATH")


def is_own(name: str) -> bool:
    return name.startswith(("LOPEN_", "ANTHROPIC_", "XDG_"))


def asked(project: Project, *calls: tuple[str, dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Call tools of `lopen mcp`; return the read-only hints by tool, and the texts of the answers."""
    return asyncio.run(_asked(project, list(calls)))


def test_another_agent_follows_a_build_and_opens_no_gate(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    project.write("lopen.py", "raise SystemExit('the project has run its own code')\n")

    hints, (checked, gated, option) = asked(
        project, ("check", {"module": "calc"}), ("run", {"module": "calc"}), ("show", {"name": "--help"})
    )

    outside = [("check", {"module": path}) for path in ("/etc/passwd", "../x", "a\0")]
    _, refused = asked(project, *outside)
    assert ["outside the project" in text for text in refused] == [True, True, False]

    (project.root / "lopen.py").unlink()
    assert hints == {"status": True, "check": True, "show": True, "run": False}
    assert checked.startswith("exit code 0\n")
    assert json.loads(checked.splitlines()[-1])["problems"] == 0
    assert gated.startswith("exit code 3\n")
    assert "lopen approve calc" in gated
    assert project.requests == []
    assert "Usage" not in option

    assert project.lopen("approve", "calc", "--yes").code == 0
    assert project.lopen("config", "set", "budget.max_cost_usd", "2").code == 0
    limits = [("run", {"module": "calc", "max_cost_usd": usd}) for usd in (0, 1e308, 5)]
    _, (unlimited, absurd, started) = asked(project, *limits)
    assert [text.splitlines()[0] for text in (unlimited, absurd)] == ["exit code 2"] * 2
    assert "must be above 0 and at most" in absurd
    first = started.splitlines()
    assert first[0] == "exit code 0", started
    assert project.lopen("attach").code == 0
    _, (status, shown) = asked(project, ("status", {"module": "calc"}), ("show", {"name": "calc-t1"}))
    assert '"status": "complete"' in status
    with closing(Database(project.root / ".lopen/state.db")) as database:
        session = SessionStore(database).latest(module="calc")
    assert session is not None
    assert session.limits.max_cost_usd == 2
    assert "return a + b" in shown
    assert project.holds("calc.py")


def test_what_a_call_holds_that_is_not_understood_is_said(make_project: MakeProject) -> None:
    project = make_project()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run", {"module": "calc", "prompt": "x", "model": "y"}),
        ("show", {"name": "a\ud800"}),
        ("show", {"name": "\U0001f600 \\ud800"}),
    ]
    messages: list[dict[str, Any]] = [
        {"method": "initialize", "id": 0, "params": INITIAL},
        {"method": "notifications/initialized"},
        *(
            {"method": "tools/call", "id": i, "params": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls, 1)
        ),
    ]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "lopen", "mcp"],
        env=project.environment(),
        cwd=project.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in messages:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(len(calls) + 1)]
        server.stdin.close()
        assert server.wait(60) == 0
    results = {each["id"]: each["result"] for each in answers}
    texts = [results[i]["content"][0]["text"] for i in range(1, 4)]
    assert "run has no argument model, prompt; it takes module, max_cost_usd" in texts[0]
    assert results[1]["isError"]
    assert "a\ufffd" in texts[1]
    assert "\U0001f600 \\ud800" in texts[2]


INITIAL = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
