"""What verify-setup installed outlives the session, as long as it is whole and its interpreters are the same."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.files.workplace import Workplace
from lopen.git.repository import Repository
from lopen.store.temporary import LOCK_NAME
from lopen.tools.clean_room import CleanRoom
from lopen.tools.installed import KEPT_DAYS, RECORD, remove_unused

DAY = 86_400


@pytest.fixture
def enter(root: Path) -> Callable[[], CleanRoom]:
    repository = Repository.open(root, clock=FakeClock())
    return lambda: CleanRoom(root.parent / "rooms" / "calc", Workplace(repository, repository), mounted=True)


def install(room: CleanRoom, root: Path) -> str:
    """Install something for the present tree; return its key."""
    tree = Repository.open(root, clock=FakeClock()).snapshot()
    place = room.enter(tree)
    (place.files / "node_modules/dep").mkdir(parents=True)
    (place.files / "node_modules/dep/index.js").write_text("1")
    (place.home / ".local/bin").mkdir(parents=True)
    (place.home / ".local/bin/tool").write_text("#!/bin/sh\n")
    room.leave(wanted=lambda _: False, install=True)
    room.installed_for(key := room.setup_key(tree, "npm ci"), tree)
    return key


def test_a_later_session_finds_it_alone(enter: Callable[[], CleanRoom], root: Path) -> None:
    key = install(first := enter(), root)
    second = enter()  # beside the first one, which holds its room
    first.close()
    third = enter()

    assert second.set_up_for == ""
    assert (third.set_up_for, third.setup_key(third.set_up_on, "npm ci")) == (key, key)
    place = third.enter(third.set_up_on)
    assert (place.files / "node_modules/dep/index.js").read_text() == "1"
    assert {path for path, _ in third.shown()} == {place.files / "node_modules", place.home / ".local/bin"}
    second.close()
    assert sorted(p.name for p in (root.parent / "rooms/calc").iterdir()) == ["room-0"]
    third.forget_installed()
    third.close()
    assert not (root.parent / "rooms/calc").exists()


BELOW = ("backend/.venv/pyvenv.cfg", "backend/dep.lock", "web/app/node_modules/dep/index.js", "gen/a/b.py")
# What the model writes → the installed paths that stay; None: verify-setup is to run again
WRITES: dict[str, list[str] | None] = {
    "backend/x.txt": ["backend/.venv", "backend/dep.lock", "gen", "web/app/node_modules"],
    "backend/dep.lock": None,
    "gen/a/c.py": None,
    "web": None,
    "web/app/node_modules": None,
}


@pytest.mark.parametrize("written", WRITES)
def test_a_folder_that_a_task_writes_later_is_not_installed(
    enter: Callable[[], CleanRoom], root: Path, written: str
) -> None:
    (root / ".gitignore").write_text(".venv/\nnode_modules/\n__pycache__/\n")
    repository, room = Repository.open(root, clock=FakeClock()), enter()
    tree = repository.snapshot()
    place = room.enter(tree)
    for path in (*BELOW, "gen/__pycache__/x.pyc"):
        (place.files / path).parent.mkdir(parents=True, exist_ok=True)
        (place.files / path).write_text("1")
    room.leave(wanted=lambda _: False, install=True)
    room.installed_for(room.setup_key(tree, "npm ci"), tree)
    assert [str(path.relative_to(root)) for path in sorted(dict(room.shown()).values())] == [
        "backend/.venv",
        "web/app/node_modules",
    ]
    (root / written).parent.mkdir(parents=True, exist_ok=True)
    (root / written).write_text("2") if written != "web" else (root / written).symlink_to("nowhere")

    later = repository.snapshot({})
    room.enter(later)
    room.leave(wanted=lambda _: False)

    kept = WRITES[written]
    assert bool(room.set_up_for) == (kept is not None)
    assert list(room._installed.in_files) == (kept or [])
    assert all((place.files / path).exists() == (kept is not None) for path in BELOW if path != written)
    room.forget_installed()
    room.enter(later)
    room.leave(wanted=lambda _: False)
    assert os.path.lexists(place.files / written)
    room.enter(tree)
    room.close()


def spoil_file(room: Path) -> None:
    (room / "files/node_modules/dep/index.js").write_text("2")


def plant_file(room: Path) -> None:
    (room / "home/.local/bin/evil").touch()


def delete_file(room: Path) -> None:
    (room / "home/.local/bin/tool").unlink()


def forge_record(room: Path) -> None:
    record = room / RECORD
    record.write_bytes(record.read_bytes().replace(b"node_modules", b"node_modulez"))


def half_make(room: Path) -> None:
    (room / RECORD).unlink()


def age(room: Path) -> None:
    then = time.time() - (KEPT_DAYS + 1) * DAY
    os.utime(room / LOCK_NAME, (then, then))


@pytest.mark.parametrize("spoil", [spoil_file, plant_file, delete_file, forge_record, half_make])
def test_what_is_not_whole_is_made_anew(
    enter: Callable[[], CleanRoom], root: Path, spoil: Callable[[Path], None]
) -> None:
    install(first := enter(), root)
    first._own.release()  # as if it was killed: its checkout stays too
    folder = root.parent / "rooms/calc/room-0"
    (folder / "files/left.py").touch()
    spoil(folder)

    second = enter()

    assert (second.set_up_for, second.shown()) == ("", ())
    assert [*(folder / "files").iterdir(), *(folder / "home").iterdir()] == []
    second.close()


def test_a_killed_session_leaves_it_to_the_next(enter: Callable[[], CleanRoom], root: Path) -> None:
    key = install(first := enter(), root)
    first._own.release()

    second = enter()

    assert second.set_up_for == key
    assert [p.name for p in (root.parent / "rooms/calc/room-0/files").iterdir()] == ["node_modules"]
    second.close()


def test_another_interpreter_makes_it_anew(
    enter: Callable[[], CleanRoom], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(first := enter(), root)
    first.close()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/node").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

    second = enter()

    assert second.set_up_for == ""
    second.close()


def test_old_rooms_and_those_of_a_project_are_removed(enter: Callable[[], CleanRoom], root: Path) -> None:
    rooms = root.parent / "rooms"
    install(room := enter(), root)
    assert remove_unused(rooms, project=root) == 0  # it is in use
    room.close()
    assert remove_unused(rooms) == remove_unused(rooms, project=root.parent) == 0
    age(rooms / "calc/room-0")
    assert remove_unused(rooms) == 11
    install(room := enter(), root)
    room.close()
    assert remove_unused(rooms, project=root) == 11
    assert list(rooms.iterdir()) == []
