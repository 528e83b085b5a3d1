"""Nothing leaves the root, protected files stay as they are, and links swapped mid-way change nothing."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lopen.files.paths import Root, split
from lopen.files.protection import PathRefused, ToolRefused
from lopen.files.workspace import Workspace
from tests.files import escapes

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def everything(folder: Path) -> dict[str, bytes]:
    """Every file's content below a folder."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


@pytest.mark.parametrize("name", escapes.LEAVING)
def test_a_path_that_leaves_is_neither_read_nor_written_nor_listed(
    name: str, root: Path, outside: Path, workspace: Workspace
) -> None:
    prepare, path = escapes.LEAVING[name]
    prepare(root, outside)
    before = everything(outside)
    with pytest.raises(ToolRefused):
        workspace.read(path)
    with pytest.raises(ToolRefused):
        workspace.write(path, "HACKED")
    with pytest.raises(ToolRefused):
        workspace.edit(path, "SECRET", "HACKED")
    with pytest.raises(ToolRefused):
        workspace.list_files(path)
    with pytest.raises(ToolRefused):
        workspace.search("SECRET", path)
    assert everything(outside) == before


def test_lopen_s_own_papers_do_not_leave_either(root: Path, outside: Path, workspace: Workspace) -> None:
    before = everything(outside)
    (root / "specs" / "linked").symlink_to(outside)
    (root / "specs" / "auth").mkdir(exist_ok=True)
    (root / "specs" / "auth" / "RESEARCH-x.md").symlink_to(outside / "secret.txt")
    for path in ("specs/linked/RESEARCH-x.md", "specs/auth/RESEARCH-x.md", "../outside/new.md"):
        with pytest.raises(PathRefused):
            workspace.write_document(path, "HACKED")
    assert everything(outside) == before
    workspace.write_document("specs/new/SPECIFICATION.md", "# New\n")
    assert (root / "specs/new/SPECIFICATION.md").read_text() == "# New\n"


@pytest.mark.parametrize("path", escapes.PROTECTED_FOR_WRITING)
def test_a_protected_path_is_not_written(path: str, root: Path, workspace: Workspace) -> None:
    before = everything(root)
    with pytest.raises(PathRefused):
        workspace.write(path, "HACKED")
    assert everything(root) == before


@pytest.mark.parametrize("name", escapes.PROTECTED_LINKS)
def test_a_protected_path_is_not_written_through_a_link(
    name: str, root: Path, outside: Path, workspace: Workspace
) -> None:
    prepare, path = escapes.PROTECTED_LINKS[name]
    prepare(root, outside)
    before = everything(root)
    with pytest.raises(PathRefused):
        workspace.write(path, "HACKED")
    assert everything(root) == before


@pytest.mark.parametrize("path", escapes.PROTECTED_FOR_READING)
def test_lopens_and_gits_own_files_are_not_read(path: str, workspace: Workspace) -> None:
    with pytest.raises(PathRefused):
        workspace.read(path)


@pytest.mark.parametrize("link", [".lopen/state.db", ".git/config"])
def test_nor_through_a_link(link: str, root: Path, workspace: Workspace) -> None:
    (root / "link").symlink_to(link)
    with pytest.raises(PathRefused, match="not readable"):
        workspace.read("link")
    with pytest.raises(PathRefused, match="not readable"):
        workspace.search("x", "link")


def test_a_specification_can_be_read(workspace: Workspace) -> None:
    assert workspace.read("specs/auth/SPECIFICATION.md").content == "# Auth\n"


@pytest.mark.parametrize(
    "path",
    [".gitignore", ".github/x.yml", ".claude/agents/a.md", "docs/SPECIFICATION.md", "specs/auth/notes.md"],
)
def test_neighbours_of_protected_paths_can_be_written(path: str, root: Path, workspace: Workspace) -> None:
    assert workspace.write(path, "x").created
    assert (root / path).read_text() == "x"


def test_a_link_that_stays_inside_is_read_and_written_through(root: Path, workspace: Workspace) -> None:
    (root / "src/link").symlink_to("../README.md")
    (root / "s").symlink_to("src/../src")
    assert workspace.read("src/link").path == "README.md"
    assert workspace.write("s/link", "new").path == "README.md"
    assert (root / "README.md").read_text() == "new"
    assert (root / "src/link").is_symlink()
    assert workspace.read("s/app.py").path == "src/app.py"


