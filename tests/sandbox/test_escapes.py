"""Every attempt of the table fails in every mode that promises to withstand it."""

from __future__ import annotations

import pytest

from lopen.sandbox.choice import Mode
from tests.sandbox.escapes import ATTEMPTS, Attempt
from tests.sandbox.world import World

_CASES = [
    pytest.param(mode, attempt, id=f"{mode}: {attempt.name}")
    for attempt in ATTEMPTS
    for mode in attempt.modes
]


@pytest.mark.parametrize(("mode", "attempt"), _CASES)
def test_an_attempt_achieves_nothing(mode: Mode, attempt: Attempt, world: World) -> None:
    assert world.attempt(mode, attempt.line) == []


REACHED = [  # not the key itself: every command gets a new session keyring
    "keynames {keyname}",
    "fifo {fifo} read",
    "terminal {terminal} read",
    "terminal {terminal} write",
]


@pytest.mark.parametrize("what", REACHED)
def test_without_a_sandbox_the_kernel_s_things_are_reached(what: str, world: World) -> None:
    """Without this the attempts at them might prove nothing."""
    assert "CANARY" in world.run("none", f"{{reach}} {what}".format(**world.words())).output
