"""A small MCP server, written with the official SDK: `python weather_server.py [stalls|broken]`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("weather", log_level="ERROR")
READ_ONLY = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READ_ONLY)
def forecast(city: str) -> str:
    """Return the forecast of a city."""
    with Path(os.environ["WEATHER_LOG"]).open("a") as log:
        log.write(f"{os.getpid()} {city}\n")
    return f"sunny in {city}, asked with {os.environ.get('WEATHER_KEY', 'no key')}, folder {Path.cwd()}"


@server.tool(annotations=READ_ONLY)
def almanac() -> str:
    """Return a very long text."""
    return "begin " + "x" * 100_000 + " end"


@server.tool(annotations=READ_ONLY)
def fail(how: str) -> str:
    """Fail in one of several ways."""
    if how == "crash":
        sys.stderr.write("the barometer broke\n")
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
    server.run("stdio")
