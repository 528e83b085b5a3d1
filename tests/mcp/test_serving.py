"""`lopen mcp` as a client of the official SDK sees it, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

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
    _, (started,) = asked(project, ("run", {"module": "calc"}))
    assert started.splitlines()[0] == "exit code 0", started
    assert project.lopen("attach").code == 0
    _, (status, shown) = asked(project, ("status", {"module": "calc"}), ("show", {"name": "calc-t1"}))
    assert '"status": "complete"' in status
    assert "return a + b" in shown
    assert project.holds("calc.py")


def test_an_argument_that_a_tool_does_not_have_is_an_error(make_project: MakeProject) -> None:
    _, (said,) = asked(make_project(), ("run", {"module": "calc", "prompt": "x", "model": "y"}))
    assert "run has no argument model, prompt; it takes module" in said
