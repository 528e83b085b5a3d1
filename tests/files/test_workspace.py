"""Reading, listing, searching, writing and editing ordinary files, and what is said where something is cut."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.hashing import content_hash
from lopen.files.listing import MAX_LISTED
from lopen.files.protection import ToolRefused
from lopen.files.search import MAX_MATCHES, run_search
from lopen.files.text_files import READ_CHARACTERS, excerpt, line_count
from lopen.files.workspace import Workspace


def test_a_file_is_read_whole_with_its_lines_and_hash(root: Path, workspace: Workspace) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree")
    got = workspace.read("a.txt")
    assert (got.content, got.lines, got.truncated, got.note) == ("one\ntwo\nthree", 3, False, "")
    assert got.content_hash == content_hash("one\ntwo\nthree")


def test_some_lines_are_read_and_the_note_says_how_to_go_on(root: Path, workspace: Workspace) -> None:
    (root / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 11)))
    got = workspace.read("a.txt", offset=4, limit=2)
    assert (got.content, got.first_line, got.lines, got.truncated) == ("4\n5\n", 4, 10, True)
    assert got.note == "Lines 4-5 of 10. Continue with offset=6."
    assert workspace.read("a.txt", offset=6).truncated is False


def test_a_long_file_is_cut_at_a_line_and_can_be_read_on(root: Path, workspace: Workspace) -> None:
    text = "".join(f"{n:99}\n" for n in range(2_500))
    (root / "long.txt").write_text(text)
    read, offset = "", 1
    for _ in range(5):
        got = workspace.read("long.txt", offset)
        assert len(got.content) <= READ_CHARACTERS
        read += got.content
        if not got.truncated:
            break
        offset = int(got.note.rpartition("=")[2].rstrip("."))
    assert read == text


def test_one_endless_line_is_cut_and_said(root: Path, workspace: Workspace) -> None:
    (root / "min.js").write_text("x" * 150_000 + "\nlast")
    got = workspace.read("min.js")
    assert len(got.content) == READ_CHARACTERS
    assert got.note == "Line 1 is cut at 100000 of its 150001 characters. Continue with offset=2."


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (-1, None), (3, None), (1, 0)])
def test_an_offset_or_limit_that_cannot_be_is_refused(
    offset: int, limit: int | None, root: Path, workspace: Workspace
) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(ToolRefused):
        workspace.read("a.txt", offset, limit)


@given(st.text(alphabet="ab\n\r\f\u2028", max_size=60), st.integers(1, 5))
def test_reading_in_pieces_gives_the_whole(text: str, size: int) -> None:
    pieces, offset = "", 1
    while offset <= line_count(text):
        pieces += excerpt(text, offset, size)[0]
        offset += size
    assert pieces == text


def test_binary_is_refused_and_other_encodings_are_said(root: Path, workspace: Workspace) -> None:
    (root / "b.bin").write_bytes(b"\x7fELF\0\0")
    (root / "latin.txt").write_bytes("größe".encode("latin-1"))
    (root / "utf16.txt").write_bytes("größe".encode("utf-16"))
    (root / "dos.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    with pytest.raises(ToolRefused, match="binary file of 6 bytes"):
        workspace.read("b.bin")
    assert workspace.read("latin.txt").content == "gr\ufffd\ufffde"
    assert "not UTF-8" in workspace.read("latin.txt").note
    assert workspace.read("utf16.txt").content == "größe"
    assert workspace.read("dos.txt").content == "a\nb\n"
    assert "CRLF" in workspace.read("dos.txt").note


def test_a_huge_file_is_refused_with_a_way_to_look_at_it(root: Path, workspace: Workspace) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(40_000_000)
    with pytest.raises(ToolRefused) as refused:
        workspace.read("huge")
    assert "run_command" in refused.value.hint


def test_what_was_written_is_read(root: Path, workspace: Workspace) -> None:
    written = workspace.write("src/new.py", "größe\r\n")
    assert (written.path, written.bytes, written.created) == ("src/new.py", 9, True)
    assert (root / "src/new.py").read_bytes() == "größe\r\n".encode()


def test_too_much_content_and_lone_surrogates_are_refused(root: Path, workspace: Workspace) -> None:
    with pytest.raises(ToolRefused, match="the limit is"):
        workspace.write("big", "x" * 10_000_001)
    with pytest.raises(ToolRefused, match="surrogates"):
        workspace.write("odd", "\ud800")
    assert not (root / "big").exists()


def test_files_are_listed_by_folder_and_glob(root: Path, workspace: Workspace) -> None:
    for name in ("src/deep/x.py", "src/deep/x.md"):
        workspace.write(name, "")
    assert workspace.list_files().files == (
        ".claude/settings.json",
        "README.md",
        "specs/auth/SPECIFICATION.md",
        "src/app.py",
        "src/deep/x.md",
        "src/deep/x.py",
    )
    assert workspace.list_files(glob="*.py").files == ("src/app.py", "src/deep/x.py")
    assert workspace.list_files("src", "deep/*").files == ("src/deep/x.md", "src/deep/x.py")
    assert workspace.list_files(glob="src/*.py").files == ("src/app.py",)
    assert workspace.list_files(glob="**/x.{md,py}").files == ("src/deep/x.md", "src/deep/x.py")
    assert workspace.list_files(glob="src/**").files == ("src/app.py", "src/deep/x.md", "src/deep/x.py")


def test_a_long_listing_is_cut_and_said(root: Path) -> None:
    names = [f"f{n}" for n in range(MAX_LISTED + 1)]
    for name in names:
        (root / name).touch()
    listing = Workspace(root, lambda: ["gone", *names]).list_files()
    assert (len(listing.files), listing.truncated) == (MAX_LISTED, True)
    assert "narrow" in listing.note


@pytest.mark.parametrize("glob", ["*a" * 200 + "b", "**/" * 150 + "x", "{a,b}" * 90, "[" * 90, "?" * 600])
def test_a_hostile_glob_takes_no_time(glob: str, root: Path) -> None:
    workspace = Workspace(root, lambda: ["a" * 200 + "/" + "a" * 200] * 50)
    started = time.process_time()
    with contextlib.suppress(ToolRefused):
        assert workspace.list_files(glob=glob).files == ()
    assert time.process_time() - started < 2


def test_matches_come_with_path_line_and_text(root: Path, workspace: Workspace) -> None:
    workspace.write("src/b.py", "import os\r\n\r\nprint( 'x')\r\n")
    found = workspace.search(r"print\(\s?'", glob="*.py")
    assert [(m.path, m.line, m.text) for m in found.matches] == [
        ("src/app.py", 1, "print('hello')"),
        ("src/b.py", 3, "print( 'x')"),
    ]
    assert [m.path for m in workspace.search("hello", "src/app.py").matches] == ["src/app.py"]
    assert workspace.search("no such thing").matches == ()


def test_a_search_leaves_out_binary_large_private_and_outside_files(
    root: Path, outside: Path, workspace: Workspace
) -> None:
    (root / "b.bin").write_bytes(b"\0needle")
    (root / "big.txt").write_text("needle\n" * 300_000)
    (root / ".git/needle").write_text("needle")
    (outside / "n.txt").write_text("needle")
    (root / "out").symlink_to(outside / "n.txt")
    found = workspace.search("needle")
    assert found.matches == ()
    assert found.note == "The search skipped 1 files over 2 MB."


def test_many_matches_and_long_lines_are_cut(root: Path, workspace: Workspace) -> None:
    (root / "many").write_text("needle\n" * 500)
    (root / "a-long-line").write_text("x" * 5_000 + "needle" + "y" * 5_000)
    found = workspace.search("needle")
    assert (len(found.matches), found.truncated) == (MAX_MATCHES, True)
    assert len(found.matches[0].text) <= 400
    assert "needle" in found.matches[0].text


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*x", "(?P<n>a)(?P<n>b)", "", "x" * 2_000, "a{99999999999999}"]
)
def test_what_is_no_regular_expression_is_refused(pattern: str, workspace: Workspace) -> None:
    with pytest.raises(ToolRefused):
        workspace.search(pattern)


def test_a_pattern_that_backtracks_without_end_is_stopped(root: Path) -> None:
    (root / "a").write_text("a" * 5_000 + "b")
    with pytest.raises(ToolRefused, match="took longer"):
        run_search(root, ["a"], r"(a+)+$", timeout_s=0.5)


def test_a_passage_is_replaced(root: Path, workspace: Workspace) -> None:
    edited = workspace.edit("src/app.py", "hello", "bye")
    assert edited.replacements == 1
    assert (root / "src/app.py").read_text() == "print('bye')\n"


def test_an_ambiguous_passage_is_refused_with_its_lines_unless_all_are_meant(
    root: Path, workspace: Workspace
) -> None:
    (root / "a").write_text("x\ny\nx\n")
    with pytest.raises(ToolRefused, match="2 times, at lines 1, 3"):
        workspace.edit("a", "x", "z")
    edited = workspace.edit("a", "x", "z\nz", replace_all=True)
    assert edited.replacements == 2
    assert (root / "a").read_text() == "z\nz\ny\nz\nz\n"


def test_a_missing_passage_is_refused_with_what_comes_nearest(root: Path, workspace: Workspace) -> None:
    (root / "a.py").write_text("def total(items):\n    return sum(items)\n")
    with pytest.raises(ToolRefused) as near:
        workspace.edit("a.py", "def totals(items):", "x")
    assert near.value.hint == "nearest: line 1: def total(items):"
    with pytest.raises(ToolRefused) as blanks:
        workspace.edit("a.py", "def total(items):\n  return sum(items)", "x")
    assert "line 1 differs only in whitespace" in blanks.value.hint
    with pytest.raises(ToolRefused) as nothing:
        workspace.edit("a.py", "zzzzzzzz", "x")
    assert "no line is similar" in nothing.value.hint


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("print", "print")])
def test_an_edit_that_edits_nothing_is_refused(old: str, new: str, workspace: Workspace) -> None:
    with pytest.raises(ToolRefused):
        workspace.edit("src/app.py", old, new)


def test_line_ends_and_bytes_that_are_no_text_survive_an_edit(root: Path, workspace: Workspace) -> None:
    (root / "dos.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    workspace.edit("dos.txt", "a\nb", "1\n2\n3")
    assert (root / "dos.txt").read_bytes() == b"1\r\n2\r\n3\r\nc\r\n"
    (root / "latin.txt").write_bytes(b"gr\xf6\xdfe one\n")
    workspace.edit("latin.txt", "one", "two")
    assert (root / "latin.txt").read_bytes() == b"gr\xf6\xdfe two\n"


def test_an_edit_within_the_same_second_shows_to_those_who_look_at_whole_seconds_and_size(
    workspace: Workspace, root: Path
) -> None:
    file = root / "src" / "app.py"
    seen = set()
    for number in range(5):
        workspace.write("src/app.py", f"print({number})\n")
        seen.add((int(file.stat().st_mtime), file.stat().st_size))

    assert len(seen) == 5
