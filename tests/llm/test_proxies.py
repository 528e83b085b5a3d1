"""Which proxies the environment names for which addresses."""

from __future__ import annotations

import pytest

from lopen.llm.transport import environment_proxies


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
