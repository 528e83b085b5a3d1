"""A folder is again what it is to be, whatever a command did to it; both ways of looking find the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from lopen.files import file_times
from lopen.files.plain_files import LINK
from lopen.files.room_files import RoomFile, RoomFiles

MARK = f"{sys.executable} -c \"import os; os.setxattr('{{}}', 'user.x', b'1')\""
BLOBS: dict[str, bytes] = {}

# What a command does, and what is found changed and added
ACTS: dict[str, tuple[str, list[str], list[str]]] = {
    "nothing": ("true", [], []),
    "adds": (
        "mkdir -p new/a && touch new/a/b x src/y src/deep/.hidden",
        [],
        ["new", "src/deep/.hidden", "src/y", "x"],
    ),
    "changes": ("echo 2 > src/a.py", ["src/a.py"], []),
    "changes with the same size and time": (
        "touch -r src/a.py t; printf 'B\\n' > src/a.py; touch -r t src/a.py; rm t",
        ["src/a.py"],
        [],
    ),
    "makes executable": ("chmod +x src/a.py", ["src/a.py"], []),
    "deletes": ("rm src/a.py", ["src/a.py"], []),
    "deletes a folder": ("rm -r src", ["src/a.py", "src/deep/b.py", "src/link"], []),
    "puts a link for a folder": (
        "mv src old; ln -s old src",
        ["src/a.py", "src/deep/b.py", "src/link"],
        ["old", "src"],
    ),
    "swaps folders of the same names": (
        "mkdir s && cp -p twin/deep/b.py s && mv src/deep d && mv twin/deep src/deep && mv d twin/deep && rm -r s",
        ["src/deep/b.py", "twin/deep/b.py"],
        [],
    ),
    "puts a folder for a file": ("rm src/a.py; mkdir src/a.py", ["src/a.py"], []),
    "puts a hard link": ("ln -f twin/deep/b.py src/a.py", ["src/a.py", "twin/deep/b.py"], []),
    "turns a link": ("ln -sfn /etc src/link", ["src/link"], []),
    "takes permissions away": ("touch src/deep/x; chmod 0 src/deep", [], ["src/deep/x"]),
    "makes repositories": ("mkdir .git src/.git && touch .git/x src/.git/x", [], [".git", "src/.git"]),
    "leaves pipes": ("mkfifo src/pipe", [], ["src/pipe"]),
    "sets the time of a folder": ("touch -d @1 src/deep; touch -d @1 .", [], []),
    "leaves room in folders": (
        "for i in $(seq 300); do : > src/$i$(printf %060d 0); done; rm src/*0000; cp -r src/* . ; rm -r a.py deep link",
        [],
        [],
    ),
    "reads": ("sleep 0.01; cat src/a.py > /dev/null; ls src/deep", [], []),
    "marks folders": (f"{MARK.format('src')}; chattr +d src/deep; chmod g+s twin", [], []),
    "marks files": (
        f"{MARK.format('src/a.py')}; chattr +d twin/deep/b.py",
        ["src/a.py", "twin/deep/b.py"],
        [],
    ),
    "uses odd names": ("touch 'src/a\nb' 'src/[x]' ./-x", [], ["-x", "src/[x]", "src/a\nb"]),
}


def blob(content: bytes) -> str:
    name = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    BLOBS[name] = content
    return name


def contents(wanted: Iterable[str]) -> dict[str, bytes]:
    return {name: BLOBS[name] for name in wanted}


def tree(top: Path) -> dict[str, object]:
    """What lies in a folder, with permissions and without times."""
    found: dict[str, object] = {}
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            place = Path(folder, name)
            mode = place.lstat().st_mode
            content = os.readlink(place) if place.is_symlink() else place.is_file() and place.read_bytes()
            found[str(place.relative_to(top))] = (mode, content)
    return found


def told(top: Path, names: Iterable[str]) -> tuple[int, bool, set[str]]:
    """What a program can learn of an earlier one: of the times, and from sizes and marks."""
    places = [top, *(top / name for name in names)]
    found = [place.lstat() for place in places]
    changed_at = [f.st_ctime_ns for f in found]
    marks = {
        f"{p} {f.st_size} {os.listxattr(p, follow_symlinks=False)}"
        for p, f in zip(places, found, strict=True)
    }
    flags = subprocess.run(["lsattr", "-d", *places], capture_output=True, text=True, check=False).stdout
    times = {ns for f in found for ns in (f.st_atime_ns, f.st_mtime_ns)}
    return len(times), max(changed_at) - min(changed_at) < 10**9, marks | set(flags.splitlines())


@pytest.fixture(params=["every folder listed", "changed ones looked for"])
def room(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RoomFiles:
    if request.param == "every folder listed":  # as after the clock was set
        monkeypatch.setattr(file_times, "CLOCK_STEP_S", -1)
    files = RoomFiles(tmp_path / "room", contents, "sha1")
    files.change(
        {
            "src/a.py": RoomFile("100644", blob(b"A\n")),
            "src/deep/b.py": RoomFile("100755", blob(b"B\n")),
            "src/link": RoomFile(LINK, blob(b"a.py")),
            "twin/deep/b.py": RoomFile("100644", blob(b"C\n")),
            "gone/c.py": RoomFile("100644", blob(b"")),
        }
    )
    files.change({"gone/c.py": None})
    return files


@pytest.mark.parametrize("act", ACTS)
def test_what_a_command_did_is_found_and_undone(room: RoomFiles, act: str) -> None:
    line, changed, added = ACTS[act]
    before = tree(room.top)
    room.tidy()
    room.seal()
    fresh = told(room.top, before)
    assert fresh[:2] == (1, True)
    for _ in range(2):  # what was made again is watched as what was there
        subprocess.run(["/bin/sh", "-c", line], cwd=room.top, check=True)

        found = room.tidy()

        assert (list(found.changed), list(found.added)) == (changed, added)
        room.seal()
        assert told(room.top, before) == fresh
        assert tree(room.top) == before


def test_kept_paths_stay_and_folders_go_with_their_last_file(room: RoomFiles) -> None:
    room.seal()
    (room.top / "src" / "node_modules").mkdir()
    room.keep("src/node_modules")
    assert room.tidy().added == ()

    gone = ("src/a.py", "src/deep/b.py", "src/link", "twin/deep/b.py")
    room.change({**dict.fromkeys(gone), "twin": RoomFile("100644", blob(b"C\n"))})

    assert sorted(tree(room.top)) == ["src", "src/node_modules", "twin"]
    room.drop(["src/node_modules"])
    assert sorted(tree(room.top)) == ["twin"]


def test_what_vanishes_before_the_command_is_written_again(room: RoomFiles) -> None:
    before = tree(room.top)
    (room.top / "src/deep/b.py").unlink()
    shutil.rmtree(room.top / "twin")
    room.seal()

    found = room.tidy()

    assert (list(found.changed), list(found.added)) == (["src/deep/b.py", "twin/deep/b.py"], [])
    assert tree(room.top) == before
