"""The compose file and the systemd unit of the page about many modules."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import yaml

from lopen.settings.schema import Settings
from tests.project import TIMEOUT_S, Project
from tests.ran import HERE

PAGE = (HERE / "docs/many-modules.md").read_text("utf-8")


def block(language: str, begin: str) -> str:
    """Return the block of the page that begins so."""
    [found] = re.findall(rf"```{language}\n({re.escape(begin)}.*?)```", PAGE, re.DOTALL)
    return str(found)


UNIT = block("ini", "# ~/.config/systemd")
SERVICES = yaml.safe_load(block("yaml", "# compose.yaml"))["services"]


def test_their_commands_and_variables_are_ones_of_lopen(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    unit.read_string(UNIT)
    lines = [SERVICES["worker"]["command"], unit["Service"]["ExecStart"].rpartition("/")[2]]
    project = Project(tmp_path / "project")
    for line in lines:
        program, *words = line.split()
        assert program == "lopen"
        assert project.lopen(*words, "--help").code == 0
    names = {*SERVICES["worker"]["environment"], *re.findall(r"LOPEN_\w+", PAGE)}
    for name in names - {"ANTHROPIC_API_KEY"}:
        room, _, setting = name.removeprefix("LOPEN_").lower().partition("__")
        assert setting in type(getattr(Settings(), room)).model_fields, name


def test_a_worker_has_the_time_to_finish_its_turn_and_alone_is_told_to_end() -> None:
    assert SERVICES["worker2"] == SERVICES["worker"] | {"volumes": ["./project2:/project"]}
    assert SERVICES["worker"]["stop_grace_period"] == "2m"
    assert {"TimeoutStopSec=120", "KillMode=mixed"} <= set(UNIT.splitlines())


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:  # a container has none
        return
    unit = tmp_path / "lopen-worker.service"
    unit.write_text(UNIT.replace("%h/.local/bin/lopen", "/bin/true").replace("%h", "/root"), "utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    told = [line for line in checked.stderr.splitlines() if str(unit.name) in line]
    assert told == [], checked.stderr
