"""What a machine may lack of what the tests would like to have."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from lopen.sandbox.choice import Mode, probe


def lacking(program: str) -> NoReturn:
    """Skip a test for want of a program; fail it where every one was installed for the tests (`.ci/run` says so)."""
    if os.environ.get("LOPEN_TEST_ALL") == "1":
        pytest.fail(f"{program} is not installed, and LOPEN_TEST_ALL=1 says that it should be")
    pytest.skip(f"{program} is not installed")


def require_sandbox(mode: Mode) -> None:
    """Skip a test where this sandbox does not work: not every kernel or container lets it."""
    found = probe(mode)
    if not found.works:
        pytest.skip(f"{mode} does not work on this machine: {found.detail}")
