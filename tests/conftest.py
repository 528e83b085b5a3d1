"""What holds for every test: no model is reachable, no key is inherited, the person's own files stay out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.no_network import forbidden_network

# The same commit gives the same answer. New cases are looked for with: pytest --hypothesis-profile=explore
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def no_model_is_reachable() -> Iterator[None]:
    """The suite fails if anything here connects beyond loopback."""
    with forbidden_network():
        yield


@pytest.fixture(autouse=True)
def nobody_s_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and none of the surroundings' keys or settings."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(
            ("ANTHROPIC_", "LOPEN_", "TOKEN_BUDGET_", "CIRCUIT_BREAKER_", "GIT_", "XDG_", "CLAUDE")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    _git_identity(home)


def _git_identity(home: Path) -> None:
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Test Person\n\temail = person@example.invalid\n[init]\n\tdefaultBranch = main\n",
        "utf-8",
    )
