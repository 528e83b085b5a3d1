"""`mcp.servers`: tools of real server processes in a run, with what they return, spoil, and how they fail."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.e2e.conftest import MakeProject, make_project
from tests.endpoint import Message, tools
from tests.project import Project, build, plan

__all__ = ["make_project"]

SERVER = Path(__file__).with_name("weather_server.py")
KEY = "weather-secret-4f8a1c0b9d"
Call = tuple[str, dict[str, Any]]


def configure(tmp_path: Path, *servers: str) -> dict[str, str]:
    """Write the person's own configuration with these servers; return the variables that let lopen find it."""
    folder = tmp_path / "config" / "lopen"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("\n".join(servers), "utf-8")
    (folder / "config.toml").chmod(0o600)
    log = tmp_path / "asked"
    return {
        "XDG_CONFIG_HOME": str(folder.parent),
        "WEATHER_LOG": str(log),
        "WEATHER_KEY": KEY,
        "WEATHER_TOKEN": KEY,
    }


def table(name: str = "weather", *arguments: str, **more: str) -> str:
    """One server's table of the configuration."""
    given = {"command": f'"{sys.executable}"', "args": str([str(SERVER), *arguments]).replace("'", '"')}
    given |= {"env": '["WEATHER_LOG", "WEATHER_KEY"]', **more}
    return f"[mcp.servers.{name}]\n" + "\n".join(f"{key} = {value}" for key, value in given.items())


def offered(request: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in request["tools"] if tool["name"].startswith("mcp__")]


def ended(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True


def test_read_only_tools_work_like_lopen_s_own(make_project: MakeProject, tmp_path: Path) -> None:
    calls: list[Call] = [
        ("mcp__weather__forecast", {"city": "Oslo"}),
        ("mcp__weather__almanac", {}),
        ("mcp__weather__fail", {"how": "gently"}),
        ("mcp__weather__spoil", {"path": "x"}),
    ]
    variables = configure(tmp_path, table(), table("absent", "broken"))
    project = make_project([tools(*calls), plan(), build("calc-t1")], **variables)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    names = [f"mcp__weather__{name}" for name in ("almanac", "fail", "forecast", "station")]
    assert [offered(request) for request in project.requests] == [names] * 3
    schema, foreign = (t["input_schema"] for t in project.requests[0]["tools"] if t["name"] in names[2:])
    assert schema["required"] == ["city"]
    kinds = [{"type": "integer"}, {"type": "string"}, {"type": "null"}]
    assert foreign["properties"]["which"]["anyOf"] == kinds
    assert foreign["properties"]["title"]["pattern"] == "^[a-z]+$"
    sunny, long, failed, unknown = (b["content"] for b in project.requests[1]["messages"][-1]["content"][:4])
    assert sunny.startswith('{"ok": true}\nsunny in Oslo, asked with ')
    assert KEY not in str(project.requests)
    assert f"folder {Path.home()}" in sunny
    assert len(long) < 31_000
    assert "characters left out" in long
    assert '"truncated": true' in long
    assert "no such weather: gently" in failed
    assert "there is no tool" in unknown
    told = [event["message"] for event in ran.named("notice")]
    assert "starting the MCP server weather: it runs outside the sandbox, with your rights" in told
    assert any("the tool either of the MCP server weather is left out" in line for line in told)
    assert any("absent is not used" in line and "there is no weather today" in line for line in told)
    assert any(
        "of the MCP server weather 1 tool is left out: not declared read-only" in line for line in told
    )
    [log] = Path(variables["WEATHER_LOG"]).read_text().splitlines()
    assert ended(int(log.split()[0]))
    recorded = project.lopen("log", "--json").out
    assert "mcp__weather__forecast" in recorded
    assert KEY not in recorded


def test_a_writable_server_works_in_building_alone(make_project: MakeProject, tmp_path: Path) -> None:
    variables = configure(tmp_path, table(read_only="false"))
    spoil = "mcp__weather__spoil"
    projects: list[Project] = []

    def spoil_the_clone(_: Any) -> Message:
        return tools((spoil, {"path": str(projects[0].clone() / "notes.txt")}))

    planned = tools((spoil, {"path": str(tmp_path / "project/planned.txt")}))
    project = make_project([planned, plan(), spoil_the_clone, build("calc-t1")], **variables)
    projects.append(project)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert "belongs to step 6" in str(project.requests[1]["messages"][-1])
    assert not (project.root / "planned.txt").exists()
    [written] = (b["content"] for b in project.requests[3]["messages"][-1]["content"][:1])
    assert written == '{"ok": true}\nwritten'
    assert project.built("notes.txt") == "spoilt by the server\n"


def test_a_server_that_changes_the_specification_closes_the_gate(
    make_project: MakeProject, tmp_path: Path
) -> None:
    variables = configure(tmp_path, table(read_only="false"))
    specification = tmp_path / "project/specs/calc/SPECIFICATION.md"
    turns = [plan(), tools(("mcp__weather__spoil", {"path": str(specification)})), build("calc-t1")]
    project = make_project(turns, **variables)
    project.specify()

    ran = project.drive()

    assert ran.code == 3, ran.err
    assert "lopen approve calc" in ran.err + ran.out


def test_a_server_that_stalls_or_crashes_stops_no_run(make_project: MakeProject, tmp_path: Path) -> None:
    fail = "mcp__weather__fail"
    variables = configure(tmp_path, table(timeout_s="0.5"))
    turns = [
        tools((fail, {"how": "stall"})),
        tools((fail, {"how": "crash"}), ("mcp__weather__forecast", {"city": "Bergen"})),
        plan(),
        build("calc-t1"),
    ]
    project = make_project(turns, **variables)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert "no answer within 0.5 s" in str(project.requests[1]["messages"][-1])
    crashed, again = (b["content"] for b in project.requests[2]["messages"][-1]["content"][:2])
    assert "the barometer broke" in crashed
    assert "sunny in Bergen" in again


def test_a_repository_names_no_server(make_project: MakeProject) -> None:
    project = make_project([plan()])
    project.specify()
    project.write(".lopen/config.toml", table())
    ran = project.lopen("approve", "calc", "--yes")
    run = project.lopen("run", "calc")
    assert (run.code, project.requests) == (2, []), ran.err
    assert "mcp.servers" in run.err
    assert "may not be set by a project" in run.err
