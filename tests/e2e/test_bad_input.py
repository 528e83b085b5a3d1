"""What cannot be worked with: each time one clear line that says what and what to do, the right code, nothing lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.endpoint import ScriptedEndpoint
from tests.project import Project, build, plan, specification
from tests.ran import Ran

SPEC = "specs/calc/SPECIFICATION.md"


def told(ran: Ran, code: int, *words: str) -> None:
    """The command ended with `code`, said these words on standard error, and did not fall over."""
    assert ran.code == code, (ran.out, ran.err)
    for word in words:
        assert word in ran.err, (word, ran.err)
    assert "Traceback" not in ran.out + ran.err
    assert "internal error in lopen" not in ran.err


# Specifications

MALFORMED = {
    "empty": (b"", "SPECIFICATION.md:1: the specification is empty"),
    "blank": (b"\xef\xbb\xbf \r\n\t\n", "SPECIFICATION.md:1: the specification is empty"),
    "binary": (b"# x\n\0\1\2", "SPECIFICATION.md:2: NUL byte"),
    "no UTF-8": (b"# x\ncaf\xe9\n", "SPECIFICATION.md:2: not UTF-8"),
    "UTF-16": ("# x\n".encode("utf-16"), "SPECIFICATION.md:1: NUL byte"),
    "no front matter": (b"# x\n\n## Overview\nx\n", "SPECIFICATION.md:1: "),
    "broken front matter": (b"---\nname: [\n---\n# x\n", "SPECIFICATION.md:2: "),
}


def test_a_specification_that_cannot_be_used_is_refused_everywhere(make_project: MakeProject) -> None:
    project = make_project()
    names = {f"m{number}": kind for number, kind in enumerate(MALFORMED)}
    for module, kind in names.items():
        project.specify(module).write_bytes(MALFORMED[kind][0])

    checked = project.lopen("check")

    assert checked.code == 1
    for module, kind in names.items():
        content, words = MALFORMED[kind]
        assert words.removeprefix("SPECIFICATION.md") in checked.out, kind
        told(project.lopen("approve", module, "--yes"), 1, words)
        assert (project.root / "specs" / module / "SPECIFICATION.md").read_bytes() == content
    for module in ("m0", "m3", "m6"):
        told(project.lopen("run", module), 1, f"specs/{module}/SPECIFICATION.md")
    assert project.requests == []


def test_a_name_that_is_no_module_s_is_refused(make_project: MakeProject) -> None:
    project = make_project()
    project.write("SPECIFICATION.md", specification())
    project.write("calc/SPECIFICATION.md", specification())
    before = project.git("status", "--porcelain", "-uall", "--ignored")

    for name in ("../calc", "", "-x", "calc\n", "[red]calc\x1b]0;x\x07", "x" * 65, "calc.lock"):
        for command in ("run", "approve") if len(name) < 6 else ("spec",):
            words = ("invalid module name", "letters, digits") if name else ("the module's name is empty",)
            told(project.lopen(command, "--", name), 2, *words)

    assert project.git("status", "--porcelain", "-uall", "--ignored") == before


# Repositories


def test_a_repository_without_commits_waits_for_a_first_one(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.git("update-ref", "-d", "HEAD")
    project.git("rm", "-rq", "--cached", ".")
    (project.root / "README.md").unlink()
    (project.root / ".gitignore").unlink()
    project.specify()

    told(project.lopen("run", "cacl"), 1, "did you mean calc?")  # before what the right name needs
    told(project.approved_run(), 1, "no commit yet", "git add -A && git commit")
    told(project.lopen("run", "calc", ANTHROPIC_API_KEY=""), 1, "no commit yet")  # before the key
    assert project.requests == []
    project.git("commit", "-q", "--allow-empty", "-m", "Begin")
    assert project.lopen("run", "calc").code == 0


def test_a_detached_head_is_where_the_branch_begins(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.git("switch", "-q", "--detach")
    project.git("commit", "-q", "--allow-empty", "-m", "On no branch")
    start = project.git("rev-parse", "HEAD")
    project.run_module()
    assert project.git("rev-parse", "lopen/calc~2", "HEAD").split() == [start, start]


def test_nobody_to_commit_as_is_told_before_anything_is_made(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    (Path(os.environ["HOME"]) / ".gitconfig").unlink()

    told(project.approved_run(), 1, "no identity to commit with", "git config --global user.name")

    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert project.requests == []
    project.git("config", "user.name", "Somebody")
    project.git("config", "user.email", "somebody@example.invalid")
    ran = project.lopen("resume")
    assert ran.code == 0, ran.out + ran.err
    assert "lopen merge calc" in ran.out


def test_no_repository_and_a_bare_one_are_told(tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        project = Project(tmp_path / "first", endpoint)
        project.root = tmp_path / "folder"
        project.root.mkdir()
        project.specify()
        told(project.approved_run(), 1, "is not a git repository", "git -C", "init")
        subprocess.run(["git", "init", "-q", "--bare", "."], cwd=project.root, check=True)
        told(project.lopen("run", "calc"), 1, "a bare repository", "clone")
        assert endpoint.requests == []


def test_a_folder_inside_a_repository_is_told_where_to_work(make_project: MakeProject) -> None:
    project = make_project()
    inner = project.root / "inner"
    (inner / ".lopen").mkdir(parents=True)
    project.write("inner/specs/calc/SPECIFICATION.md", specification())
    assert project.lopen("-C", str(inner), "approve", "calc", "--yes").code == 0

    told(project.lopen("-C", str(inner), "run", "calc"), 1, "is not the top of its repository", "lopen -C")
