"""What the report tells of limits, what is kept, and what was freed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from lopen.application.memory_report import memory_report, report_lines
from lopen.core.clock import FakeClock
from lopen.limits.records import Alert
from lopen.limits.sqlite_store import SqliteStore
from lopen.settings.schema import Settings
from lopen.store.log_rotation import LogFile, LogLimits
from lopen.store.sessions import SessionStore
from tests.store.conftest import MakeUpkeep
from tests.store.history import NOW, lived, many


def test_everything_kept_stands_against_its_limit(
    store: SessionStore, folder: Path, make_upkeep: MakeUpkeep, clock: FakeClock
) -> None:
    many(store, 13)
    lived(store, "calc-20260301-14", task="calc-t14", at=NOW + timedelta(hours=1), finished=False)
    log = LogFile(folder / "logs" / "lopen.jsonl", LogLimits())
    for n in range(1_005):
        log.write(str(n), NOW)
    limits = SqliteStore(store.database)
    for n in range(120):
        alert = Alert(f"a{n}", "session:calc-20260301-14", "secret", "m", 0.5, NOW)
        limits.atomically(lambda rows, a=alert: rows.add_alert(a))  # type: ignore[misc] # mypy infers no lambda with a default
    make_upkeep().clean()

    found = memory_report(store, folder, Settings(), limits)
    text = "\n".join(report_lines(found, Settings()))

    assert (found.sessions, found.unfinished, found.archived) == (10, 1, 4)
    assert "lopen.jsonl: 0 KB of 50 KB, 5 of 1,000 lines, 1 of 5 rotations" in text
    assert (
        "Sessions: 10 kept, 1 of them unfinished; 4 archived (beyond 10, or 7 days after they finished)"
        in text
    )
    assert "alerts: 100 in the longest list; 21 dropped, mean use 0.52" in text
    assert "session_archives" in text.partition("Not counted against the limit")[2]
    assert "Last cleanup: 2026-03-01T12:00:00Z: logs rotated: 0, sessions archived: 4" in text
