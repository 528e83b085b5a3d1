"""The structured log: a JSON object a line, redacted, and nobody's work stops for it."""

from __future__ import annotations

import json
from pathlib import Path

from lopen.base.events import ModelText, Notice, Recorded
from lopen.retention.log_rotation import StructuredLog
from lopen.retention.policy import LogLimits
from tests.storage.history import NOW

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
