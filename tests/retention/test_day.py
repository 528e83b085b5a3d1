"""A day of many tool calls, scaled down: what it leaves on the disk stops growing, and so does the process."""

from __future__ import annotations

from bench.day import measured

CALLS = 4_800  # `python -m bench day` lives through the whole million


def test_a_long_session_stays_under_five_megabytes_and_its_process_under_a_hundred_and_fifty() -> None:
    found = measured(CALLS)
    assert found["calls"] == CALLS
    assert found["state_mb"] < 2.5, "half of what is allowed, long before the day is over"
    assert found["peak_mib"] < 150
    assert found["archived"] >= CALLS / 2, "older calls have moved to segments"
