"""An Anthropic-compatible endpoint on this machine's loopback, for replays and tests.

It implements the protocol: HTTP with persistent connections, server-sent events, refusals in the API's format and,
for tests, every kind of broken answer. The caller's function decides the answer.
"""

from __future__ import annotations

import hmac
import itertools
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Final, Literal, assert_never

from lopen.models.messages import Json, Usage

PATH: Final = "/v1/messages"
LONGEST_SILENCE_S: Final = 60.0  # a client that is silent for longer has ended
PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
POLL_S: Final = 0.02
DELTA_CHARS: Final = 4096  # real deltas are shorter, which would only take more time here
CHARACTERS_PER_TOKEN: Final = 4
KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Message:
    """A complete message. Without `usage`, tokens are estimated from the texts."""

    content: Sequence[Json]
    stop_reason: str = "end_turn"
    usage: Usage | None = None
    model: str = ""  # the request's own where empty
    unparsed: frozenset[str] = frozenset()  # ids of tool calls whose input is sent as truncated JSON


@dataclass(frozen=True, slots=True)
class Status:
    """A refusal: a status with the API's error body for `message`, or with `body` unchanged."""

    status: int
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """A status 200 with these pieces, then a proper end, a closed or reset connection, or silence."""

    pieces: Sequence[bytes] = ()
    then: Literal["end", "hang_up", "reset", "silence"] = "end"
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True)
class NoResponse:
    """An exchange without any answer, not even a status."""

    then: Literal["hang_up", "reset", "silence"] = "reset"


Answer = Message | Status | Raw | NoResponse
Answering = Callable[[dict[str, Any]], Answer]


class MessagesEndpoint:
    """The endpoint as a context manager; it listens at `url`. `answer` may be called from several threads at once.

    With `key`, a request must have this key; otherwise any key is accepted.
    """

    def __init__(self, answer: Answering, *, key: str = "") -> None:
        self.answer = answer
        self.key = key
        self.numbers = itertools.count(1)
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True)

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`"""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._server.open)

    def __enter__(self) -> MessagesEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()  # waits for the threads of the connections
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    """A server with one thread per connection; it tracks open connections to close them at once."""

    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, endpoint: MessagesEndpoint) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.endpoint = endpoint
        self.closing = threading.Event()
        self.open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        on, seconds = struct.unpack("ii", request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
        if on and not seconds:
            request.close()  # without the FIN of an orderly shutdown, so that the peer sees a reset
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closed its connection early."""

    def hang_up(self) -> None:
        self.closing.set()
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was faster


class _Connection(BaseHTTPRequestHandler):
    """The exchanges of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer in two writes would wait for the peer's acknowledgement
    wbufsize = -1
    timeout = LONGEST_SILENCE_S
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_POST(self) -> None:  # the name http.server calls
        number = next(self.server.endpoint.numbers)
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        answer: Answer | None = self._refusal_of_headers()
        body: dict[str, Any] = {}
        if answer is None:
            try:
                body = json.loads(raw)
                answer = self.server.endpoint.answer(body)
            except Exception as error:  # noqa: BLE001  # the client must not wait for an answer that failed
                answer = Status(400, f"the endpoint has no answer: {type(error).__name__}: {error}")
        self._send(answer, body, number)

    def _refusal_of_headers(self) -> Status | None:
        if self.path.partition("?")[0] != PATH:
            return Status(404, f"{self.path} is not served here")
        authorization = self.headers.get("authorization") or ""
        key = self.headers.get("x-api-key") or authorization.removeprefix("Bearer ")
        expected = self.server.endpoint.key
        if not key or (expected and not hmac.compare_digest(key.encode(), expected.encode())):
            return Status(401, "invalid x-api-key" if key else "x-api-key header is required")
        if not self.headers.get("anthropic-version"):
            return Status(400, "anthropic-version: header is required")
        return None

    def _send(self, answer: Answer, body: dict[str, Any], number: int) -> None:
        match answer:
            case Message():
                message = {
                    "id": f"msg_{number:06}",
                    "model": answer.model or body["model"],
                    "content": answer.content,
                    "stop_reason": answer.stop_reason,
                }
                usage = answer.usage or Usage(estimated_tokens(body), estimated_tokens(answer.content))
                events = message_events(message, usage, answer.unparsed)
                self._stream(map(encode, events), "text/event-stream", number)
            case Status():
                self._send_status(answer, number)
            case Raw():
                self._stream(answer.pieces, answer.content_type, number, answer.then)
            case NoResponse():
                self._break_off(answer.then)
            case _:
                assert_never(answer)

    def _stream(
        self,
        pieces: Sequence[bytes] | Iterator[bytes],
        content_type: str,
        number: int,
        then: Literal["end", "hang_up", "reset", "silence"] = "end",
    ) -> None:
        self._head(200, {"content-type": content_type, "transfer-encoding": "chunked"}, number)
        for piece in filter(None, pieces):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()  # pieces may come slowly
        if then == "end":
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._break_off(then)

    def _send_status(self, answer: Status, number: int) -> None:
        kind = KINDS.get(answer.status, "api_error" if answer.status >= 500 else "invalid_request_error")
        error = {"type": "error", "error": {"type": kind, "message": answer.message}}
        content = json.dumps(error).encode() if answer.body is None else answer.body
        headers = {"content-type": "application/json", "content-length": str(len(content))}
        self._head(answer.status, headers | dict(answer.headers), number)
        self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str], number: int) -> None:
        phrase = PHRASES.get(status, "Overloaded")  # 529 is the API's own
        lines = [f"HTTP/1.1 {status} {phrase}", f"request-id: req_{number:06}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))

    def _break_off(self, how: Literal["hang_up", "reset", "silence"]) -> None:
        self.close_connection = True
        self.wfile.flush()
        if how == "silence":
            self.server.closing.wait(LONGEST_SILENCE_S)
        elif how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def encode(event: Json) -> bytes:
    """Return the bytes of one event."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def message_events(message: Json, usage: Usage, unparsed: Collection[str] = ()) -> Iterator[Json]:
    """Yield the events of `message` (`id`, `model`, `content`, `stop_reason`), in order.

    `unparsed` lists tool calls whose input is streamed as truncated JSON, because a recording does not have their
    input.
    """
    counts = {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
    }
    start = {"type": "message", "role": "assistant", "id": message["id"], "model": message["model"]}
    start |= {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**counts, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        begun, deltas = _in_deltas(block, cut=block.get("id") in unparsed)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {**counts, "output_tokens": usage.output_tokens},
    }
    yield {"type": "message_stop"}


def _in_deltas(block: Json, *, cut: bool) -> tuple[Json, list[Json]]:
    """Split a block into its start and its deltas. Kinds without deltas are sent at once."""
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, _pieces("text_delta", "text", block["text"])
    if kind == "thinking":
        signed = {"type": "signature_delta", "signature": block.get("signature", "")}
        thoughts = _pieces("thinking_delta", "thinking", block["thinking"])
        return {**block, "thinking": "", "signature": ""}, [*thoughts, signed]
    if kind in ("tool_use", "server_tool_use"):
        raw = "{" if cut else json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, _pieces("input_json_delta", "partial_json", raw)
    return block, []


def _pieces(kind: str, field: str, text: str) -> list[Json]:
    return [{"type": kind, field: text[at : at + DELTA_CHARS]} for at in range(0, len(text), DELTA_CHARS)]


def estimated_tokens(value: object) -> int:
    """Estimate the tokens of a JSON value: four characters per token."""
    return -(-len(json.dumps(value, ensure_ascii=False)) // CHARACTERS_PER_TOKEN)
