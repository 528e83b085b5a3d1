"""`lopen import`, the command: where it reads and writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Lopen
from tests.specification.test_spec_import import KIRO, SPEC_KIT


def test_folders_and_files_are_imported(lopen: Lopen, project: Path) -> None:
    folder = project / "specs" / "001-photo-albums"
    folder.mkdir(parents=True)
    for name, text in SPEC_KIT.items():
        (folder / name).write_text(text)
    done = lopen("import", "specs/001-photo-albums")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "next: lopen check photo-albums"), done
    assert "not taken over: tasks.md" in done.stdout
    assert lopen("check", "photo-albums").returncode == 0
    again = lopen("import", "specs/001-photo-albums")
    assert (again.returncode, "exists" in again.stderr) == (1, True)

    (project / "requirements.md").write_text(KIRO["requirements.md"])
    assert lopen("import", "requirements.md", "--module", "signin").returncode == 0
    assert lopen("check", "signin").returncode == 0

    (project / "notes.md").write_bytes(b"# Notes \xff\n\nnot UTF-8\n")
    broken = lopen("import", "notes.md")
    assert (broken.returncode, "Traceback" in broken.stderr, "notes.md" in broken.stderr) == (1, False, True)

    (project / "plain.md").write_text("# Plain\n\nIt is.\n\n## Must\n\n- add\n")
    plain = lopen("import", "plain.md")
    assert "lists under the headings Acceptance Criteria, Acceptance Scenarios" in plain.stdout
    for lacking in ("no acceptance criterion", "no dependencies"):
        assert f"TODO: the source {'has' if 'criterion' in lacking else 'names'} {lacking}" in plain.stdout

    for wrong, said in (
        (("nowhere.md",), "nowhere.md does not exist\n  name a Markdown file"),
        (("specs",), "no Markdown file"),
    ):
        refused = lopen("import", *wrong)
        assert (refused.returncode, said in refused.stderr) == (1, True), refused
