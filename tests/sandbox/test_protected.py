"""Protected files come back as they were, whatever a command made of them, and reading them again is rare."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lopen.sandbox.protected import ProtectedPaths, RestoreFailed, protected_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "specs/a/SPECIFICATION.md",
        "specs/b/c/SPECIFICATION.md",
        ".lopen/config.toml",
        ".claude/settings.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "specs/a/notes.md").write_text("notes")
    return tmp_path


def test_protected_files_are_found(root: Path) -> None:
    (root / "specs/x").symlink_to("a")
    (root / "specs/y").mkdir()
    (root / "specs/y/specification.md").touch()
    assert protected_files(root) == [
        ".claude/settings.json",
        ".lopen/config.toml",
        "specs/a/SPECIFICATION.md",
        "specs/b/c/SPECIFICATION.md",
        "specs/x",
        "specs/y/specification.md",
    ]


def test_nothing_changed_is_nothing_to_say(root: Path) -> None:
    protected = ProtectedPaths(root)
    taken = protected.snapshot()
    (root / "specs/a/notes.md").write_text("other")
    os.utime(root / "specs/a/SPECIFICATION.md")
    assert protected.restore(taken) == ()


def test_changes_are_named_and_undone(root: Path) -> None:
    protected = ProtectedPaths(root)
    taken = protected.snapshot()
    (root / "specs/a/SPECIFICATION.md").write_text("HACK")
    (root / ".lopen/config.toml").unlink()
    (root / ".claude/settings.local.json").write_text("HACK")
    (root / "specs/new").mkdir()
    (root / "specs/new/SPECIFICATION.md").write_text("HACK")
    assert protected.restore(taken) == (
        ".claude/settings.local.json",
        ".lopen/config.toml",
        "specs/a/SPECIFICATION.md",
        "specs/new/SPECIFICATION.md",
    )
    assert (root / "specs/a/SPECIFICATION.md").read_text() == "specs/a/SPECIFICATION.md"
    assert (root / ".lopen/config.toml").read_text() == ".lopen/config.toml"
    assert not (root / ".claude/settings.local.json").exists()
    assert protected.restore(protected.snapshot()) == ()


def test_restoring_never_writes_through_a_link(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    protected = ProtectedPaths(root)
    taken = protected.snapshot()
    (root / "specs").rename(root / "old")
    (root / "specs").symlink_to(elsewhere)
    (root / ".lopen/config.toml").unlink()
    (root / ".lopen/config.toml").symlink_to(elsewhere / "config")
    protected.restore(taken)
    assert os.listdir(elsewhere) == []
    assert not (root / "specs").is_symlink()
    assert (root / "specs/b/c/SPECIFICATION.md").read_text() == "specs/b/c/SPECIFICATION.md"


def test_permissions_and_links_come_back_too(root: Path) -> None:
    (root / ".claude/settings.local.json").symlink_to("settings.json")
    protected = ProtectedPaths(root)
    taken = protected.snapshot()
    (root / "specs/a/SPECIFICATION.md").chmod(0o600)
    (root / ".claude/settings.local.json").unlink()
    assert len(protected.restore(taken)) == 2
    assert (root / "specs/a/SPECIFICATION.md").stat().st_mode & 0o777 == 0o644
    assert os.readlink(root / ".claude/settings.local.json") == "settings.json"


def test_more_paths_can_be_named(root: Path) -> None:
    (root / "lock").write_text("1")
    protected = ProtectedPaths(root, extra=lambda: ["lock", "missing"])
    taken = protected.snapshot()
    (root / "lock").write_text("2")
    assert protected.restore(taken) == ("lock",)
    assert (root / "lock").read_text() == "1"


def test_an_unchanged_file_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lopen.sandbox.protected.settled", lambda *_: True)
    protected = ProtectedPaths(root)
    taken = protected.snapshot()

    def unread(path: Path) -> bytes:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Path, "read_bytes", unread)
    assert protected.restore(taken) == ()


def test_what_cannot_be_put_back_stops_the_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protected = ProtectedPaths(root)
    taken = protected.snapshot()
    (root / "specs/a/SPECIFICATION.md").unlink()

    def full(_descriptor: int, _content: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RestoreFailed, match="No space left"):
        protected.restore(taken)
