"""Logs are rotated by size, lines and age; no line is lost, whoever dies wherever."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.day import measured
from lopen.core.events import ModelText, Notice, Recorded
from lopen.store.log_rotation import LogFile, LogLimits, StructuredLog, log_names

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = 10_000  # rotations kept where a test counts lines


def line(text: str, at: datetime = NOW) -> str:
    return json.dumps({"ts": at.isoformat(), "n": text})


def rotation_texts(folder: Path) -> list[str]:
    return [gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.glob("*.jsonl.gz"))]


def every_line(folder: Path) -> list[str]:
    """What the log and its rotations hold, set-aside files included, oldest first."""
    aside = [path.read_text() for path in sorted(folder.glob("log.*.jsonl"))]
    live = (folder / "log.jsonl").read_text() if (folder / "log.jsonl").exists() else ""
    return "".join([*rotation_texts(folder), *aside, live]).splitlines()


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


def test_a_clock_set_back_makes_no_rotation_older_than_its_predecessor(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log.jsonl", LogLimits(max_lines=1, keep=2))
    for n, at in enumerate((NOW, NOW, NOW - timedelta(days=30), NOW - timedelta(days=60))):
        log.write(str(n), at)
    assert every_line(tmp_path) == ["1", "2", "3"]


@pytest.mark.parametrize(
    "stamp", ["99991231T235959999999Z", "99999999T999999999999Z", "00000000T000000000000Z"]
)
def test_a_rotation_named_by_somebody_else_stops_no_log(tmp_path: Path, stamp: str) -> None:
    (tmp_path / f"log.{stamp}.jsonl.gz").write_bytes(gzip.compress(b"theirs\n"))
    log = LogFile(tmp_path / "log.jsonl", LogLimits(max_lines=1))
    for n in range(3):
        log.write(str(n), NOW)
    assert sorted(every_line(tmp_path)) == ["0", "1", "2", "theirs"]


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


def test_logs_are_found_by_what_is_left_of_them(tmp_path: Path) -> None:
    for name in (
        "a.jsonl",
        "b.c.20260301T120000000000Z.jsonl.gz",
        "d.20260301T120000000000Z.jsonl",
        ".e.jsonl.x",
    ):
        (tmp_path / name).write_text("")
    assert log_names(tmp_path) == ["a.jsonl", "b.c.jsonl", "d.jsonl"]


class Crash(BaseException):
    """The process is gone."""


STEPS = ("rename", "replace", "fsync", "unlink")


@contextmanager
def crashing(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[None]:
    """The `at`-th step that changes the disk is the last: a crash before it."""
    left = at

    def step(real: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash
            return real(*arguments, **named)

        return called

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, step(getattr(os, name)))
        yield


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    writers=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    most=st.integers(1, 6),
    crashes=st.sets(st.tuples(st.integers(0, 59), st.integers(0, 6)), max_size=8),
)
def test_rotation_loses_no_line_and_doubles_none_wherever_a_writer_dies(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    writers: list[int],
    most: int,
    crashes: set[tuple[int, int]],
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    limits = LogLimits(max_lines=most, keep=ALL)
    logs = [LogFile(folder / "log.jsonl", limits) for _ in range(3)]
    deaths = dict(crashes)
    acknowledged = []
    for n, writer in enumerate(writers):
        if n in deaths:
            try:
                with crashing(monkeypatch, deaths[n]):
                    logs[writer].write(str(n), NOW)
            except Crash:
                logs[writer] = LogFile(folder / "log.jsonl", limits)
                continue
        else:
            logs[writer].write(str(n), NOW)
        acknowledged.append(str(n))
    logs[0].rotate_if_due(NOW)
    found = every_line(folder)
    assert not list(folder.glob("log.*Z.jsonl"))
    assert len(found) == len(set(found))
    assert [n for n in found if n in set(acknowledged)] == acknowledged


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


CALLS = 4_800  # `python -m bench day` lives through the whole million


def test_a_long_session_stays_under_five_megabytes_and_its_process_under_a_hundred_and_fifty() -> None:
    found = measured(CALLS)
    assert found["calls"] == CALLS
    assert found["state_mb"] < 2.5, "half of what is allowed, long before the day is over"
    assert found["peak_mib"] < 150
    assert found["kept"] <= 2_100, "older calls are deleted"
