"""The transport: connections, deadlines and proxies."""

from __future__ import annotations

import gzip
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpcore2
import pytest

from lopen.core.clock import FakeClock, SystemClock
from lopen.core.errors import LopenError
from lopen.models.deadline import LONGEST_WAIT_S, Deadline, _DeadlineStream
from lopen.models.messages import ModelError, Rejected, TransientFailure
from lopen.models.transport import MOST_BYTES, MOST_ERROR_BYTES, environment_proxies
from tests.models.conftest import Reach, ignore, request
from tests.no_network import NetworkForbidden

EVENT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


class Server:
    """Takes one request whole, says `answer`, and keeps the connection open until the client hangs up."""

    def __init__(self, answer: bytes | Callable[[socket.socket], None]) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.answers = threading.Event()
        self.hung_up = threading.Event()
        self._client = socket.socket()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client:
                self._client = client
                self._answer(client)
            self.hung_up.set()

    def _answer(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(65536)
            if not piece:
                return
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        while len(body) < length:
            body += client.recv(65536)
        self.requests.append(head)
        self.answers.set()
        try:
            if callable(self.answer):
                self.answer(client)
            else:
                client.sendall(self.answer)
            while client.recv(65536):
                pass
        except OSError:
            return


class Hurrying(FakeClock):
    """Once the endpoint begins to answer, hours have gone by at every look."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server

    def monotonic(self) -> float:
        if self._server.answers.is_set():
            self.advance(20_000)
        return super().monotonic()


def failure(reach: Reach, server: Server, clock: FakeClock | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        reach(server.url, clock=clock).send(request(), ignore)
    return caught.value


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nx-a: a",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        EVENT_STREAM + b"transfer-encoding: chunked\r\n\r\n1;a",
        b"HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n1\r\n \r\n",
        b"HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\n{",
    ],
)
def test_no_answer_lasts_for_ever_whatever_its_status(reach: Reach, begun: bytes) -> None:
    with Server(begun) as server:
        said = failure(reach, server, Hurrying(server))
        assert server.hung_up.wait(10)
    assert isinstance(said, TransientFailure)
    assert "exceeded the time limit" in said.message


def endless(head: bytes, piece: bytes = b"x" * 2**20) -> tuple[Callable[[socket.socket], None], list[int]]:
    """An answer that goes on until the client hangs up, and how many pieces of a megabyte went out."""
    sent: list[int] = []

    def answer(client: socket.socket) -> None:
        client.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
        while True:
            client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            sent.append(1)

    return answer, sent


@pytest.mark.parametrize(("code", "kind"), [(500, TransientFailure), (401, Rejected)])
def test_an_error_s_text_is_cut_and_its_status_counts(
    reach: Reach, code: int, kind: type[ModelError]
) -> None:
    answer, sent = endless(b"HTTP/1.1 %d Oh\r\ncontent-type: text/plain\r\n" % code)
    with Server(answer) as server:
        said = failure(reach, server)
        assert server.hung_up.wait(10)
    assert (type(said), said.status) == (kind, code)
    assert len(sent) * 2**20 < 16 * MOST_ERROR_BYTES


@pytest.mark.parametrize(
    "piece", [b"x" * 2**20, b"x\n" * 2**19, b'data: {"type": "%s"}\n\n' % (b"x" * 2**20)]
)
def test_an_answer_longer_than_any_real_one_is_dropped(reach: Reach, piece: bytes) -> None:
    answer, sent = endless(EVENT_STREAM, piece)
    with Server(answer) as server:
        said = failure(reach, server)
        assert server.hung_up.wait(10)
    assert "exceeded the size limit" in said.message
    assert len(sent) * len(piece) < MOST_BYTES + 16 * 2**20


@pytest.mark.parametrize("status", [b"200 OK", b"500 Oh"])
def test_a_small_answer_that_unpacks_to_a_huge_one_is_not_unpacked(reach: Reach, status: bytes) -> None:
    packed = gzip.compress(b"data: " + b"x" * (MOST_BYTES + 1), 9)
    head = b"HTTP/1.1 %s\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    with Server(head % (status, len(packed)) + packed) as server:
        said = failure(reach, server)
        [asked] = server.requests
    assert isinstance(said, TransientFailure)
    assert ("exceeded the size limit" in said.message) == (status == b"200 OK")
    assert b"accept-encoding: identity" in asked.lower().split(b"\r\n")


def test_an_error_that_came_packed_is_read(reach: Reach) -> None:
    packed = gzip.compress(
        b'{"type": "error", "error": {"type": "authentication_error", "message": "bad key"}}'
    )
    head = b"HTTP/1.1 401 No\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    with Server(head % len(packed) + packed) as server:
        assert "bad key" in failure(reach, server).message


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_sends_the_prompt_nowhere(reach: Reach, code: int) -> None:
    with Server(b"") as other:
        answer = b"HTTP/1.1 %d Go\r\nlocation: %s/test-key/v1\r\ncontent-length: 0\r\n\r\n"
        with Server(answer % (code, other.url.encode())) as server:
            said = failure(reach, server)
        assert other.requests == []
    assert isinstance(said, Rejected)
    assert f"redirects to {other.url}/[key]/v1 (HTTP {code}); nothing was sent there" in said.message
    assert "model.base_url" in said.hint


@contextmanager
def _proxied(monkeypatch: pytest.MonkeyPatch, server: Server) -> Iterator[None]:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    yield


def test_the_bounds_hold_through_a_proxy_too(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(b"HTTP/1.1 200 OK\r\nx-a: a") as proxy, _proxied(monkeypatch, proxy):
        with pytest.raises(TransientFailure, match="exceeded the time limit"):
            reach("http://endpoint.invalid", clock=Hurrying(proxy)).send(request(), ignore)
        assert proxy.requests[0].startswith(b"POST http://endpoint.invalid/")


@pytest.mark.parametrize(
    ("exempt", "direct"),
    [
        ("127.0.0.1", False),
        ("example.invalid", True),
        (".invalid, other.org", True),
        ("other.org, http://10.0.0.0/99", False),
        ("*", True),
    ],
)
def test_a_host_that_no_proxy_names_is_reached_directly(
    reach: Reach, monkeypatch: pytest.MonkeyPatch, exempt: str, direct: bool
) -> None:
    monkeypatch.setenv("NO_PROXY", exempt)
    refusal = b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"
    reached = (
        NetworkForbidden if direct else ModelError
    )  # the test's own ban on lookups meets a direct connection
    with Server(refusal) as proxy, _proxied(monkeypatch, proxy), pytest.raises(reached):
        reach("http://endpoint.example.invalid").send(request(), ignore)
    assert (proxy.requests == []) == direct


def test_a_proxy_gets_the_name_and_password_of_its_address(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n") as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url.replace("http://", "http://person:p%40ss@"))
        with pytest.raises(ModelError):
            reach("http://endpoint.invalid").send(request(), ignore)
    assert b"proxy-authorization: basic cgvyc29uonbac3m=" in proxy.requests[0].lower()


def test_a_proxy_that_needs_a_missing_library_names_it(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setattr("lopen.models.transport.find_spec", lambda _name: None)
    monkeypatch.setenv("ALL_PROXY", "socks5://person:secret@127.0.0.1:9")
    with pytest.raises(LopenError, match="needs a library that is not installed: socksio") as caught:
        reach("http://endpoint.invalid").send(request(), ignore)
    assert "secret" not in caught.value.message


def test_a_connection_that_is_refused_is_a_failure_that_passes(reach: Reach) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(TransientFailure, match="ConnectError"):
        reach(url, max_retries=0).send(request(), ignore)


@pytest.mark.parametrize(
    ("no_proxy", "patterns"),
    [
        ("", []),
        ("example.org", ["all://*example.org"]),
        (".example.org, *.example.com", ["all://*.example.org", "all://*.example.com"]),
        ("localhost,LOCALHOST", ["all://localhost", "all://LOCALHOST"]),
        ("127.0.0.1,10.0.0.0/8", ["all://127.0.0.1", "all://10.0.0.0/8"]),
        ("::1,fe80::/10,[::1]:80", ["all://[::1]", "all://[fe80::]/10", "all://[::1]:80"]),
        ("http://example.org:80", ["http://example.org:80"]),
        ("example.org/path,10.0.0.0/99,,", []),
    ],
)
def test_each_entry_of_no_proxy_is_a_pattern(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, patterns: list[str]
) -> None:
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example.org:3128")
    assert environment_proxies() == {
        "https://": "http://proxy.example.org:3128",
        **dict.fromkeys(patterns),
    }


def test_a_star_switches_every_proxy_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org, *")
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example.org")
    assert environment_proxies() == {}


def test_a_silent_connection_is_waited_for_in_short_pieces() -> None:
    waits: list[float] = []

    class Silent:
        def read(self, max_bytes: int, timeout: float) -> bytes:
            waits.append(timeout)
            if len(waits) < 3:
                raise httpcore2.ReadTimeout
            return b"x"

    deadline = Deadline(SystemClock())
    deadline.begin(60)
    stream = _DeadlineStream(Silent(), deadline)  # type: ignore[arg-type]  # it is only read from

    assert stream.read(1, 10) == b"x"
    assert waits == [LONGEST_WAIT_S] * 3
    waits[:] = [0, 0, 0]
    assert stream.read(1, 0.2) == b"x"
    assert waits[3] <= 0.2
