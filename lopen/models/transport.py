"""Bounds for every connection to the endpoint from its first byte: a deadline, a size limit, and no redirects.

They apply below the SDK, and therefore to headers and every status: the SDK reads an error's whole body before it
raises.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final
from urllib.request import getproxies

import httpcore2
import httpx2

from lopen.core.errors import LopenError
from lopen.models.deadline import PIECE_BYTES, Deadline, DeadlineNetwork
from lopen.models.messages import Rejected, TransientFailure

MOST_BYTES: Final = 64 * 2**20  # of one decoded answer; three times the longest real one
MOST_ERROR_BYTES: Final = 2**20  # of an answer with another status than 200
MOST_EVENT_BYTES: Final = 4 * 2**20  # the SDK joins an event's lines one by one, copying each time
MOST_EVENT_LINES: Final = 1_000
LONGEST_LOCATION: Final = 300
_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ZLIB_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
IDLE_S: Final = 5.0  # a connection that was idle for longer is not reused
_CORE_ERRORS: Final = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
ALL_HOSTS: Final = "*"
TOO_LONG: Final = "the endpoint's answer exceeded the size limit and was dropped"


def bounded_client(deadline: Deadline, *, proxies: bool) -> httpx2.Client:
    """Return a client whose connections and answers are bounded; `proxies` says whether to use the environment's."""
    secured = httpx2.create_ssl_context()
    mounts: dict[str, httpx2.BaseTransport | None] = {}
    for pattern, address in environment_proxies().items() if proxies else ():
        if _is_pattern(pattern):
            mounts[pattern] = _Transport(deadline, secured, _proxy(address)) if address else None
    return httpx2.Client(
        transport=_Transport(deadline, secured),
        mounts=mounts,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},  # set here, because AWS signs all headers of a request
    )


def environment_proxies() -> dict[str, str | None]:
    """Return proxy addresses by pattern of the addresses they serve; None for addresses reached directly.

    The patterns are those of `httpx2.Client(mounts=)`.
    """
    named = getproxies()
    direct = [host.strip() for host in named.get("no", "").split(",")]
    if ALL_HOSTS in direct:
        return {}
    proxies: dict[str, str | None] = {}
    for scheme in ("http", "https", "all"):
        if address := named.get(scheme):
            proxies[f"{scheme}://"] = address if "://" in address else f"http://{address}"
    return proxies | dict.fromkeys(filter(None, map(_no_proxy_pattern, direct)))


def _no_proxy_pattern(host: str) -> str:
    """Return the pattern of one entry of NO_PROXY; "" for an entry that names no host."""
    if "://" in host:
        return host
    try:
        network = ipaddress.ip_network(host, strict=False)
    except ValueError:
        if not host or "/" in host:
            return ""
        exact = host.lower() == "localhost" or host.startswith(("[", "*."))
        return (
            f"all://{host}" if exact else f"all://*{host}"
        )  # `.example.org` stands for its subdomains alone
    if network.version == 4:
        return f"all://{host}"
    address, slash, size = host.partition("/")
    return f"all://[{address}]{slash}{size}"


def _is_pattern(pattern: str) -> bool:
    """Return True if httpx understands an entry of NO_PROXY; like curl, lopen ignores the others."""
    try:
        httpx2.Client(transport=httpx2.BaseTransport(), mounts={pattern: None})
    except httpx2.InvalidURL:
        return False
    return True


