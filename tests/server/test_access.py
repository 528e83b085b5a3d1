"""Who may use the server: nobody without the token, no other origin, no other host name, no slow or large request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.project import Project
from tests.server.serving import Server, serving, started


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path / "project")
    found.specify()
    return found


def test_only_the_person_reaches_the_routes(project: Project) -> None:
    with serving(project, "--name", "MyBox") as server:
        check_refusals(server)
        check_token_file(project, server)
        check_large_requests(server)


def check_refusals(server: Server) -> None:
    port = server.url.rpartition(":")[2]
    right = {"authorization": f"Bearer {server.token}"}
    extend = "/api/budget/module:calc/reset"
    cases = [
        ("GET", "/healthz", {}, 401),
        ("GET", "/openapi.json", {}, 401),
        ("GET", "/metrics", {}, 401),
        ("GET", "/", {}, 401),
        ("GET", "/no/such/path", {}, 401),
        ("POST", extend, {}, 401),
        ("GET", "/healthz", {"authorization": "Bearer wrong"}, 401),
        ("GET", "/healthz", {"authorization": f"Basic {server.token}"}, 401),
        ("GET", f"/healthz?token={server.token}", {}, 401),
        ("GET", "/healthz", {"cookie": f"lopen_{port}={server.token}"}, 401),
        ("GET", "/healthz", right, 200),
        ("GET", "/healthz", right | {"host": "attacker.example"}, 421),
        ("GET", "/healthz", right | {"host": f"127.0.0.1.attacker.example:{port}"}, 421),
        ("GET", "/healthz", right | {"host": f"localhost:{port}"}, 200),
        ("GET", "/healthz", right | {"host": f"[::1]:{port}"}, 200),
        ("GET", "/healthz", right | {"host": f"mybox:{port}"}, 200),
        ("GET", "/open?key=1.AAAAAAAAAAAAAAAA." + "0" * 64, {"host": "attacker.example"}, 421),
        ("POST", extend, right | {"origin": "https://attacker.example"}, 403),
        ("POST", extend, right | {"origin": "null"}, 403),
        ("POST", extend, right | {"origin": f"http://127.0.0.1:{int(port) ^ 1}"}, 403),
        ("POST", extend, right | {"sec-fetch-site": "cross-site"}, 403),
        ("POST", extend, right | {"sec-fetch-site": "same-site"}, 403),
        ("GET", "/api/modules", right | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ("POST", extend, right | {"origin": server.url, "sec-fetch-site": "same-origin"}, 404),
        ("OPTIONS", extend, right | {"origin": "https://attacker.example"}, 403),
        ("DELETE", "/api/modules", right, 405),
        ("GET", "/api/modules/..%2F..%2Fetc/specification", right, 404),
        ("GET", "/api/modules/%2e%2e/specification", right, 404),
        ("GET", "/api/modules/calc/tasks/..%2f..%2fstate.db", right, 404),
        ("GET", "/api/sessions/%00", right, 404),
        ("GET", "/api/sessions/..", right, 404),
        ("GET", "/api/budget/" + "x" * 300, right, 422),
    ]
    with httpx2.Client(base_url=server.url, trust_env=False) as client:
        for method, path, headers, status in cases:
            answer = client.request(method, path, headers=headers)
            assert answer.status_code == status, (method, path, headers, answer.text)
            assert "access-control-allow-origin" not in answer.headers
            assert "unsafe" not in answer.headers["content-security-policy"]
            if status >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["status"] == status


def test_a_link_opens_once_and_the_cookie_stays_over_restarts(project: Project) -> None:
    server = started(project)
    with httpx2.Client(base_url=server.url, trust_env=False) as browser:
        try:
            opened = browser.get(server.link)
            assert (opened.status_code, opened.headers["location"]) == (303, "/")
            cookie = opened.headers["set-cookie"].lower()
            assert all(word in cookie for word in ("httponly", "samesite=strict"))
            assert server.token not in cookie
            assert browser.get("/api/modules").status_code == 200
            # Cookies of other servers on this host come first, in forms that no standard knows
            cookies = f'a={{"x":1}}; theme; b[c]=d e; {opened.headers["set-cookie"].partition(";")[0]}'
            beside = httpx2.get(server.url + "/api/modules", headers={"cookie": cookies}, trust_env=False)
            assert beside.status_code == 200
            again = httpx2.get(server.link, trust_env=False)
            assert again.status_code == 401
            assert "lopen serve --link" in again.json()["hint"]
            altered = server.link[:-1] + ("0" if server.link[-1] != "0" else "1")
            assert httpx2.get(altered, trust_env=False).status_code == 401
            assert server.end()[0] == 0
            port = server.url.rpartition(":")[2]
            with serving(project, "--port", port):
                assert browser.get("/api/modules").status_code == 200
            with serving(project, "--port", port, "--new-token") as third:
                assert third.token != server.token
                assert browser.get("/api/modules").status_code == 401
                assert (
                    httpx2.get(
                        third.url + "/healthz",
                        headers={"authorization": f"Bearer {server.token}"},
                        trust_env=False,
                    ).status_code
                    == 401
                )
        finally:
            server.process.kill()


def check_token_file(project: Project, server: Server) -> None:
    folder = Path(project.environment()["XDG_DATA_HOME"], "lopen", "servers")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert server.token not in "".join(p.read_text("utf-8") for p in folder.glob("*.json"))
    assert not [p for p in project.root.rglob("*") if p.is_file() and server.token.encode() in p.read_bytes()]


def check_large_requests(server: Server) -> None:
    """Ten megabytes are refused, announced or not."""
    path = "/api/modules/calc/approve"

    def pieces() -> Iterator[bytes]:
        yield b'{"spec_hash": "'
        for _ in range(160):
            yield b"0" * 65_536

    assert (
        server.client.post(
            path, content=b"0" * 10_000_000, headers={"content-type": "application/json"}
        ).status_code
        == 413
    )
    with suppress(httpx2.TransportError):  # refused before it was sent whole
        sent = server.client.post(path, content=pieces(), headers={"content-type": "application/json"})
        assert sent.status_code == 413
    assert server.get("/healthz")["status"] == "ok"
