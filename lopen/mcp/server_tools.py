"""Tools of the person's own MCP servers for the model, named `mcp__SERVER__TOOL`.

A server is the person's program: it runs outside the sandbox, with their rights, in their home folder. Only tools that
the server declares read-only are offered, unless the settings say otherwise.

See docs/reference/mcp.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lopen.core.errors import LopenError, install_command
from lopen.core.hashing import content_hash
from lopen.core.trusted_programs import find_on_path
from lopen.settings.schema import McpServer
from lopen.tools.calls import AnyInput, ToolResult, done, failed
from lopen.tools.catalogue import BUILDING, EVERYWHERE, Tool
from lopen.tools.workbench import Workbench

if TYPE_CHECKING:
    from lopen.mcp.sdk import McpConnection, RemoteTool

START_TIMEOUT_S = 20.0
MOST_STARTS = 3  # of one server in one run
MOST_TOOLS = 100  # of one server
MOST_CHARS = 30_000  # of one result: its head and its tail
DESCRIPTION_CHARS = 1_000
SCHEMA_CHARS = 10_000
_INVALID = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 128  # that the Messages API allows


@dataclass
class StartedServer:
    """One server of the settings, started where a tool of it is needed."""

    name: str
    settings: McpServer
    project: Path
    connection: McpConnection | None = None
    starts: int = 0

    def connected(self) -> McpConnection:
        """Return the connection, starting the server if it does not run.

        Raises:
            LopenError: it does not start, the SDK is not installed, or it was started too often.
        """
        if self.connection is None:
            self.connection = self._started()
        return self.connection

    def _started(self) -> McpConnection:
        if self.starts >= MOST_STARTS:
            raise LopenError(f"it was started {self.starts} times and ended each time")
        program = find_on_path(self.settings.command, self.project)
        if program is None:
            raise LopenError(f"{self.settings.command} is not on PATH outside of the project")
        try:
            from lopen.mcp.sdk import McpConnection
        except ImportError as error:
            raise LopenError("the MCP SDK is not installed", hint=install_command("mcp")) from error
        self.starts += 1
        return McpConnection(
            [program, *self.settings.args],
            variables={name: os.environ[name] for name in self.settings.env if name in os.environ},
            folder=Path.home(),
            start_timeout_s=START_TIMEOUT_S,
        )

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool of the server; its failures are results."""
        from lopen.mcp.sdk import ServerFailed

        try:
            result = self.connected().call(tool, arguments, self.settings.timeout_s)
        except ServerFailed as ended:
            self.close()
            left = MOST_STARTS - self.starts
            then = "it is started again for the next call" if left else "it is not started again in this run"
            return failed(f"the MCP server {self.name} failed: {ended.message}", then)
        except LopenError as error:
            return failed(f"the MCP server {self.name} cannot be used: {error.message}", "go on without it")
        if not result.ok:
            return failed(_shortened(result.text) or "the tool failed", f"as the server {self.name} says")
        text = _shortened(result.text)
        cut = {"truncated": True} if text != result.text else {}
        return done(raw=text, content_hash=content_hash(result.text), **cut)

    def close(self) -> None:
        """End the server."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


@dataclass
class ServerTools:
    """The tools of all servers, asked for once. `redact` removes secrets, `warn` tells of unusable servers and tools."""

    servers: Mapping[str, McpServer]
    project: Path
    redact: Callable[[str], str]
    warn: Callable[[str], None]
    _running: list[StartedServer] = field(default_factory=list)
    _tools: tuple[Tool, ...] | None = None

    def __call__(self) -> tuple[Tool, ...]:
        """Return the tools, starting the servers at the first call. A server that does not start is left out."""
        if self._tools is None:
            self._tools = tuple(self._found())
        return self._tools

    def close(self) -> None:
        """End all servers."""
        for server in self._running:
            server.close()

    def _found(self) -> Iterator[Tool]:
        taken: set[str] = set()
        for name, settings in sorted(self.servers.items()):
            server = StartedServer(name, settings, self.project)
            self._running.append(server)
            self.warn(f"starting the MCP server {name}: it runs outside the sandbox, with your rights")
            try:
                tools = server.connected().tools
            except LopenError as error:
                self.warn(f"the MCP server {name} is not used: {self.redact(error.message)}")
                continue
            offered = [tool for tool in tools if tool.read_only or not settings.read_only]
            if left_out := len(tools) - len(offered):
                tools_are = "1 tool is" if left_out == 1 else f"{left_out} tools are"
                self.warn(f"of the MCP server {name} {tools_are} left out: not declared read-only")
            for tool in sorted(offered, key=lambda tool: tool.name)[:MOST_TOOLS]:
                found = self._tool(server, tool)
                if found.name not in taken and _sendable(tool.schema):
                    taken.add(found.name)
                    yield found
                else:
                    self.warn(
                        f"the tool {tool.name[:60]} of the MCP server {name} is left out: its name, size or schema"
                    )

    def _tool(self, server: StartedServer, remote: RemoteTool) -> Tool:
        said = self.redact(" ".join(remote.description.split())[:DESCRIPTION_CHARS])
        return Tool(
            _INVALID.sub("_", f"mcp__{server.name}__{remote.name}")[:_LONGEST_NAME],
            f"From the MCP server {server.name}, a program of the person's. At most 30,000 characters of its answer are shown. {said}".strip(),
            AnyInput,
            EVERYWHERE if remote.read_only else BUILDING,
            partial(self._call, server, remote.name),
            schema=remote.schema,
        )

    def _call(self, server: StartedServer, tool: str, bench: Workbench, given: AnyInput) -> ToolResult:
        """Call the tool."""
        result = server.call(tool, given.model_extra or {})
        hidden = {
            name: self.redact(value) if isinstance(value, str) else value
            for name, value in result.fields.items()
        }
        raw = None if result.raw is None else self.redact(result.raw)
        return ToolResult(result.ok, hidden, raw, result.outcome, result.content_hash)


def _sendable(schema: Mapping[str, Any]) -> bool:
    """Return True for a schema of bounded size that the Messages API takes: at its top level a plain object."""
    plain = schema.get("type") == "object" and schema.keys().isdisjoint(("anyOf", "oneOf", "allOf"))
    return plain and len(json.dumps(schema)) <= SCHEMA_CHARS


def _shortened(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    half = MOST_CHARS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
