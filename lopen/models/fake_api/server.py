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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Final, Literal, assert_never

from lopen.models.fake_api.responses import PromptCache, encode, estimated_tokens, message_events
from lopen.models.fake_api.validation import refusal
from lopen.models.messages import Json, Usage

PATH: Final = "/v1/messages"
LARGEST_REQUEST: Final = 32 * 2**20
LONGEST_SILENCE_S: Final = 60.0  # a client that is silent for longer has ended
PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
POLL_S: Final = 0.02
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
    """A complete message. Without `usage`, tokens are estimated with a model of the prompt cache."""

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

    With `key`, a request must have this key; otherwise any key is accepted. Requests that the real API refuses do
    not reach `answer`.
    """

    def __init__(self, answer: Answering, *, key: str = "") -> None:
        self.answer = answer
        self.key = key
        self.cache = PromptCache()
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
        return self._server.connections

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
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()

    @property
    def connections(self) -> int:
        with self._guard:
            return len(self._open)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        if _resetting(request):
            request.close()  # without the FIN of an orderly shutdown, so that the peer sees a reset
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closed its connection early."""

    def hang_up(self) -> None:
        self.closing.set()
        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster


class _Connection(BaseHTTPRequestHandler):
    """The exchanges of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # an answer in two writes would wait for the peer's delayed acknowledgement
    )
    wbufsize = -1
    timeout = LONGEST_SILENCE_S
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_POST(self) -> None:  # the name http.server calls
        number = next(self.server.endpoint.numbers)
        length = int(self.headers.get("content-length") or 0)
        if length > LARGEST_REQUEST:
            self.close_connection = True
            self._send_status(Status(413, "Request exceeds the maximum size"), number)
            return
        raw = self.rfile.read(length)
        refused = self._refusal_of_headers()
        if refused is not None:
            self._send_status(refused, number)
            return
        body = _parsed(raw)
        problem = refusal(body)
        if problem is not None:
            self._send_status(Status(400, problem), number)
            return
        self._send(self._answer(body), body, number)

    def do_GET(self) -> None:  # the name http.server calls
        self._send_status(Status(404, f"{self.path} is not served here"), next(self.server.endpoint.numbers))

    def _refusal_of_headers(self) -> Status | None:
        if self.path.partition("?")[0] != PATH:
            return Status(404, f"{self.path} is not served here")
        key = self.headers.get("x-api-key") or (self.headers.get("authorization") or "").removeprefix(
            "Bearer "
        )
        if not key:
            return Status(401, "x-api-key header is required")
        expected = self.server.endpoint.key
        if expected and not hmac.compare_digest(key.encode(), expected.encode()):
            return Status(401, "invalid x-api-key")
        if not self.headers.get("anthropic-version"):
            return Status(400, "anthropic-version: header is required")
        return None

    def _answer(self, body: dict[str, Any]) -> Answer:
        try:
            return self.server.endpoint.answer(body)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the answer, the client must not wait for it
            return Status(400, f"the endpoint has no answer: {type(error).__name__}: {error}")

    def _send(self, answer: Answer, body: dict[str, Any], number: int) -> None:
        match answer:
            case Message():
                self._send_message(answer, body, number)
            case Status():
                self._send_status(answer, number)
            case Raw():
                self._head(200, {"content-type": answer.content_type, "transfer-encoding": "chunked"}, number)
                for piece in answer.pieces:
                    self._chunk(piece)
                    self.wfile.flush()  # pieces may come slowly
                self._finish(answer.then)
            case NoResponse():
                self._finish(answer.then)
            case _:
                assert_never(answer)

    def _send_message(self, answer: Message, body: dict[str, Any], number: int) -> None:
        usage = answer.usage or self._estimated(answer, body)
        message = {
            "id": f"msg_{number:06}",
            "model": answer.model or body["model"],
            "content": answer.content,
            "stop_reason": answer.stop_reason,
        }
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}, number)
        for event in message_events(message, usage, answer.unparsed):
            self._chunk(encode(event))
        self._finish("end")

    def _estimated(self, answer: Message, body: dict[str, Any]) -> Usage:
        return self.server.endpoint.cache.input_usage(body) + Usage(
            output_tokens=estimated_tokens(json.dumps(list(answer.content), ensure_ascii=False))
        )

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

    def _chunk(self, piece: bytes) -> None:
        if piece:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _finish(self, then: Literal["end", "hang_up", "reset", "silence"]) -> None:
        if then == "end":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        self.wfile.flush()
        if then == "silence":
            self.server.closing.wait(LONGEST_SILENCE_S)
        elif then == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _resetting(connection: socket.socket) -> bool:
    on, seconds = struct.unpack("ii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
    return bool(on) and seconds == 0


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None
