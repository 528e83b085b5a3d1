"""Running below a session is noticed by the variable and by the chain of parents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lopen.core.process_identity import start_time
from lopen.sandbox.ancestry import enclosing_session, nearest_ancestor_in

REPOSITORY = Path(__file__).parents[2]


def asked_below(code: str, *, prefix: tuple[str, ...] = ()) -> str:
    """What a process below this one answers, with nothing in its environment."""
    program = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from lopen.sandbox.ancestry import *; {code}"
    )
    done = subprocess.run(
        [*prefix, sys.executable, "-I", "-c", program], env={}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_variable_tells() -> None:
    assert enclosing_session({"LOPEN_UNDER_SESSION": "auth-1"}) == "auth-1"
    assert enclosing_session({}) is None


def test_the_chain_of_parents_tells_at_any_depth() -> None:
    own = os.getpid()
    assert asked_below(f"print(nearest_ancestor_in([{own}]))") == str(own)
    assert asked_below(
        f"print(nearest_ancestor_in([{own}]))", prefix=("/usr/bin/env", "sh", "-c", '"$0" "$@"; exit')
    ) == str(own)
    assert asked_below("print(nearest_ancestor_in([999999999]))") == "None"


def test_a_number_used_again_is_another_process() -> None:
    own, started = os.getpid(), start_time(os.getpid())
    assert started is not None
    assert nearest_ancestor_in([own], {own: started}) == own
    assert nearest_ancestor_in([own], {own: started - 1}) is None
    assert start_time(999_999_999) is None


def test_a_process_can_be_kept_from_being_inspected() -> None:
    assert (
        asked_below("import ctypes; print(deny_inspection(), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))")
        == "True 0"
    )
