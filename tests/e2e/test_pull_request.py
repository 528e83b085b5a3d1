"""`lopen pr`: what the pull request says, and how it is opened."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.project import build, plan


def test_a_pull_request_says_what_was_built_with_the_model_s_text_as_plain_text(
    make_project: MakeProject, tmp_path: Path
) -> None:
    evil = "<b>x</b> @octocat closes #1 <!-- `x` [a](http://evil) snake_case GH-7"
    project = make_project([plan(tasks=[evil]), build("calc-t1")])
    project.run_module()

    printed = project.lopen("pr", "--print")
    assert printed.code == 0, printed.err
    assert printed.out.startswith("feat(calc): build calc\n")
    shown = r"\<b\>x\</b\> @~octocat closes #~1 \<\!-- \`x\` \[a\](http://~evil) snake_case GH-~7"
    assert f"- {shown.replace('~', '&#8203;')}: complete" in printed.out
    assert "- [x] **AC-1** add(1, 2) is 3" in printed.out
    assert " AC-1 holds: add(1, 2) is 3" in project.lopen("show", "calc-t1").out
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
    assert (warned.code, "no remote" in warned.err) == (0, True)

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