def test_writing_one_name_of_a_file_leaves_its_other_names_as_they_are(
    root: Path, workspace: Workspace
) -> None:
    os.link(root / "specs/auth/SPECIFICATION.md", root / "copy.md")
    workspace.write("copy.md", "HACKED")
    assert (root / "specs/auth/SPECIFICATION.md").read_text() == "# Auth\n"


def test_pipes_sockets_and_devices_are_refused_without_blocking(root: Path, workspace: Workspace) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(root, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
    for name in ("pipe", "socket"):
        with pytest.raises(PathRefused, match="not a regular file"):
            workspace.read(name)
        with pytest.raises(PathRefused, match="not a regular file"):
            workspace.write(name, "x")


def test_a_folder_is_neither_read_nor_replaced(workspace: Workspace) -> None:
    for path in ("src", "", ".", "src/"):
        with pytest.raises(PathRefused, match="is a folder"):
            workspace.read(path)
        with pytest.raises(PathRefused, match="is a folder"):
            workspace.write(path, "x")


def test_a_file_is_no_folder(workspace: Workspace) -> None:
    with pytest.raises(ToolRefused, match="not a folder"):
        workspace.write("README.md/x", "x")
    with pytest.raises(ToolRefused, match="not a folder"):
        workspace.read("README.md/x")


def test_missing_folders_are_made_and_permissions_kept(root: Path, workspace: Workspace) -> None:
    workspace.write("a/b/c/run.sh", "#!/bin/sh\n")
    (root / "a/b/c/run.sh").chmod(0o755)
    assert not workspace.write("a/b/c/run.sh", "#!/bin/sh\ntrue\n").created
    assert (root / "a/b/c/run.sh").stat().st_mode & 0o777 == 0o755


def test_a_failed_write_leaves_the_old_content_and_nothing_beside_it(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lopen.files.paths.os.write", full)
    with pytest.raises(ToolRefused, match="No space left"):
        workspace.write("README.md", "new")
    assert (root / "README.md").read_text() == "# project\n"
    assert sorted(p.name for p in root.iterdir()) == [
        ".claude",
        ".git",
        ".lopen",
        "README.md",
        "specs",
        "src",
    ]


def test_no_descriptor_is_left_open(workspace: Workspace) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in ("src/app.py", "nope", "src/nope/x", "../x", ".git/config"):
        for attempt in (workspace.read, workspace.list_files):
            try:
                attempt(path)
            except ToolRefused:
                continue
    workspace.write("x/y/z", "1")
    assert len(os.listdir("/proc/self/fd")) == before


def test_splitting_drops_dots_and_doubled_slashes() -> None:
    assert split("./a//b/./c/") == ("a", "b", "c")
    assert split("") == split(".") == ()


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    """Run `swap` over and over in a thread, until the block ends."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            swap()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def exchange(root: Path, outside: Path, name: str, target: str) -> Callable[[], None]:
    """Swap a real entry and a link to the outside in one step of the kernel, so that neither is ever missing."""
    (root / "link").symlink_to(target.format(outside=outside))
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    here, there = os.fsencode(root / name), os.fsencode(root / "link")

    def swap() -> None:
        assert rename(AT_FDCWD, here, AT_FDCWD, there, RENAME_EXCHANGE) == 0

    return swap


@pytest.mark.parametrize(("name", "target"), [("src", "{outside}"), ("src", "../outside")])
def test_a_folder_swapped_for_a_link_never_lets_a_write_or_read_out(
    name: str, target: str, root: Path, outside: Path
) -> None:
    (outside / "app.py").write_text("SECRET")
    confined = Workspace(root)
    with swapping(exchange(root, outside, name, target)):
        for _ in range(400):
            try:
                assert "SECRET" not in confined.read("src/app.py").content
                confined.write("src/new.py", "HACKED")
            except ToolRefused:
                continue
    assert sorted(p.name for p in outside.iterdir()) == ["app.py", "secret.txt"]


def test_a_file_swapped_for_a_link_never_lets_a_write_or_read_out(root: Path, outside: Path) -> None:
    confined = Root(root)
    with swapping(exchange(root, outside, "README.md", "../outside/secret.txt")):
        for _ in range(400):
            try:
                with confined.open_file("README.md") as (descriptor, _):
                    assert b"SECRET" not in os.read(descriptor, 100)
                confined.replace_file("README.md", b"HACKED")
            except ToolRefused:
                continue
    assert (outside / "secret.txt").read_text() == "SECRET"
