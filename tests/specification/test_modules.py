"""Research notes beside a specification."""

from __future__ import annotations

from pathlib import Path

from lopen.specification.modules import read_topic, topics


def test_notes_are_read_through_links_inside_the_project_alone(tmp_path: Path) -> None:
    specs, outside = tmp_path / "project/specs", tmp_path / "outside"
    for folder in (specs / "shared", outside):
        folder.mkdir(parents=True)
        (folder / "RESEARCH-sums.md").write_text(f"# Sums\n\nin {folder.name}\n" + "x" * 9_000)
    (specs / "near").symlink_to("shared")
    (specs / "far").symlink_to(outside)
    assert [(t.name, t.excerpt) for t in topics(specs / "near")] == [("sums", "in shared")]
    assert (read_topic(specs / "near", "Sums") or "").endswith("x" * 9_000)
    assert topics(specs / "far") == ()
    assert read_topic(specs / "far", "sums") is None
