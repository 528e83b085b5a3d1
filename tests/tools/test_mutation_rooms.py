"""Rooms side by side for mutants, as many as the disk bears."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.verification import extra_runs
from tests.models.prompts.examples import planned
from tests.tools.examples import bench


@pytest.mark.parametrize(("size", "most"), [(10, 4), (900, 2), (3_000, 1)])
def test_rooms_are_few_where_files_are_large(
    root: Path, monkeypatch: pytest.MonkeyPatch, size: int, most: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setattr(extra_runs, "MOST_BYTES", 2_500)
    for name in ("first", "the same"):
        (root / name).write_bytes(b"x" * (size // 2))
    at = bench(root, planned()).at
    verifier = at.project.verifier
    assert extra_runs.ExtraRuns(verifier)._room_count(verifier.tree(), 20) == most
