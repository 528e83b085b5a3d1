"""`workflow.notify_command`: what the person's command is told at each end of a run."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.project import build, plan

SHOW = 'printf "%s|%s|%s|%s\\n" "$LOPEN_EXIT_CODE" "$LOPEN_MESSAGE" "$HOME" "${ANTHROPIC_API_KEY-none}"'


def test_notification_says_how_the_run_ended(make_project: MakeProject, tmp_path: Path) -> None:
    told = tmp_path / "told"
    project = make_project([plan(), build("calc-t1")], LOPEN_WORKFLOW__NOTIFY_COMMAND=f"{SHOW} >> {told}")
    project.specify()

    project.lopen("run", "calc")
    project.lopen("approve", "calc", "--yes")
    project.lopen("plan", "calc")
    project.lopen("run", "calc")

    home = project.environment()["HOME"]
    lines = told.read_text().splitlines()
    assert [line.partition("|")[0] for line in lines] == ["3", "0", "0"]
    assert "approv" in lines[0]
    assert lines[1:] == [f"0|planning of calc is complete|{home}|none", f"0|calc is complete|{home}|none"]
