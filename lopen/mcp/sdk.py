"""The MCP SDK, as a client and as a server. The only importer of `mcp`, which takes a second: import it where it is used.

A connection lives in a thread of its own with an event loop, because lopen's core is synchronous.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)

from lopen.core.errors import LopenError

MOST_PAGES = 50  # of a server's list of tools
STOP_S = 10.0  # the SDK closes standard input, waits, and ends the whole process group
ERRORS_SHOWN = 500  # characters of the server's standard error

logging.getLogger("mcp").addHandler(logging.NullHandler())  # failures come as values; nothing else is printed


class ServerFailed(LopenError):
    """The server did not start, or has ended."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as the server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read_only: bool


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """The text of a result; `ok` is False for an error that the tool reports."""

    text: str
    ok: bool


class McpConnection:
    """A server process and the connection to it. Thread-safe; `close` ends the process."""

    def __init__(
        self, argv: Sequence[str], *, variables: Mapping[str, str], folder: Path, start_timeout_s: float
    ) -> None:
        """Start the server and read its list of tools.

        Raises:
            ServerFailed: it does not start, or does not answer in time.
        """
        self._parameters = StdioServerParameters(
            command=argv[0], args=list(argv[1:]), env=dict(variables), cwd=folder
        )
        self._timeout_s = start_timeout_s
        # The server's standard error; `close` closes it
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._loop = asyncio.new_event_loop()
        self._started: Future[list[RemoteTool]] = Future()
        self._client: Client | None = None
        self._open: anyio.CancelScope | None = None
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()
        try:
            self.tools = self._started.result(start_timeout_s)
        except BaseException as error:
            self._end_thread()
            if not isinstance(error, Exception):
                raise
            reason = "no answer in time" if isinstance(error, TimeoutError) else _reason(error)
            raise ServerFailed(reason + self._last_words()) from None

    def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> RemoteResult:
        """Call a tool and return its result.

        Raises:
            ServerFailed: the server has ended.
        """
        client = self._client
        if client is None or not self._thread.is_alive():
            raise ServerFailed("it has ended" + self._last_words())
        request = client.call_tool(tool, dict(arguments), read_timeout_seconds=timeout_s)
        try:
            answer = asyncio.run_coroutine_threadsafe(request, self._loop)
        except RuntimeError:  # the loop has closed meanwhile
            request.close()
            raise ServerFailed("it has ended" + self._last_words()) from None
        try:
            result = answer.result(timeout_s + STOP_S)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ServerFailed("it has ended" + self._last_words()) from None
            if error.code == REQUEST_TIMEOUT:
                return RemoteResult(f"no answer within {timeout_s:g} s", ok=False)
            return RemoteResult(error.message, ok=False)
        except TimeoutError:
            answer.cancel()
            return RemoteResult(f"no answer within {timeout_s:g} s", ok=False)
        except Exception as error:  # noqa: BLE001  # the server's answer does not follow the protocol
            return RemoteResult(f"its answer cannot be read: {_reason(error)}", ok=False)
        return RemoteResult(_text(result), ok=not result.is_error)

    def _last_words(self) -> str:
        """Return the end of the server's standard error, as a part of a message."""
        self._errors.seek(0)
        lines = " ".join(self._errors.read()[-ERRORS_SHOWN:].split())
        return f" (it says: {lines})" if lines else ""

    def close(self) -> None:
        """End the server and wait for its end."""
        self._end_thread()
        self._errors.close()

    def _end_thread(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join(STOP_S)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001  # a thread's failure is told by the future
            if not self._started.done():
                self._started.set_exception(_innermost(error))
        finally:
            self._client = None
            self._loop.close()

    async def _serve(self) -> None:
        """Hold the connection until `close`, which may also come during the start."""
        transport = stdio_client(self._parameters, errlog=self._errors)
        with anyio.CancelScope() as self._open:
            async with Client(transport, read_timeout_seconds=self._timeout_s, cache=None) as client:
                await self._ready(client)
                await anyio.sleep_forever()

    def _end(self) -> None:
        if self._open is not None:
            self._open.cancel()

    async def _ready(self, client: Client) -> None:
        """Read the list of tools; the connection can be used from then on."""
        tools: list[RemoteTool] = []
        cursor = None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += [_described(tool) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        self._client = client
        self._started.set_result(tools)


def _described(tool: Any) -> RemoteTool:
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    return RemoteTool(tool.name, tool.description or "", tool.input_schema, read_only)


def _text(result: Any) -> str:
    """Return the text of a result; other kinds of content are named, structured content stands in for none."""
    parts = []
    for block in result.content:
        if isinstance(block, TextContent):
            parts.append(block.text)
        elif (inner := getattr(getattr(block, "resource", None), "text", None)) is not None:
            parts.append(inner)
        else:
            parts.append(f"[{block.type} content, which lopen does not pass on]")
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(parts)


def _innermost(error: BaseException) -> BaseException:
    """Return the first failure inside groups of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A tool that lopen serves. The function's signature and docstring describe it to the client."""

    run: Callable[..., str]
    read_only: bool


def serve(name: str, version: str, instructions: str, tools: Sequence[ServedTool]) -> None:
    """Serve the tools on standard input and output until the client closes them."""
    server = _StrictServer(name, version=version, instructions=instructions, log_level="ERROR")
    for tool in tools:
        hints = ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=False, open_world_hint=False)
        server.add_tool(tool.run, annotations=hints, structured_output=False)
    anyio.run(server.run_stdio_async)


class _StrictServer(MCPServer[Any]):
    """The SDK's server, which refuses unknown arguments: the SDK drops them, a limit that is misspelt among them."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: it has no argument of that name, or the call fails.
        """
        known = {tool.name: tool.input_schema.get("properties", {}) for tool in await self.list_tools()}
        if name in known and (unknown := sorted(set(arguments) - set(known[name]))):
            raise ToolError(f"{name} has no argument {', '.join(unknown)}; it takes {', '.join(known[name])}")
        return await super().call_tool(name, arguments, context)
