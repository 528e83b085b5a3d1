"""Nothing leaves the root, protected files stay as they are, and a failed write changes nothing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from lopen.files.paths import Root, split
from lopen.files.protection import PathRefused, ToolRefused
from lopen.files.workspace import Workspace

# Paths that leave by their text alone
LEAVING = (
    "../outside/secret.txt",
    "src/../../outside/secret.txt",
    "src/../src/app.py",
    "nope/../../outside/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "src/app.py\0",
    "src/\ud800.py",
    "a/" * 3_000 + "b",
    "x" * 300,
)
# Links (name → target) and the path by which one is used
LINKS_OUT: tuple[tuple[dict[str, str], str], ...] = (
    ({"out": "{outside}/secret.txt"}, "out"),
    ({"out": "{outside}"}, "out/secret.txt"),
    ({"deep/b/out": "../../../outside"}, "deep/b/out/secret.txt"),
    ({"out": "/"}, "out/etc/passwd"),
    ({"out": ".."}, "out/outside/secret.txt"),
    ({"a": "b/..", "b": ".."}, "a/outside/secret.txt"),
    ({"out": "src/../../outside"}, "out/secret.txt"),
    ({"out": "src/../.."}, "out"),
    ({"loop": "loop"}, "loop"),
    ({"a": "b/x", "b": "a"}, "a/x"),
    ({"out": "../outside/new.txt"}, "out"),
)
PROTECTED_FOR_WRITING = (
    "specs/auth/SPECIFICATION.md",
    "specs/new/SPECIFICATION.md",
    "./specs//auth/./SPECIFICATION.md",
    "Specs/auth/SPECIFICATION.MD",
    "specs/auth/SPECIFICATION.md/x",
    "specs/auth/SPECIFICATION.md.",
    "specs/auth/SPECIFICATION\u200d.md",
    "specs/auth/ＳＰＥＣＩＦＩＣＡＴＩＯＮ.md",
    ".lopen/state.db",
    ".LOPEN/state.db",
    ".lopen",
    "sub/.lopen/config.toml",
    ".git/config",
    ".git",
    "vendor/lib/.git/config",
    "GIT~1/config",
    ".claude/settings.json",
    ".claude/settings.d/x.json",
    "sub/.Claude/Settings.local.json",
    "new\nline.txt",
    "escape\x1b[31m.txt",
)
PROTECTED_LINKS: tuple[tuple[dict[str, str], str], ...] = (
    ({"s.md": "specs/auth/SPECIFICATION.md"}, "s.md"),
    ({"s": "specs"}, "s/new/SPECIFICATION.md"),
    ({"l": ".lopen"}, "l/state.db"),
    ({"hook": ".git/hooks/post-merge"}, "hook"),
    ({"c": ".claude"}, "c/settings.local.json"),
    ({"a": "b", "b": ".lopen/config.toml"}, "a"),
    ({"src/x": "../.git/config"}, "src/x"),
)


def everything(folder: Path) -> dict[str, bytes]:
    """Return every file's content below a folder."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def make_links(links: dict[str, str], root: Path, outside: Path) -> None:
    for name, target in links.items():
        (root / name).unlink(missing_ok=True)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target.format(outside=outside))


def test_a_path_that_leaves_is_neither_read_nor_written_nor_listed(
    root: Path, outside: Path, workspace: Workspace
) -> None:
    before = everything(outside)
    for links, path in (*(({}, path) for path in LEAVING), *LINKS_OUT):
        make_links(links, root, outside)
        for attempt in (
            lambda path: workspace.read(path),
            lambda path: workspace.write(path, "HACKED"),
            lambda path: workspace.edit(path, "SECRET", "HACKED"),
            lambda path: workspace.list_files(path),
            lambda path: workspace.search("SECRET", path),
        ):
            with pytest.raises(ToolRefused):
                attempt(path)
    assert everything(outside) == before


def test_lopen_s_own_documents_do_not_leave_either(root: Path, outside: Path) -> None:
    before = everything(outside)
    (root / "specs" / "linked").symlink_to(outside)
    (root / "specs" / "auth").mkdir(exist_ok=True)
    (root / "specs" / "auth" / "RESEARCH-x.md").symlink_to(outside / "secret.txt")
    for path in ("specs/linked/RESEARCH-x.md", "specs/auth/RESEARCH-x.md", "../outside/new.md"):
        with pytest.raises(PathRefused):
            Root(root).replace_file(path, b"HACKED", own=True)
    assert everything(outside) == before
    Root(root).replace_file("specs/new/SPECIFICATION.md", b"# New\n", own=True)
    assert (root / "specs/new/SPECIFICATION.md").read_text() == "# New\n"


def test_a_protected_path_is_not_written_nor_through_a_link(
    root: Path, outside: Path, workspace: Workspace
) -> None:
    before = everything(root)
    for links, path in (*(({}, path) for path in PROTECTED_FOR_WRITING), *PROTECTED_LINKS):
        make_links(links, root, outside)
        with pytest.raises(PathRefused):
            workspace.write(path, "HACKED")
    assert everything(root) == before


@pytest.mark.parametrize("link", [".lopen/state.db", ".git/config"])
def test_lopens_and_gits_own_files_are_not_read_nor_through_a_link(
    link: str, root: Path, workspace: Workspace
) -> None:
    (root / "link").symlink_to(link)
    for path in (link, link.upper(), f"./{link}", "link"):
        with pytest.raises(PathRefused, match="not readable"):
            workspace.read(path)
    with pytest.raises(PathRefused, match="not readable"):
        workspace.search("x", "link")


def test_a_specification_can_be_read(workspace: Workspace) -> None:
    assert workspace.read("specs/auth/SPECIFICATION.md").content == "# Auth\n"


def test_neighbours_of_protected_paths_can_be_written(root: Path, workspace: Workspace) -> None:
    for path in (
        ".gitignore",
        ".github/x.yml",
        ".claude/agents/a.md",
        "docs/SPECIFICATION.md",
        "specs/auth/notes.md",
    ):
        assert workspace.write(path, "x").created
        assert (root / path).read_text() == "x"


def test_a_link_that_stays_inside_is_read_and_written_through(root: Path, workspace: Workspace) -> None:
    (root / "src/link").symlink_to("../README.md")
    (root / "s").symlink_to("src/../src")
    (root / "whole").symlink_to(root)
    assert workspace.read("src/link").path == "README.md"
    assert workspace.write("s/link", "new").path == "README.md"
    assert (root / "README.md").read_text() == "new"
    assert (root / "src/link").is_symlink()
    assert workspace.read("s/app.py").path == "src/app.py"
    assert workspace.read("whole/src/app.py").path == "src/app.py"


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

    monkeypatch.setattr("lopen.core.files.os.write", full)
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


def test_splitting_drops_dots_and_doubled_slashes() -> None:
    assert split("./a//b/./c/") == ("a", "b", "c")
    assert split("") == split(".") == ()
