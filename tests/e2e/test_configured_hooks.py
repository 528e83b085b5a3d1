"""Hooks and configuration in the work tree that git's configuration names belong to the person, as `.git` does."""

from __future__ import annotations

import pytest

from lopen.sandbox.choice import Mode, probe
from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.project import build, plan

EVIL = "#!/bin/sh\ntouch RAN\n"
PLANT = """for f in .husky/_/post-checkout .husky/post-checkout later/post-checkout; do
  mkdir -p $(dirname $f); printf '#!/bin/sh\\ntouch RAN\\n' > $f; chmod +x $f
done
git config --file .gitconfig core.fsmonitor ./.husky/_/post-checkout
git config --file .gitconfig-later core.fsmonitor ./.husky/_/post-checkout
mv .husky away; mkdir -p .husky/_; cp away/_/* .husky/_/; rm -rf away
true"""
WRITTEN = (".husky/_/post-checkout", ".husky/post-merge", ".gitconfig", ".gitconfig-later", "later/pre-push")


@pytest.mark.parametrize("mode", ["bwrap", "landlock", "none"])
def test_what_a_build_plants_for_git_never_runs(make_project: MakeProject, mode: Mode) -> None:
    if not probe(mode).works:
        pytest.skip(f"{mode} does not work here")
    writes = [("write_file", {"path": path, "content": EVIL}) for path in WRITTEN]
    attempt = tools(("run_command", {"command": PLANT}), *writes)
    project = make_project([plan(), attempt, build("calc-t1")], LOPEN_SANDBOX__MODE=mode)
    project.write(".husky/_/pre-push", "#!/bin/sh\nexit 0\n").chmod(0o755)
    project.write(".husky/_/.gitignore", "*\n")
    project.write(".husky/pre-push", "true\n")
    project.write(".gitconfig", "[alias]\n\tst = status\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "Hooks")
    project.git("config", "core.hooksPath", ".husky/_")
    project.git("config", "include.path", "../.gitconfig")
    project.git("config", "includeIf.onbranch:nowhere.path", "../.gitconfig-hooks")
    project.write(".gitconfig-hooks", "[core]\n\thooksPath = later\n[include]\n\tpath = .gitconfig-later\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "Hooks elsewhere")
    project.specify()

    ran = project.approved_run()
    project.git("switch", "-q", "lopen/calc")
    project.git("status")
    project.git("switch", "-q", "-")

    assert ran.code == 0, ran.out + ran.err
    assert not (project.root / "RAN").exists()
    assert project.read(".gitconfig") == "[alias]\n\tst = status\n"
    assert sorted(p.name for p in (project.root / ".husky").rglob("*")) == [
        ".gitignore", "_", "pre-push", "pre-push",
    ]  # fmt: skip
    for path in (".gitconfig-later", "later/post-checkout", "later/pre-push"):
        assert not (project.root / path).exists(), path
    found = [r for request in project.requests for r in tool_results(request) if r.tool == "write_file"]
    for path in WRITTEN:
        assert any(f"{path} is protected: git is configured" in r.text for r in found), path
    assert "put back" in project.lopen("log").out
