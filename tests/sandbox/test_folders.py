"""What of a home is shown again for tools to work, and what of the machine is covered."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.sandbox.folders import (
    hidden_folders,
    home_folders,
    inside,
    outermost,
    tool_folders,
    visible_credentials,
)
from lopen.sandbox.known_secrets import configured_credentials
from lopen.sandbox.landlock import uncovered_trees


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (
        ".cargo/bin",
        ".local/bin",
        ".ssh",
        "bin",
        "opt/node/bin",
        "opt/node/lib",
        ".fancy/v1/bin",
        "work/p",
    ):
        (tmp_path / "home" / name).mkdir(parents=True)
    (tmp_path / "home/.cargo/credentials.toml").touch()
    return tmp_path / "home"


def shown(home: Path, *path: str) -> set[str]:
    environ = {"HOME": str(home), "PATH": ":".join(str(home / p) for p in path)}
    found = tool_folders(environ, [home], [home], home / "work/p")
    return {str(folder.relative_to(home)) for folder in found if inside(folder, home)}


def test_known_tools_are_shown_and_nothing_else(home: Path) -> None:
    assert shown(home) == {".cargo", ".local/bin"}


def test_a_folder_on_the_path_brings_what_its_programs_need(home: Path) -> None:
    assert shown(home, "opt/node/bin") == {".cargo", ".local/bin", "opt/node/bin", "opt/node/lib"}
    assert shown(home, ".fancy/v1/bin") == {".cargo", ".local/bin", ".fancy"}
    assert shown(home, "bin") == {".cargo", ".local/bin", "bin"}


def test_a_virtual_environment_on_the_path_is_shown_whole(home: Path) -> None:
    (home / "envs/one/bin").mkdir(parents=True)
    (home / "envs/one/pyvenv.cfg").touch()
    assert shown(home, "envs/one/bin") == {".cargo", ".local/bin", "envs/one"}


def test_the_path_shows_neither_a_home_nor_credentials(home: Path) -> None:
    for entry in ("", ".ssh", "..", "work/p/bin", "work"):
        assert shown(home, entry) <= {".cargo", ".local/bin", "work"}


def test_credentials_in_a_shown_tool_are_covered(home: Path) -> None:
    covered = visible_credentials([home], [home / ".cargo"], [home])
    assert home / ".cargo/credentials.toml" in covered
    assert home / ".ssh" not in covered  # it is hidden already


def test_homes_are_hidden_as_a_whole(home: Path) -> None:
    assert home in home_folders({"HOME": str(home)})
    hidden = hidden_folders([home])
    assert any(inside(home, h) for h in hidden)
    assert any(inside(Path("/root"), h) for h in hidden)
    assert outermost([Path("/a/b"), Path("/a"), Path("/ab")]) == (Path("/a"), Path("/ab"))


def test_the_fewest_trees_hold_all_but_what_is_hidden(tmp_path: Path) -> None:
    for name in ("a/x", "a/y", "b", "c/d/e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    assert uncovered_trees(tmp_path, {tmp_path / "a/x"}) == [str(tmp_path / n) for n in ("a/y", "b", "c")]
    assert uncovered_trees(tmp_path, set()) == [str(tmp_path)]
    assert uncovered_trees(tmp_path, {tmp_path}) == []


def test_credentials_that_variables_name_are_covered_wherever_they_lie(tmp_path: Path) -> None:
    place, project = tmp_path / "elsewhere", tmp_path / "project"
    files = (
        "aws",
        "kube1",
        "kube2",
        "gcp.json",
        "cargo/credentials.toml",
        "data/lopen/seal.key",
        "config/gh/hosts.yml",
    )
    for name in (*files, "cargo/bin/tool", "data/other"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    project.mkdir()
    (project / "key.json").touch()
    (tmp_path / "link").symlink_to(place / "gcp.json")
    environ = {
        "AWS_SHARED_CREDENTIALS_FILE": str(place / "aws"),
        "KUBECONFIG": f"{place / 'kube1'}:{place / 'kube2'}",
        "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "link"),
        "CARGO_HOME": str(place / "cargo"),
        "XDG_DATA_HOME": str(place / "data"),
        "XDG_CONFIG_HOME": str(place / "config"),
        "NETRC": str(project / "key.json"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "DOCKER_CONFIG": "/etc",
        "PIP_CONFIG_FILE": "relative",
        "TF_CLI_CONFIG_FILE": f"/{'x' * 300}/terraformrc",  # one that the system refuses to look at
    }

    named = configured_credentials(environ, project)

    covered = ("aws", "cargo/credentials.toml", "config", "data/lopen", "gcp.json", "kube1", "kube2")
    assert named == tuple(place / name for name in covered)
    assert set(named) <= set(visible_credentials([], [project], [], named))
    assert not set(named) & set(visible_credentials([], [project], [tmp_path], named))  # hidden already
