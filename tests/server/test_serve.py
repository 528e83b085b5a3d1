"""`lopen serve`: several projects and servers, TLS, warnings, links, and its place in `lopen status`."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.needs import lacking
from tests.project import Project
from tests.ran import HERE
from tests.server.serving import serving


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path / "shop")
    found.specify()
    return found


def test_one_server_serves_several_projects(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "more" / "shop")
    other.specify("other")
    with serving(project, str(project.root), str(other.root)) as server:
        names = [(p["project"], p["root"]) for p in server.get("/api/projects")["projects"]]
        assert names == [("shop", str(project.root)), ("shop-2", str(other.root))]
        assert [m["module"] for m in server.get("/api/modules")["modules"]] == ["calc"]
        assert [m["module"] for m in server.get("/api/modules?project=shop-2")["modules"]] == ["other"]
        assert server.client.get("/api/modules?project=none").status_code == 404
        assert other.lopen("status", "--json").named("server")[0]["url"] == server.url


def opened_link(project: Project, folder: Path) -> dict[str, Any]:
    """The link that `--link --open` tells and gives to the person's browser."""
    opener, opened = folder / "bin" / "xdg-open", folder / "opened"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n', "utf-8")
    opener.chmod(0o755)
    programs = f"{opener.parent}{os.pathsep}{os.environ['PATH']}"
    link = project.lopen("serve", "--link", "--open", "--json", PATH=programs).named("link")[0]
    deadline = time.monotonic() + 20
    while not opened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert opened.read_text("utf-8").strip() == link["link"]
    return link


def test_several_servers_are_told_apart(project: Project, tmp_path: Path) -> None:
    """Each has its own cookie; `status` names them while they run; a link is made, and opened, for one that runs."""
    assert project.lopen("status", "--json").named("server") == []
    refused = project.lopen("serve", "--link")
    assert refused.code == 1
    assert "lopen serve" in refused.err
    with serving(project) as first, serving(project) as second:
        urls = {e["url"] for e in project.lopen("status", "--json").named("server")}
        assert urls == {first.url, second.url}
        assert first.url in project.lopen("status").out
        link = opened_link(project, tmp_path)
        owner = first if link["url"] == first.url else second
        with httpx2.Client(base_url=owner.url, trust_env=False) as browser:
            assert browser.get(link["link"]).status_code == 303
            assert browser.get("/healthz").status_code == 200
            [cookie] = browser.cookies
            assert cookie == f"lopen_{owner.url.rpartition(':')[2]}"
        taken = project.lopen("serve", "--port", first.url.rpartition(":")[2])
        assert taken.code == 1
        assert "--port 0" in taken.err
    assert project.lopen("status", "--json").named("server") == []


def test_another_address_is_warned_of_and_spoken_to_over_tls(project: Project, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        lacking("openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    made += [
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:build.example",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    with serving(project, "--host", "0.0.0.0") as open_server:  # noqa: S104 - what it warns of
        assert open_server.get("/healthz")["status"] == "ok"
        assert any("without TLS" in warning for warning in open_server.warnings)
    options = ("--cert", str(cert), "--key", str(key), "--name", "build.example")
    with serving(project, *options) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(base_url=server.url, verify=trusting, trust_env=False) as client:
            right = {"authorization": f"Bearer {server.token}"}
            assert client.get("/healthz", headers=right).status_code == 200
            named = {"host": "build.example", "origin": "https://build.example"}
            assert client.get("/healthz", headers=right | named).status_code == 200
            assert "secure" in client.get(server.link).headers["set-cookie"].lower()
    for wrong, words in (((*options[:2],), "belong together"), ((*options[:3], str(cert)), "PEM")):
        refused = project.lopen("serve", "--port", "0", *wrong)
        assert refused.code in (1, 2)
        assert words in refused.err


def test_the_systemd_unit_starts_a_server(project: Project, tmp_path: Path) -> None:
    """The unit is right for systemd where that is installed; its command serves the project of its folder."""
    text = (HERE / "docs" / "serving" / "lopen-serve.service").read_text("utf-8")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names have capitals
    unit.read_string(text)
    service = unit["Service"]
    assert (service["Restart"], service["KillMode"]) == ("on-failure", "process")  # runs that it started stay
    program, *arguments = shlex.split(service["ExecStart"])
    assert (program, arguments[0]) == ("%h/.local/bin/lopen", "serve")
    port = arguments.index("--port")
    with serving(project, *arguments[1:port], "--port", "0", *arguments[port + 2 :]) as server:
        assert server.get("/api/projects")["projects"][0]["root"] == str(project.root)
    if shutil.which("systemd-analyze") is not None:
        file = tmp_path / "lopen-serve.service"
        here = text.replace("%h/.local/bin/lopen", sys.executable).replace("%h/PROJECT", str(project.root))
        file.write_text(here, "utf-8")
        verified = subprocess.run(
            ["systemd-analyze", "--user", "verify", str(file)],
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (verified.returncode, verified.stderr) == (0, "")


def test_a_model_cannot_start_a_server(project: Project) -> None:
    refused = project.lopen("serve", "--port", "0", CLAUDECODE="1")
    assert refused.code == 1
    assert "person's command" in refused.err
