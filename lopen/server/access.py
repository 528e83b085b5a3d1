"""Access to the server: the token, the cookie, links that work once; Host, Origin, and the headers of every answer."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import time
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lopen.application.servers import OPEN, token_mac
from lopen.server.problems import problem

MOST_USED_LINKS = 10_000
_LINK = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{16})\.([0-9a-f]{64})")


class AccessKeys:
    """Checks a request's token, host and origin. Comparisons take the same time for any wrong value."""

    def __init__(self, token: str, port: int, *, clock: Callable[[], float] = time.time) -> None:
        self._token = token
        self._cookie = token_mac(token, "cookie", "")
        self._clock = clock
        self._used: dict[str, float] = {}  # key → when it expires
        self.cookie_name = f"lopen_{port}"  # a browser sends a host's cookies to all its ports

    def allows(self, authorization: str, cookie: str) -> bool:
        """Return True if the request's `Authorization` header, else the value of its cookie, proves the person."""
        scheme, _, given = authorization.partition(" ")
        if authorization:
            return scheme.lower() == "bearer" and _same(given.strip(), self._token)
        return _same(cookie, self._cookie)

    def exchange(self, link_key: str) -> str | None:
        """Return the cookie's value for a link's key that was not used before, else None."""
        match, now = _LINK.fullmatch(link_key), self._clock()
        if match is None or not _same(match[3], token_mac(self._token, "link", f"{match[1]}.{match[2]}")):
            return None
        self._used = {key: until for key, until in self._used.items() if until >= now}
        if float(match[1]) < now or link_key in self._used or len(self._used) >= MOST_USED_LINKS:
            return None
        self._used[link_key] = float(match[1])
        return self._cookie


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _digest(text: str) -> str:
    """Return the name by which a policy allows exactly this inline style."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


STYLE = (
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "body{max-width:34em;margin:18vh auto;padding:0 20px}code{font-size:1.05em}"
)
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' '{_digest(STYLE)}'; img-src 'self' data:; connect-src 'self';"
    " font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"  # no page makes markup or script of text
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
SIGN_IN = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign in · lopen</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style>
<main><h1>{title}</h1><p>{reason} To open this dashboard, run this in a terminal of the machine that serves it:</p>
<p><code>lopen serve --link --open</code></p><p>It prints a link too, for a browser elsewhere.
If you came from another site, <a href="">load this page again</a>.</p></main></html>"""


def _sign_in(title: str, reason: str) -> Response:
    """Return the page for a person whose browser proves nothing."""
    return HTMLResponse(SIGN_IN.format(style=STYLE, title=title, reason=reason), 401)


SAFE = ("GET", "HEAD", "OPTIONS")


def host_allowed(host: str, names: frozenset[str]) -> bool:
    """Return True for an IP address, `localhost`, or one of `names`.

    DNS rebinding needs a name that somebody else controls; it cannot make an address of one.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same_origin(method: str, headers: Headers) -> bool:
    """Return True unless a page of another origin sent the request. The host tells: a proxy may add TLS in front."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None:
        return origin.removeprefix("https://").removeprefix("http://") == headers.get("host", "")
    return site in ("same-origin", "none") or (method in SAFE and headers.get("sec-fetch-mode") == "navigate")


class AccessGate:
    """An ASGI application around the routes, which only sees requests of the person."""

    def __init__(self, app: ASGIApp, *, keys: AccessKeys, names: frozenset[str]) -> None:
        self._app = app
        self._keys = keys
        self._names = frozenset(name.lower() for name in names)  # as a Host header is compared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that no route may see."""
        headers = Headers(scope=scope)
        if not host_allowed(headers.get("host", ""), self._names):
            return problem(421, "this server does not answer to that host name")
        if not _same_origin(scope["method"], headers):
            return problem(403, "requests from other origins are not answered")
        if scope["path"] == OPEN and scope["method"] == "GET":
            return self._opened(scope)
        # Other servers of this host share its cookies: a malformed cookie hides no other.
        cookie = HTTPConnection(scope).cookies.get(self._keys.cookie_name, "")
        if self._keys.allows(headers.get("authorization", ""), cookie):
            return None
        if "text/html" in headers.get("accept", ""):
            return _sign_in(
                "You are not signed in here", "An older sign-in is over, or this browser never had one."
            )
        hint = "send the token as `Authorization: Bearer`, or open the link that `lopen serve --link` prints"
        return problem(
            401, "the request has no valid token", hint=hint, headers={"www-authenticate": "Bearer"}
        )

    def _opened(self, scope: Scope) -> Response:
        """Exchange a link's key for the cookie."""
        query = scope["query_string"].decode("latin-1")
        cookie = self._keys.exchange(query.removeprefix("key="))
        if cookie is None and "text/html" in Headers(scope=scope).get("accept", ""):
            return _sign_in("This link is used up", "A link works once, and for a short time.")
        if cookie is None:
            return problem(
                401, "this link was used before or is too old", hint="for a new one: lopen serve --link"
            )
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self._keys.cookie_name, cookie, max_age=30 * 86_400, httponly=True, samesite="strict"
        )
        return answer
