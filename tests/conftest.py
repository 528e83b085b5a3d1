"""What holds for every test: no model is reachable, no key is inherited, the person's own files stay out of it."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.no_network import forbidden_network

# The same commit gives the same answer. New cases are looked for with: pytest --hypothesis-profile=explore
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("same")

SLOW = ("e2e", "crash", "server")  # folders whose tests start the command

# A job that a shell starts in the background, or under `nohup`, ignores these, and so does all that it starts.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin each worker's share with slow tests, so that none is left for the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    here = Path(__file__).parent
    slow = [item for item in items if item.path.relative_to(here).parts[0] in SLOW]
    quick = [item for item in items if item.path.relative_to(here).parts[0] not in SLOW]
    items[:] = [
        item
        for number in range(workers)
        for kind in (slow, quick)
        for item in kind[len(kind) * number // workers : len(kind) * (number + 1) // workers]
    ]


@pytest.fixture(autouse=True, scope="session")
def no_model_is_reachable() -> Iterator[None]:
    """The suite fails if anything here connects beyond loopback."""
    with forbidden_network():
        yield


@pytest.fixture(scope="session")
def new_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home folders, one after another. `mktemp` would list all the earlier ones for each."""
    folder = tmp_path_factory.mktemp("homes")
    template = folder / "git_template"  # no sample hooks: a suite's worth of them is a hundred thousand files
    (template / "hooks").mkdir(parents=True)
    (template / "info").mkdir()
    (template / "info" / "exclude").touch()
    return (_home(folder / str(number), template) for number in itertools.count(1))


@pytest.fixture(autouse=True)
def nobody_s_configuration(new_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and none of the surroundings' keys or settings."""
    home = next(new_homes)
    for name in list(os.environ):
        if name.startswith(
            ("ANTHROPIC_", "LOPEN_", "TOKEN_BUDGET_", "CIRCUIT_BREAKER_", "GIT_", "XDG_", "CLAUDE")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    # `python3` is the interpreter itself, and not a version manager's script that looks for one
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def _home(folder: Path, git_template: Path) -> Path:
    folder.mkdir()
    (folder / ".gitconfig").write_text(
        "[user]\n\tname = Test Person\n\temail = person@example.invalid\n"
        f"[init]\n\tdefaultBranch = main\n\ttemplateDir = {git_template}\n[maintenance]\n\tauto = false\n",
        "utf-8",
    )
    return folder