def _proxy(address: str) -> httpcore2.Proxy:
    named = httpx2.Proxy(address)
    if named.url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise LopenError(
            f"the proxy {named.url} needs a library that is not installed: socksio",
            hint="Install it with: pip install socksio",
        )
    url = named.url
    return httpcore2.Proxy(
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        auth=named.raw_auth,
    )


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise what httpcore raises as the exception of the same name in httpx, which the SDK knows."""
    try:
        yield
    except _CORE_ERRORS as error:
        known = (getattr(httpx2, kind.__name__, None) for kind in type(error).__mro__)
        raise next(kind for kind in known if kind)(str(error)) from error


class _Transport(httpx2.BaseTransport):
    """A connection pool with bounded answers. A redirect is an error."""

    def __init__(
        self, deadline: Deadline, secured: ssl.SSLContext, proxy: httpcore2.Proxy | None = None
    ) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=secured,
            proxy=proxy,
            keepalive_expiry=IDLE_S,
            network_backend=DeadlineNetwork(deadline),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self._send(request)
        if answer.is_redirect or 300 <= answer.status_code < 400:
            answer.close()
            raise _redirect_refused(answer)
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity", *_ZLIB_BITS):
            answer.close()
            raise TransientFailure(f"the endpoint's answer is compressed ({encoding[:40]!r}), unasked for")
        for name in ("content-encoding", "content-length"):
            if encoding in _ZLIB_BITS and name in answer.headers:
                del answer.headers[name]
        assert isinstance(answer.stream, httpx2.SyncByteStream)
        pieces = (
            _decoded(answer.stream, _ZLIB_BITS[encoding]) if encoding in _ZLIB_BITS else iter(answer.stream)
        )
        if not answer.is_success:
            pieces = _cut(pieces)
        elif "amazon.eventstream" not in answer.headers.get("content-type", ""):
            pieces = _limited_events(pieces)
        answer.stream = _Bounded(pieces, answer.stream)
        return answer

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer with its body still to come, as it is on the wire."""
        assert isinstance(request.stream, httpx2.SyncByteStream)
        url = request.url
        with _httpx_errors():
            answer = self._pool.handle_request(
                httpcore2.Request(
                    request.method,
                    httpcore2.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    """The raw bytes of an answer."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Bounded(httpx2.SyncByteStream):
    """The decoded pieces of an answer, up to the size limit."""

    def __init__(self, pieces: Iterator[bytes], inner: httpx2.SyncByteStream) -> None:
        self._pieces = pieces
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        left = MOST_BYTES
        for piece in self._pieces:
            left -= len(piece)
            if left < 0:
                raise TransientFailure(TOO_LONG)
            yield piece

    def close(self) -> None:
        self._inner.close()


def _decoded(stream: httpx2.SyncByteStream, bits: int) -> Iterator[bytes]:
    """Yield decompressed data in small pieces, whatever the compression ratio is."""
    decoder = zlib.decompressobj(bits)
    try:
        for raw in stream:
            rest = raw
            while rest and not decoder.eof:
                yield decoder.decompress(rest, PIECE_BYTES)
                rest = decoder.unconsumed_tail
    except zlib.error as error:
        raise TransientFailure(f"cannot read the endpoint's answer: {error}") from error


def _cut(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the start of an error's body; the status matters more than a long text."""
    left = MOST_ERROR_BYTES
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _limited_events(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces of an event stream; raises `TransientFailure` if an event is too large."""
    size = lines = 0
    tail = b""  # a blank line may begin in one piece and end in the next
    for piece in pieces:
        first, *others = _BLANK_LINE.split(tail + piece)
        found = [(size + len(first), lines + _lines(first)), *((len(o), _lines(o)) for o in others)]
        if any(s > MOST_EVENT_BYTES or n > MOST_EVENT_LINES for s, n in found):
            raise TransientFailure(TOO_LONG)
        tail = (tail + piece)[-3:]
        size, lines = max(0, found[-1][0] - len(tail)), max(0, found[-1][1] - _lines(tail))
        yield piece


def _lines(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r")


def _redirect_refused(answer: httpx2.Response) -> Rejected:
    """Return the error for a redirect, whose target would receive the whole prompt: the user must decide."""
    location = " ".join(answer.headers.get("location", "").split())[:LONGEST_LOCATION]
    return Rejected(
        f"the model endpoint redirects to {location or 'nowhere'} (HTTP {answer.status_code}); nothing was sent there",
        answer.status_code,
        hint="If that is your endpoint, name it: lopen config set --user model.base_url URL, or ANTHROPIC_BASE_URL.",
    )
