"""The proxies that the environment names, as patterns of addresses (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""

from __future__ import annotations

import ipaddress
from urllib.request import getproxies

ALL_HOSTS = "*"


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
    return proxies | dict.fromkeys(filter(None, map(_pattern, direct)))


def _pattern(host: str) -> str:
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
