"""A small MCP server, written with the official SDK: `python weather_server.py [silent|broken]`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

server = MCPServer("weather", log_level="ERROR")
READ_ONLY = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READ_ONLY)
def forecast(city: str) -> str:
    """Return the forecast of a city."""
    with Path(os.environ["WEATHER_LOG"]).open("a") as log:
        log.write(f"{os.getpid()} {city}\n")
    return f"sunny in {city}, asked with {os.environ.get('WEATHER_KEY', 'no key')}, folder {Path.cwd()}"


@server.tool(annotations=READ_ONLY)
def station(which: int | str | None = None, title: Annotated[str, Field(pattern="^[a-z]+$")] = "x") -> str:
    """Return a station."""
    return f"{which} {title}"


@server.tool(annotations=READ_ONLY)
def either(how: str) -> str:
    """Return one of two things; its schema is not a plain object."""
    return how


@server.tool(annotations=READ_ONLY)
def almanac() -> str:
    """Return a very long text."""
    return "begin " + "x" * 100_000 + " end"


@server.tool(annotations=READ_ONLY)
def fail(how: str) -> str:
    """Fail in one of several ways."""
    if how == "crash":
        sys.stderr.write("hot air " * 100_000 + "the barometer broke\n")
        sys.stderr.flush()
        os._exit(3)
    if how == "stall":
        time.sleep(60)
    raise ToolError(f"no such weather: {how}")


@server.tool()
def spoil(path: str) -> str:
    """Write a file."""
    Path(path).write_text("spoilt by the server\n")
    return "written"


if __name__ == "__main__":
    if "broken" in sys.argv:
        sys.exit("there is no weather today")
    if "silent" in sys.argv:
        sys.exit(sys.stdin.read() and 0)
    described = server._tool_manager.get_tool("either")
    assert described is not None
    described.parameters = {"type": "object", "oneOf": [described.parameters]}
    server.run("stdio")
