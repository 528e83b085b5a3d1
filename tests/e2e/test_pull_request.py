"""`lopen pr`: what the pull request says, and how it is opened."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.endpoint import status, tools, verdict
from tests.project import build, code, plan, verified


def test_a_pull_request_says_what_was_built_with_the_model_s_text_as_plain_text(
    make_project: MakeProject, tmp_path: Path
) -> None:
    evil = "<b>x</b> @octocat closes #1 <!-- `x` [a](http://evil) snake_case GH-7"
    project = make_project([plan(tasks=[evil]), build("calc-t1")])
    project.run_module()

    printed = project.lopen("pr", "--print")
    assert printed.code == 0, printed.err
    assert printed.out.startswith("feat(calc): build calc\n\nThe module calc\n")
    shown = r"\<b\>x\</b\> @~octocat closes #~1 \<\!-- `x` \[a\](http://~evil) snake_case GH-~7"
    assert f"- {shown.replace('~', '&#8203;')}: complete" in printed.out
    assert "- [x] **AC-1** add(1, 2) is 3 (" in printed.out
    assert "judged with " in printed.out
    assert " AC-1 met: add(1, 2) is 3" in project.lopen("show", "calc-t1").out
    criterion = project.lopen("show", "AC-1").out
    assert "AC-1 met: add(1, 2) is 3\n     built by " in criterion
    assert "(calc-t1): " in criterion
    assert re.search(r"the judge named no evidence \(verdict-\w+\)", criterion), criterion
    assert project.git("rev-parse", "lopen/calc")[:12] in printed.out
    assert "Cost: $" in printed.out

    remote, programs = tmp_path / "remote.git", tmp_path / "bin"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    programs.mkdir()
    gh = programs / "gh"
    gh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\necho https://example.org/pr/1\n')
    gh.chmod(0o755)
    path = f"{programs}{os.pathsep}{project.environment()['PATH']}"
    warned = project.lopen("pr", PATH=path)
    assert (warned.code, "has no remote, so nothing was pushed: push lopen/calc" in warned.err) == (0, True)

    project.git("remote", "add", "origin", str(remote))
    opened = project.lopen("pr", "--draft", PATH=path)
    assert (opened.code, opened.out) == (0, "https://example.org/pr/1\n"), opened.err
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("pr\ncreate\n--head\nlopen/calc\n--title\nfeat(calc): build calc\n")
    assert asked.endswith("--base\nmain\n--draft\n")
    pushed = subprocess.run(
        ["git", "-C", str(remote), "rev-parse", "lopen/calc"], capture_output=True, text=True, check=True
    )
    assert pushed.stdout.strip() == project.git("rev-parse", "lopen/calc")


def test_before_planning_it_has_no_headings_and_then_says_what_to_look_at_first(
    make_project: MakeProject,
) -> None:
    off = verdict(passed=False, summary="Sums are off.", findings=[{"severity": "error", "message": "zero"}])
    first = tools(*code(value="0 + a + b"), *verified("calc-t1")[:2])
    project = make_project([status(401, "no"), plan(), first, build("calc-t1")], oracle=[off, verdict()])
    project.run_module(code=1)
    assert "##" not in project.lopen("pr", "--print").out
    [shown] = project.lopen("status", "--json").events
    assert (shown["cost_usd"], shown["tokens"], shown["next"]) == (0.0, 0, f"lopen resume {shown['session']}")

    assert project.resume().code == 0
    printed = project.lopen("pr", "--print").out
    assert "## Look at first\n\n- calc was rejected before it passed: Sums are off.\n" in printed
    [shown] = project.lopen("status", "--json").events
    assert (shown["cost_usd"] > 0, shown["next"], len(shown["modules"])) == (True, "lopen merge calc", 1)
