"""Submodules are not part of the work: writing there is refused, and the run goes on."""

from __future__ import annotations

import subprocess

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.project import TIMEOUT_S, code, plan, verified

OTHER = "git init -q; echo 'def f(): return 1' > impl.py; git add -A; git commit -qm One"


def test_writing_into_a_submodule_is_refused(make_project: MakeProject) -> None:
    calls = [
        ("write_file", {"path": "sub/impl.py", "content": "X = 2\n"}),
        ("edit_file", {"path": "./sub/../sub/impl.py", "old_text": "1", "new_text": "2"}),
        ("write_file", {"path": "sub/new/deep.py", "content": "X = 2\n"}),
        ("run_command", {"command": "echo 'X = 3' >> sub/impl.py; touch sub/more; git -C sub status -s"}),
    ]
    project = make_project([plan(), tools(*calls), tools(*code(), *verified("calc-t1"))])
    sub = project.root / "sub"
    sub.mkdir()
    subprocess.run(["/bin/sh", "-ec", OTHER], cwd=sub, check=True, timeout=TIMEOUT_S)
    project.write(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n')
    project.commit("Add a submodule")
    project.build_module()
    refused = [r.text + str(r.data) for r in tool_results(project.requests[-1]) if r.tool == "write_file"]
    assert len(refused) == 2
    assert all("submodules are not part of the work" in text for text in refused), refused
    assert project.read("sub/impl.py") == "def f(): return 1\n"
    assert not (sub / "more").exists()
    assert project.git("rev-parse", "lopen/calc:sub") == project.git("rev-parse", "main:sub")
    assert "feat(calc): complete Write it in core" in project.subjects("lopen/calc")
