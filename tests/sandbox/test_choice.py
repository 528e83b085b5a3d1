"""The strongest sandbox that works is chosen, by trying; where none does, the way out is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lopen.core.errors import LopenError
from lopen.sandbox import bubblewrap, choice
from lopen.sandbox.choice import Mode, choose, probe
from lopen.sandbox.command import Command, SandboxFailed
from lopen.sandbox.environment import SandboxOptions
from tests.needs import require_sandbox


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    probe.cache_clear()
    yield
    probe.cache_clear()


@pytest.fixture
def without_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
def test_what_works_here_is_proved_by_trying(mode: Mode) -> None:
    require_sandbox(mode)
    assert "refused" in probe(mode).detail


def test_auto_takes_bubblewrap_where_it_works(tmp_path: Path) -> None:
    require_sandbox("bwrap")
    assert choose("auto", tmp_path).name == "bwrap"
    assert choose("auto", tmp_path).warning == ""


@pytest.mark.usefixtures("without_bwrap")
def test_auto_falls_back_on_landlock_and_warns(tmp_path: Path) -> None:
    require_sandbox("landlock")
    sandbox = choose("auto", tmp_path)
    assert sandbox.name == "landlock"
    assert "network" in sandbox.warning


@pytest.mark.usefixtures("without_bwrap")
def test_where_nothing_works_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_confining_sandbox", _cannot)
    with pytest.raises(LopenError) as failed:
        choose("auto", tmp_path)
    assert "--sandbox none" in failed.value.hint
    assert "bwrap: cannot" in failed.value.message


def _cannot(*_: object, **__: object) -> None:
    raise SandboxFailed("cannot")


@pytest.mark.usefixtures("without_bwrap")
def test_what_was_asked_for_is_not_replaced_by_something_weaker(tmp_path: Path) -> None:
    with pytest.raises(LopenError, match="not installed"):
        choose("bwrap", tmp_path)


def test_none_is_taken_at_its_word_and_warns(tmp_path: Path) -> None:
    sandbox = choose("none", tmp_path, SandboxOptions(session="s"))
    assert "without a sandbox" in sandbox.warning
    assert sandbox.run(Command("echo $LOPEN_UNDER_SESSION", tmp_path)).output == "s\n"
