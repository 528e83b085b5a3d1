"""A repository's own rules for whoever works in it: where they are looked for, and how much of them is read."""

from __future__ import annotations

from pathlib import Path

from lopen.loop.project_context import CONVENTION_CHARS, conventions


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")


def test_the_nearest_come_first_and_agents_stand_before_claude(tmp_path: Path) -> None:
    for path in (
        "AGENTS.md",
        "CLAUDE.md",
        "specs/calc/CLAUDE.md",
        "src/calc/AGENTS.md",
        "specs/other/AGENTS.md",
    ):
        write(tmp_path, path, f"of {path}\n")

    assert conventions(tmp_path, "calc") == (
        ("specs/calc/CLAUDE.md", "of specs/calc/CLAUDE.md\n"),
        ("src/calc/AGENTS.md", "of src/calc/AGENTS.md\n"),
        ("AGENTS.md", "of AGENTS.md\n"),
    )


def test_no_link_is_followed_to_them(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write(tmp_path, "elsewhere/AGENTS.md", "not yours\n")
    root.mkdir()
    (root / "AGENTS.md").symlink_to("../elsewhere/AGENTS.md")
    (root / "calc").symlink_to("../elsewhere")

    assert conventions(root, "calc") == ()


def test_long_rules_are_cut_and_the_cut_is_said(tmp_path: Path) -> None:
    write(tmp_path, "specs/calc/AGENTS.md", "near\n")
    write(tmp_path, "AGENTS.md", "x" * (CONVENTION_CHARS + 1))

    (_, near), (_, far) = conventions(tmp_path, "calc")

    assert near == "near\n"
    assert far == "x" * (CONVENTION_CHARS - len(near)) + "\n[cut here; read_file gives the rest]"
