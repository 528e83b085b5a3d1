from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from lopen.claude_hooks.answers import EVENTS
from lopen.claude_hooks.install import install, settings_path, uninstall
from lopen.core.errors import LopenError
from tests.project import Project

THEIRS = {
    "model": "opus",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh ü"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
}

MEMORY = Path("/dev/shm")


def written(project: Path, content: object) -> Path:
    path = settings_path(project)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_hooks_are_merged_and_only_they_are_taken_out(tmp_path: Path) -> None:
    path = written(tmp_path, THEIRS)
    install(tmp_path, "'/a b/python' -m lopen")
    install(tmp_path, "lopen")
    settings = json.loads(path.read_text())
    assert settings["model"] == "opus"
    assert settings["hooks"]["Stop"][:1] == THEIRS["hooks"]["Stop"]  # type: ignore[index] # a literal above
    first, second = settings["hooks"]["PreToolUse"]
    assert first["matcher"] == "Bash"
    assert second["hooks"][0]["command"].endswith(" -I -m lopen hook pre-tool-use; lopen hook pre-tool-use")
    assert set(EVENTS.values()) == set(settings["hooks"])

    path.write_text(path.read_text().replace("opus", "sonnet"))
    assert uninstall(tmp_path) == (path, True)
    assert json.loads(path.read_text()) == THEIRS | {"model": "sonnet"}
    assert uninstall(tmp_path) == (path, False)
    assert list(path.parent.iterdir()) == [path]


def test_the_command_of_the_client_comes_and_goes_with_the_hooks(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "commands" / "circuit-status.md"
    install(tmp_path, "/old/bin/python -m lopen")
    install(tmp_path, "lopen")
    assert "!`lopen circuit status`" in file.read_text()
    uninstall(tmp_path)
    assert not file.parent.exists()
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    install(tmp_path, "lopen")
    uninstall(tmp_path)
    assert file.read_text() == "mine"


@pytest.mark.skipif(not MEMORY.is_dir(), reason="there is no second file system to link to")
def test_a_file_that_is_a_link_to_another_file_system_stays_one(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as elsewhere:
        target = Path(elsewhere, "settings.json")
        target.write_text('{"model": "opus"}')
        path = written(tmp_path, "")
        path.unlink()
        path.symlink_to(target)
        install(tmp_path, "lopen")
        uninstall(tmp_path)
        assert path.is_symlink()
        assert json.loads(target.read_text()) == {"model": "opus"}


@pytest.mark.parametrize(
    "content", ["{'model': 1}", "", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "{" * 10_000]
)
def test_a_malformed_file_is_left_as_it_is_and_said(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, content)
    for change in (install, uninstall):
        with pytest.raises(LopenError, match=r"settings\.json") as raised:
            change(tmp_path)
        assert "left as it is" in raised.value.hint
    assert path.read_text() == content
    assert list(path.parent.iterdir()) == [path]


def test_hooks_in_a_project_without_a_state_folder_have_one_made(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    ran = project.lopen("hooks", "install")
    assert ran.code == 0, ran.err
    assert "created " in ran.out
    assert project.git("status", "--porcelain", "--untracked-files=all").split() == [
        *["??", ".claude/commands/circuit-status.md"],
        *["??", ".claude/settings.json"],
    ]
    event = {"session_id": "abc", "tool_name": "Read", "tool_input": {"file_path": "a"}}
    said = [project.lopen("hook", "pre-tool-use", stdin=json.dumps(event)).out for _ in range(5)]
    assert ["deny" in out for out in said] == [False] * 4 + [True]
    assert "created " not in project.lopen("hooks", "install").out


def test_odd_entries_of_others_survive(tmp_path: Path) -> None:
    odd = {"hooks": {"PreToolUse": ["text", {"matcher": "x"}, {"hooks": ["odd", {"command": 5}]}], "Own": []}}
    path = written(tmp_path, odd)
    install(tmp_path, "lopen")
    uninstall(tmp_path)
    assert json.loads(path.read_text()) == odd
