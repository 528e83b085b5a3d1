"""`lopen import`, the command: where it reads and writes, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.conftest import Lopen
from tests.specification.test_spec_import import CHANGE, ISSUE, KIRO, SPEC_KIT


def test_a_folder_a_file_and_an_issue_are_imported(lopen: Lopen, project: Path, tmp_path: Path) -> None:
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

    for name, text in CHANGE.items():
        (project / "openspec/changes/add-2fa" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "openspec/changes/add-2fa" / name).write_text(text)
    assert lopen("import", "openspec/changes/add-2fa").returncode == 0
    assert "nobody is signed in" in (project / "specs/add-2fa/SPECIFICATION.md").read_text()
    assert lopen("check", "add-2fa").returncode == 0

    (project / "notes.md").write_bytes(b"# Notes \xff\n\nnot UTF-8\n")
    broken = lopen("import", "notes.md")
    assert (broken.returncode, "Traceback" in broken.stderr, "notes.md" in broken.stderr) == (1, False, True)

    (project / "plain.md").write_text("# Plain\n\nIt is.\n\n## Must\n\n- add\n")
    plain = lopen("import", "plain.md")
    assert "lists under the headings Acceptance Criteria, Acceptance Scenarios" in plain.stdout
    for lacking in ("no acceptance criterion", "no dependencies"):
        assert f"TODO: the source {'has' if 'criterion' in lacking else 'names'} {lacking}" in plain.stdout

    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "answer").write_text('{"title": "Export as CSV", "body": "- [ ] A file with a header"}')
    gh = programs / "gh"
    gh.write_text(f'#!/bin/sh\n[ "$3" = 12 ] || exit 1\ncat {tmp_path}/answer\n')
    gh.chmod(0o755)
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    assert lopen("import", "#12", env=path).returncode == 0
    assert "A file with a header" in (project / "specs/export-as-csv/SPECIFICATION.md").read_text()
    assert ISSUE["issue.md"].startswith("# Export as CSV")

    for wrong, said in (
        (("nowhere.md",), "nowhere.md does not exist\n  name a Markdown file"),
        (("#13",), "gh"),
        (
            ("https://example.org/spec.md",),
            "https://example.org/spec.md is not a GitHub issue\n  download it",
        ),
        (("specs",), "no Markdown file"),
    ):
        refused = lopen("import", *wrong, env=path)
        assert (refused.returncode, said in refused.stderr) == (1, True), refused
