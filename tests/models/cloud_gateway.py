"""A cloud provider's front door on loopback: it checks paths and credentials as the provider documents them.

It hands requests on to the scripted endpoint in the form of the Messages API, and answers in the provider's format.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import re
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

ACCESS_KEY, SECRET_KEY, REGION = "AKIDEXAMPLE", "aws-secret-for-tests", "eu-central-1"
VERTEX_TOKEN, FOUNDRY_KEY = "vertex-access-token", "foundry-test-key"
PATHS = {
    "bedrock": re.compile(r"/model/(?P<model>[^/]+)/invoke-with-response-stream"),
    "vertex": re.compile(
        r"/v1/projects/tests/locations/europe-west1/publishers/anthropic/models/(?P<model>[^/:]+):streamRawPredict"
    ),
    "foundry": re.compile(r"/anthropic/v1/messages"),
}


class CloudGateway:
    """One provider on loopback. `paths` are the paths of the requests that it accepted, `refusals` why not.

    `throttled`: so many answers of Bedrock end with an exception frame in the stream.
    """

    def __init__(self, provider: str, upstream: str, *, throttled: int = 0) -> None:
        self.provider = provider
        self.upstream = upstream
        self.throttled = throttled
        self.paths: list[str] = []
        self.refusals: list[str] = []
        self.tokens_given = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def serving(self) -> Iterator[CloudGateway]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def refusal(self, path: str, headers: Mapping[str, str], raw: bytes) -> str:
        """Return why the provider would refuse the request; "" if it would not."""
        body = json.loads(raw)
        if PATHS[self.provider].fullmatch(unquote(urlsplit(path).path)) is None:
            return f"path {path}"
        if "test-key" in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer ")):
            return "Anthropic's key was sent"
        if self.provider == "foundry":
            return "" if headers.get("x-api-key") == FOUNDRY_KEY else "x-api-key"
        if body.get("anthropic_version") is None or "model" in body:
            return "anthropic_version is missing, or the model is in the body"
        if self.provider == "vertex":
            sent = (headers.get("authorization"), body.get("stream"))
            return "" if sent == (f"Bearer {VERTEX_TOKEN}", True) else f"authorization or stream: {sent}"
        if "stream" in body:
            return "stream is not a field of Bedrock's body"
        return (
            "" if headers.get("authorization") == _signature(path, headers, raw) else "the signature differs"
        )

    def passed_on(self, path: str, raw: bytes) -> tuple[int, str, bytes]:
        """Ask the scripted endpoint; return status, content type and body of the answer."""
        body = json.loads(raw)
        match = PATHS[self.provider].fullmatch(unquote(urlsplit(path).path))
        assert match is not None
        body = (
            {k: v for k, v in body.items() if k != "anthropic_version"} | {"stream": True} | match.groupdict()
        )
        where = urlsplit(self.upstream)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        plain = {
            "content-type": "application/json",
            "x-api-key": "test-key",
            "anthropic-version": "2023-06-01",
        }
        try:
            connection.request("POST", "/v1/messages", json.dumps(body), plain)
            answer = connection.getresponse()
            return answer.status, answer.headers["content-type"], answer.read()
        finally:
            connection.close()


def _handler(gateway: CloudGateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            if gateway.provider == "vertex" and self.path == "/token":
                gateway.tokens_given += 1
                given = {"access_token": VERTEX_TOKEN, "expires_in": 3600, "token_type": "Bearer"}
                self._send(200, "application/json", json.dumps(given).encode())
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            if reason := gateway.refusal(self.path, headers, raw):
                gateway.refusals.append(reason)
                self._send(403, "application/json", json.dumps({"message": reason}).encode())
                return
            gateway.paths.append(self.path)
            if gateway.throttled:
                gateway.throttled -= 1
                frame = _frame({":message-type": "exception", ":exception-type": "throttlingException"},
                               {"message": "Too many requests"})  # fmt: skip
                self._send(200, "application/vnd.amazon.eventstream", frame)
                return
            status, kind, answer = gateway.passed_on(self.path, raw)
            if gateway.provider == "bedrock" and status == 200:
                kind, answer = "application/vnd.amazon.eventstream", b"".join(_frames(answer))
            self._send(status, kind, answer)

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _frames(events: bytes) -> Iterator[bytes]:
    """Yield server-sent events as frames of `application/vnd.amazon.eventstream`."""
    for event in events.decode().split("\n\n"):
        for line in event.splitlines():
            if line.startswith("data: "):
                chunk = base64.b64encode(line.removeprefix("data: ").encode()).decode()
                kind = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
                yield _frame(kind, {"bytes": chunk})


def _frame(headers: Mapping[str, str], payload: Any) -> bytes:
    """Return one frame: lengths, a checksum of them, headers of type string, the payload, a checksum of all."""
    named = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    content = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(named) + len(content), len(named))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + named + content
    return message + struct.pack("!I", zlib.crc32(message))


def _signature(path: str, headers: Mapping[str, str], raw: bytes) -> str:
    """Return the `Authorization` of AWS Signature Version 4 for what arrived, as AWS computes it."""
    names = re.findall(r"SignedHeaders=([^,]+)", headers.get("authorization", ""))
    signed = names[0] if names else ""
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed.split(";"))
    digest = hashlib.sha256(raw).hexdigest()
    request = "\n".join(
        ["POST", quote(urlsplit(path).path, safe="/~"), urlsplit(path).query, lines, signed, digest]
    )
    date = headers.get("x-amz-date", "")
    scope = f"{date[:8]}/{REGION}/bedrock/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={signed}, Signature={key.hex()}"
