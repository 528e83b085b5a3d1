"""The MCP SDK, as a client and as a server. The only importer of `mcp`, which takes a second: import it where it is used.

A connection lives in a thread of its own with an event loop, because lopen's core is synchronous.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
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
from mcp.server.stdio import stdio_server
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
ERRORS_SHOWN = 500  # bytes of what the server wrote to standard error
LAST_WORDS_S = 0.5  # for reading them after its end
CHUNK = 65_536

_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")

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
        self._errors = _Errors()
        self._loop = asyncio.new_event_loop()
        self._started: Future[list[RemoteTool]] = Future()
        self._client: Client | None = None
        self._open: anyio.CancelScope | None = None
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()
        try:
            self.tools = self._started.result(start_timeout_s)
        except BaseException as error:
            self.close()
            if not isinstance(error, Exception):
                raise
            reason = "no answer in time" if isinstance(error, TimeoutError) else _reason(error)
            raise ServerFailed(reason + self._errors.said()) from None

    def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> RemoteResult:
        """Call a tool and return its result.

        Raises:
            ServerFailed: the server has ended.
        """
        client = self._client
        if client is None or not self._thread.is_alive():
            raise ServerFailed("it has ended" + self._errors.said())
        request = client.call_tool(tool, dict(arguments), read_timeout_seconds=timeout_s)
        try:
            answer = asyncio.run_coroutine_threadsafe(request, self._loop)
        except RuntimeError:  # the loop has closed meanwhile
            request.close()
            raise ServerFailed("it has ended" + self._errors.said()) from None
        try:
            result = answer.result(timeout_s + STOP_S)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ServerFailed("it has ended" + self._errors.said()) from None
            if error.code == REQUEST_TIMEOUT:
                return RemoteResult(f"no answer within {timeout_s:g} s", ok=False)
            return RemoteResult(error.message, ok=False)
        except TimeoutError:
            answer.cancel()
            return RemoteResult(f"no answer within {timeout_s:g} s", ok=False)
        except Exception as error:  # noqa: BLE001  # what the server sent does not follow the protocol
            return RemoteResult(f"its answer cannot be read: {_reason(error)}", ok=False)
        return RemoteResult(_text(result), ok=not result.is_error)

    def close(self) -> None:
        """End the server and wait for its end."""
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join(STOP_S)
        self._errors.close()

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
        transport = stdio_client(self._parameters, errlog=self._errors.file)
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


class _Errors:
    """The end of what a server writes to standard error: a thread reads it, so that it fills neither disk nor pipe."""

    def __init__(self) -> None:
        source, target = os.pipe()
        self.file = os.fdopen(target, "w")
        self._end = b""
        self._thread = threading.Thread(target=self._read, args=(source,), name="mcp-errors", daemon=True)
        self._thread.start()

    def _read(self, source: int) -> None:
        with os.fdopen(source, "rb", buffering=0) as stream:
            while part := stream.read(CHUNK):
                self._end = (self._end + part)[-ERRORS_SHOWN:]

    def said(self) -> str:
        """Return the end as a part of a message. The server has ended, or is about to."""
        self.close()
        self._thread.join(LAST_WORDS_S)
        lines = " ".join(self._end.decode("utf-8", "replace").split())
        return f" (it says: {lines})" if lines else ""

    def close(self) -> None:
        """Close lopen's end of the pipe; the thread ends with the last process that holds the other."""
        self.file.close()


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
    anyio.run(server.serve)


class _StrictServer(MCPServer[Any]):
    """The SDK's server, which says what it does not understand: the SDK drops unknown arguments and leaves a message
    with half of a surrogate pair unanswered.
    """

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

    async def serve(self) -> None:
        """Serve on standard input and output until the client closes them."""
        lines = _MessageLines(os.fdopen(os.dup(0), "rb"), encoding="utf-8", errors="replace")
        async with stdio_server(stdin=anyio.wrap_file(lines)) as (reading, writing):
            await self._lowlevel_server.run(
                reading, writing, self._lowlevel_server.create_initialization_options()
            )


class _MessageLines(io.TextIOWrapper):
    """The messages of a client, one a line, with U+FFFD for halves of surrogate pairs."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as TextIOWrapper does
        """Return the next message; empty at the end."""
        line = super().readline(size)
        if not _MAYBE_HALF.search(line):
            return line
        try:
            message = json.dumps(json.loads(line), ensure_ascii=False)
        except (ValueError, RecursionError):
            return line  # the SDK says what is wrong
        return _HALF.sub("\ufffd", message) + "\n"
