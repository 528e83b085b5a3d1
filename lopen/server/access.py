"""Who may speak to the server: the token, the cookie, and links that work once."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from lopen.application.servers import token_mac

MOST_USED_LINKS = 10_000
_LINK = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{16})\.([0-9a-f]{64})")


class AccessKeys:
    """Checks what a request brings. Comparisons take the same time for any wrong value."""

    def __init__(self, token: str, port: int, *, clock: Callable[[], float] = time.time) -> None:
        self._token = token
        self._cookie = token_mac(token, "cookie", "")
        self._clock = clock
        self._used: dict[str, float] = {}  # key → when it expires
        self.cookie_name = f"lopen_{port}"  # a browser sends a host's cookies to all its ports

    def allows(self, authorization: str, cookie: str) -> bool:
        """Return True if the request's `Authorization` or `Cookie` header proves the person."""
        scheme, _, given = authorization.partition(" ")
        if authorization:
            return scheme.lower() == "bearer" and _same(given.strip(), self._token)
        return _same(self._cookie_in(cookie), self._cookie)

    def _cookie_in(self, header: str) -> str:
        try:
            found = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return ""
        return found.value if found else ""

    def exchange(self, link_key: str) -> str | None:
        """Return the cookie's value for a link's key that was not used before, else None."""
        match, now = _LINK.fullmatch(link_key), self._clock()
        if match is None or not _same(match[3], token_mac(self._token, "link", f"{match[1]}.{match[2]}")):
            return None
        if float(match[1]) < now or link_key in self._used or len(self._used) >= MOST_USED_LINKS:
            return None
        self._used = {key: until for key, until in self._used.items() if until >= now}
        self._used[link_key] = float(match[1])
        return self._cookie


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
