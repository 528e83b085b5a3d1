"""Logs are rotated by size, lines and age; no line is lost, whoever dies wherever."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lopen.core.events import ModelText, Notice, Recorded
from lopen.store.log_rotation import LogFile, LogLimits, StructuredLog

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = 10_000  # rotations kept where a test counts lines


def line(text: str, at: datetime = NOW) -> str:
    return json.dumps({"ts": at.isoformat(), "n": text})


def rotation_texts(folder: Path) -> list[str]:
    return [gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.glob("*.jsonl.gz"))]


def every_line(folder: Path) -> list[str]:
    """What the log and its rotations hold, oldest first."""
    live = (folder / "log.jsonl").read_text() if (folder / "log.jsonl").exists() else ""
    return "".join([*rotation_texts(folder), live]).splitlines()


def test_a_log_is_rotated_before_it_passes_fifty_kilobytes(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "lopen.jsonl", LogLimits())
    written = [line(f"{n:05}" + "x" * 500) for n in range(120)]
    rotated = [log.write(text, NOW) for text in written]
    assert sum(rotated) == 1
    (packed,) = tmp_path.glob("*.gz")
    assert packed.name == "lopen.20260301T120000000000Z.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()).decode()
    assert 49 * 1024 < len(text) <= 50 * 1024
    assert text + log.path.read_text() == "".join(f"{w}\n" for w in written)


@pytest.mark.parametrize(
    ("age", "rotated"), [(timedelta(days=6), False), (timedelta(days=7, seconds=1), True)]
)
def test_a_log_is_rotated_after_seven_days(tmp_path: Path, age: timedelta, rotated: bool) -> None:
    log = LogFile(tmp_path / "lopen.jsonl", LogLimits())
    log.write(line("first"), NOW)
    assert log.rotate_if_due(NOW + age) is rotated


def test_five_rotations_are_kept(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "lopen.jsonl", LogLimits(max_lines=2))
    for n in range(21):
        log.write(str(n), NOW + timedelta(seconds=n))
    assert rotation_texts(tmp_path) == ["10\n11\n", "12\n13\n", "14\n15\n", "16\n17\n", "18\n19\n"]


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "lopen.jsonl", LogLimits())
    log.write("whole", NOW)
    with log.path.open("a") as file:
        file.write('{"cut')
    log.write("next", NOW)
    assert log.path.read_text().splitlines() == ["whole", '{"cut', "next"]


def test_a_link_in_place_of_a_log_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "lopen.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"lopen\.jsonl"):
        LogFile(tmp_path / "lopen.jsonl", LogLimits()).write("secret", NOW)
    assert (tmp_path / "elsewhere").read_text() == ""


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("step", ["rename", "unlink"])
def test_a_process_that_dies_while_it_rotates_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def die(*_arguments: object, **_named: object) -> None:
        raise Crash

    limits = LogLimits(max_lines=2)
    for n in ("0", "1"):
        LogFile(tmp_path / "log.jsonl", limits).write(n, NOW)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, die)
        with pytest.raises(Crash):
            LogFile(tmp_path / "log.jsonl", limits).write("2", NOW)
    LogFile(tmp_path / "log.jsonl", limits).write("3", NOW)
    assert sorted(set(every_line(tmp_path))) == ["0", "1", "3"]


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from lopen.store.log_rotation import LogFile, LogLimits
log = LogFile(Path(sys.argv[1]), LogLimits(max_lines=7, keep=10_000))
for n in range(150):
    log.write(f"{sys.argv[2]}-{n}", datetime.now(UTC))
"""


def test_processes_that_write_side_by_side_lose_no_line(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "log.jsonl"), name], env=environment)
        for name in "abc"
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    found = every_line(tmp_path)
    assert len(found) == 450
    for name in "abc":
        assert [text for text in found if text.startswith(name)] == [f"{name}-{n}" for n in range(150)]


ID = "calc-20260301-1"


def log_in(folder: Path, warnings: list[str]) -> StructuredLog:
    return StructuredLog(
        folder, LogLimits(), redact=lambda text: text.replace("hunter2", "***"), warn=warnings.append
    )


def test_every_kept_event_is_a_line_without_secrets(tmp_path: Path) -> None:
    log = log_in(tmp_path / "logs", [])
    for event in (
        Notice("info", "the password is hunter2"),
        ModelText("streamed"),
        Notice("error", "two\nlines"),
    ):
        log(Recorded(NOW, ID, event, 1))
    lines = [json.loads(line) for line in (tmp_path / "logs" / "lopen.jsonl").read_text().splitlines()]
    assert [(line["event"], line["session"], line["message"]) for line in lines] == [
        ("notice", ID, "the password is ***"),
        ("notice", ID, "two\nlines"),
    ]
    assert lines[0]["ts"] == "2026-03-01T12:00:00.000Z"
    assert (tmp_path / "logs" / "lopen.jsonl").stat().st_mode & 0o077 == 0


def test_a_log_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    warnings: list[str] = []
    (tmp_path / "logs").write_text("in the way")
    log = log_in(tmp_path / "logs", warnings)
    for _ in range(3):
        log(Recorded(NOW, ID, Notice("info", "x"), 1))
    assert len(warnings) == 1
    assert "the work continues without it" in warnings[0]
