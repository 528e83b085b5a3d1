"""Which folder is the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.application import command_context
from lopen.application.command_context import find_root
from lopen.cli.command import open_context
from lopen.cli.parameters import Invocation
from lopen.core.errors import WrongUsage
from tests.cli.conftest import Lopen, json_lines


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    return folder


def test_the_nearest_marker_counts(deep: Path, tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir()
    assert find_root(deep) == tmp_path / "a"
    (deep.parent / ".lopen").mkdir()
    assert find_root(deep) == deep.parent


def test_git_may_be_a_file_and_lopen_may_not(deep: Path, tmp_path: Path) -> None:
    (deep.parent / ".lopen").write_text("")
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere")
    assert find_root(deep) == tmp_path / "a"


def test_a_marker_of_somebody_else_does_not_count(
    deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (deep.parent / ".lopen").mkdir()
    (tmp_path / "a" / ".git").mkdir()
    real = command_context._is_own
    monkeypatch.setattr(
        command_context, "_is_own", lambda path: path != deep.parent / ".lopen" and real(path)
    )
    assert find_root(deep) == tmp_path / "a"


def test_a_folder_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="no such folder"):
        open_context(Invocation(project=tmp_path / "none"))


def test_the_project_may_be_named_before_or_after_the_command(
    lopen: Lopen, project: Path, tmp_path: Path
) -> None:
    inside = project / "src"
    inside.mkdir()
    for arguments in (
        ("-C", str(inside), "config", "show", "--json"),
        ("config", "show", "--json", "-C", str(inside)),
        ("config", "-C", str(inside), "show", "--json"),
        ("config", "-C", str(inside), "--json", "show"),
    ):
        first = json_lines(lopen(*arguments, cwd=tmp_path).stdout)[0]
        assert first["path"] == str(project / ".lopen" / "config.toml")
