"""Templates that are empty or outdated, the oracle's too, end a run before anything is paid for."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.project import plan


def test_every_template_is_checked_before_the_first_request(
    make_project: MakeProject, tmp_path: Path
) -> None:
    folder = tmp_path / "templates"
    shutil.copytree(str(resources.files("lopen.models.prompts") / "templates"), folder)
    whole = (folder / "role.md").read_text("utf-8")
    (folder / "role.md").write_text(whole.partition("\n")[0] + "\n\n", "utf-8")
    project = make_project([plan()])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0

    empty = project.lopen("run", "calc", LOPEN_WORKFLOW__TEMPLATES=str(folder))
    assert (empty.code, "prompt template role is empty" in empty.err) == (1, True)

    newer = [["tests.crash.faults:replace", "lopen.judge.rubric:VERSION", 99]]
    outdated = project.lopen("run", "calc", arrange=newer)
    assert (outdated.code, "template judge.md is outdated" in outdated.err) == (1, True)
    assert project.requests == []
