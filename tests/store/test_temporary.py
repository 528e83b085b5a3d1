"""Private folders: gone with their owner, and after a kill with the next one who makes any."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lopen.store import temporary
from lopen.store.temporary import LOCK_NAME, PREFIX, TemporaryFolder, remove_abandoned

CODE = """
import sys
from lopen.store.temporary import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "objects").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder in which everything is old at once."""
    monkeypatch.setattr(temporary, "GRACE_PERIOD_S", -1.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def other(where: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(where)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_one_that_is_held_stays_and_one_of_a_killed_process_goes(where: Path) -> None:
    mine = TemporaryFolder()
    process, path = other(where)
    try:
        assert remove_abandoned(where) == ()
        assert path.is_dir()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert remove_abandoned(where) == (path,)
    finally:
        process.kill()
        process.wait()
    assert not path.exists()
    assert mine.path.is_dir()
    assert mine.path.stat().st_mode & 0o777 == 0o700
    mine.remove()
    mine.remove()
    assert list(where.iterdir()) == []


def test_what_is_not_certainly_an_abandoned_one_stays(
    where: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / LOCK_NAME).touch()
    (where / f"{PREFIX}link").symlink_to(elsewhere)
    (where / f"{PREFIX}file").touch()
    (where / f"{PREFIX}full").mkdir()
    (where / f"{PREFIX}full" / "x").touch()
    (where / f"{PREFIX}piped").mkdir()
    (where / f"{PREFIX}piped" / LOCK_NAME).symlink_to(elsewhere / LOCK_NAME)
    (where / f"{PREFIX}empty").mkdir()
    assert remove_abandoned(where) == (where / f"{PREFIX}empty",)
    assert len(list(where.iterdir())) == 4
    assert (elsewhere / LOCK_NAME).exists()
