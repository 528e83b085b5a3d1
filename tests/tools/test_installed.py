"""What verify-setup installed stays for later commands, but for what a tree has in its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.files.workplace import Workplace
from lopen.git.repository import Repository
from lopen.verification.clean_room import CleanRoom
from tests.fakes import FakeClock
from tests.tools.examples import git


@pytest.fixture
def enter(root: Path) -> Callable[[], CleanRoom]:
    repository = Repository.open(root, clock=FakeClock())
    return lambda: CleanRoom(root.parent / "rooms" / "calc", Workplace(repository, repository), mounted=True)


# A virtual environment is whole, also where git ignores a part of it alone
BELOW = (
    "backend/.venv/pyvenv.cfg",
    "backend/.venv/lib/it.py",
    "web/app/node_modules/dep/index.js",
    "gen/a/b.py",
)
# What the model writes → the installed paths that stay; None: verify-setup is to run again
WRITES: dict[str, list[str] | None] = {
    "backend/x.txt": ["backend/.venv", "gen", "web/app/node_modules"],
    "gen/a/c.py": None,
    "web": None,
    "web/app/node_modules": None,
}


@pytest.mark.parametrize("written", WRITES)
def test_a_folder_that_a_task_writes_later_is_not_installed(
    enter: Callable[[], CleanRoom], root: Path, written: str
) -> None:
    (root / ".gitignore").write_text("lib\nnode_modules/\n__pycache__/\n")
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


def test_a_repository_that_a_command_makes_is_gone_after_it(
    enter: Callable[[], CleanRoom], root: Path
) -> None:
    (root / "sub").mkdir()
    (root / "sub/kept.txt").write_text("kept")
    tree, room = Repository.open(root, clock=FakeClock()).snapshot(), enter()
    place = room.enter(tree)
    git(place.files / "sub", "init", "-q")
    (place.files / "sub/kept.txt").write_text("changed")
    (place.files / "sub/left.txt").write_text("left")

    found = room.leave(wanted=lambda _: False)

    assert (found.changed, found.added) == (("sub/kept.txt",), ("sub/.git", "sub/left.txt"))
    assert [path.name for path in (place.files / "sub").iterdir()] == ["kept.txt"]
    assert (place.files / "sub/kept.txt").read_text() == "kept"
    room.close()
