"""The MCP SDK, as a client. The only importer of `mcp`, which takes a second: import it where it is used.

A connection lives in a thread of its own with an event loop, because lopen's core is synchronous.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT, TextContent

from lopen.core.errors import LopenError

MOST_PAGES = 50  # of a server's list of tools
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
        self._client: Client | None = None
        # The server's standard error; `close` closes it
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        try:
            with ExitStack() as opened:  # which ends the thread where the server does not start
                self._portal = opened.enter_context(start_blocking_portal(name="mcp"))
                self._serving, self.tools = self._portal.start_task(self._serve)
                self._opened = opened.pop_all()
        except Exception as error:  # noqa: BLE001  # any failure of a foreign program
            raise ServerFailed(_reason(error) + self._last_words()) from None

    def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> RemoteResult:
        """Call a tool and return its result.

        Raises:
            ServerFailed: the server has ended.
        """
        client = self._client
        if client is None:
            raise ServerFailed("it has ended" + self._last_words())
        call = partial(client.call_tool, tool, dict(arguments), read_timeout_seconds=timeout_s)
        try:
            result = self._portal.call(call)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ServerFailed("it has ended" + self._last_words()) from None
            late = error.code == REQUEST_TIMEOUT
            return RemoteResult(f"no answer within {timeout_s:g} s" if late else error.message, ok=False)
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
        self._serving.cancel()
        self._opened.close()
        self._errors.close()

    async def _serve(self, *, task_status: TaskStatus[list[RemoteTool]]) -> None:
        """Hold the connection until `close`; tell the tools once it can be used."""
        transport = stdio_client(self._parameters, errlog=self._errors)
        try:
            async with Client(transport, read_timeout_seconds=self._timeout_s, cache=None) as client:
                found = await _tools(client)
                self._client = client
                task_status.started(found)
                await anyio.sleep_forever()
        finally:
            self._client = None


async def _tools(client: Client) -> list[RemoteTool]:
    """Read the list of tools."""
    tools: list[RemoteTool] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [_described(tool) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


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


def _reason(error: BaseException) -> str:
    """Return the text of a failure; of a group of them, that of the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__
