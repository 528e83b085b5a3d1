"""`lopen serve`: several projects and servers, TLS, warnings, links, and its place in `lopen status`."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import httpx2
import pytest

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
        assert other.lopen("status", "--json").named("status")[0]["servers"][0]["url"] == server.url


def test_several_servers_are_told_apart(project: Project) -> None:
    """Each has its own cookie; `status` names them while they run; a link is made for one that runs."""
    assert project.lopen("status", "--json").named("status")[0]["servers"] == []
    refused = project.lopen("serve", "--link")
    assert refused.code == 1
    assert "lopen serve" in refused.err
    with serving(project) as first, serving(project) as second:
        urls = {e["url"] for e in project.lopen("status", "--json").named("status")[0]["servers"]}
        assert urls == {first.url, second.url}
        assert first.url in project.lopen("status").out
        link = project.lopen("serve", "--link", "--json").named("link")[0]
        owner = first if link["url"] == first.url else second
        with httpx2.Client(base_url=owner.url, trust_env=False) as browser:
            assert browser.get(link["link"]).status_code == 303
            assert browser.get("/healthz").status_code == 200
            [cookie] = browser.cookies
            assert cookie == f"lopen_{owner.url.rpartition(':')[2]}"
        taken = project.lopen("serve", "--port", first.url.rpartition(":")[2])
        assert taken.code == 1
        assert "--port 0" in taken.err
    assert project.lopen("status", "--json").named("status")[0]["servers"] == []


def test_a_second_server_of_the_same_project_names_the_first(project: Project) -> None:
    with serving(project) as server:
        again = project.lopen("serve")
        assert again.code == 0, again.err
        assert f"a server runs already, at {server.url}" in again.out
        assert (
            again.last_line
            == "to open it: lopen serve --link --open; for another server: lopen serve --port 0"
        )


def test_another_address_is_warned_of(project: Project) -> None:
    with serving(project, "--host", "0.0.0.0") as server:  # noqa: S104 - what it warns of
        assert server.get("/healthz")["status"] == "ok"
        assert any("without TLS" in warning for warning in server.warnings)


def test_the_systemd_unit_starts_a_server(project: Project) -> None:
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


def test_a_model_cannot_start_a_server(project: Project) -> None:
    refused = project.lopen("serve", "--port", "0", CLAUDECODE="1")
    assert refused.code == 1
    assert "person's command" in refused.err
