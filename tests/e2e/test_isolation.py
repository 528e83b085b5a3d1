"""`git.isolation = "worktree"`: work goes on beside the person's checkout, which stays exactly as it is."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from lopen.models.fake_api import Answer
from lopen.sandbox.choice import probe
from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.project import TIMEOUT_S, UNITTEST, Project, build, code, plan, specification, verified

LOPENS = ("specs/calc/", ".lopen/")  # all of the checkout that lopen may write


def isolated(make_project: MakeProject, script: Any, **more: str) -> Project:
    return make_project(script, LOPEN_GIT__ISOLATION="worktree", **more)


def trees(project: Project) -> list[Path]:
    """The linked work trees, by what git says."""
    listed = project.git("worktree", "list", "--porcelain").splitlines()
    paths = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
    return [path for path in paths if path != project.root]


def checkout(project: Project) -> dict[str, str]:
    """What a person could see changed: HEAD, index, status, and every file but lopen's own."""
    status = project.git("status", "--porcelain", "--untracked-files=all").splitlines()
    seen = {
        "HEAD": (project.root / ".git/HEAD").read_text(),
        "commit": project.git("rev-parse", "HEAD"),
        "status": "\n".join(line for line in status if not line[3:].startswith(LOPENS)),
    }
    files = [project.root / ".git/index"]
    files += [p for p in project.root.rglob("*") if p.is_file() and ".git" not in p.parts]
    for path in files:
        name = str(path.relative_to(project.root))
        if not name.startswith(LOPENS):
            seen[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return seen


def dirty(project: Project) -> dict[str, str]:
    """Staged, changed and untracked work of the person's; what the checkout looks like with it."""
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    project.write("README.md", "Half a sentence\n")
    project.write("calc.py", "the person's own, and no Python\n")
    project.git("status")  # its index is refreshed
    return checkout(project)


def test_a_module_is_built_beside_a_dirty_checkout_and_merged_by_the_command_it_names(
    make_project: MakeProject,
) -> None:
    project = isolated(make_project, [plan(), build("calc-t1")])
    project.specify()
    before = dirty(project)

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert checkout(project) == before
    assert project.subjects("lopen/calc")[1:] == [
        "docs(calc): approve specification",
        "feat(calc): complete Write it in core",
    ]
    held = project.git("ls-tree", "-r", "--name-only", "lopen/calc").splitlines()
    assert held == [
        ".gitignore",
        "README.md",
        "calc.py",
        "specs/calc/SPECIFICATION.md",
        "test_calc.py",
    ]
    assert trees(project) == []
    told = [event["message"] for event in ran.named("notice")]
    assert not any("detached" in line for line in told)
    [removed] = [line for line in told if line.endswith("; its work is on lopen/calc")]
    assert not Path(removed.removeprefix("lopen removed the work tree ").split(";")[0]).exists()

    project.git("reset", "-q", "--hard")
    (project.root / "calc.py").unlink()
    [complete] = ran.named("session_complete")
    merge = complete["merge_command"]
    assert merge.endswith("git merge lopen/calc")
    subprocess.run(["/bin/sh", "-c", merge], cwd=project.root, check=True, capture_output=True)
    assert "return a + b" in project.read("calc.py")
    assert project.git("status", "--porcelain") == "?? .lopen/"


def test_two_modules_are_built_at_the_same_time_while_the_person_works_on(
    make_project: MakeProject, tmp_path: Path
) -> None:
    met = tmp_path / "met"
    met.mkdir()

    def worker(body: dict[str, Any]) -> Answer:
        prompt = "\n".join(block["text"] for block in body["system"])
        module = "tax" if "module: tax" in prompt else "calc"
        return build(f"{module}-t1", module) if "step: 6" in prompt else plan()

    project = isolated(make_project, worker)
    for module in ("calc", "tax"):
        # Both commands run, without a sandbox, until the person has committed.
        waits = f"touch {met}/{module}; for _ in $(seq 2400); do test -e {met}/go && break; sleep 0.05; done"
        project.specify(module, specification(module, commands={"verify-tests": f"{waits}; {UNITTEST}"}))
        assert project.lopen("approve", module, "--yes").code == 0

    running = [project.start("run", module, "--json") for module in ("calc", "tax")]
    wait_for(met / "calc", met / "tax")
    project.write("mine.txt", "meanwhile\n")
    project.git("add", "mine.txt")
    project.git("commit", "-q", "-m", "Meanwhile")
    mine = project.git("rev-parse", "HEAD")
    twice = project.lopen("run", "calc")
    project.git("branch", "-q", "aside")
    (met / "go").touch()
    outs = [process.communicate(timeout=TIMEOUT_S) for process in running]

    assert [process.returncode for process in running] == [0, 0], outs
    assert "put back" not in str(outs)
    assert (twice.code, "is working on module calc" in twice.err) == (1, True)
    assert [project.git("rev-parse", ref) for ref in ("HEAD", "main", "aside")] == [mine] * 3
    assert project.git("status", "--porcelain", "--", ":!specs", ":!.lopen") == ""
    for module in ("calc", "tax"):
        assert project.subjects(f"lopen/{module}") == [
            "Begin",
            f"docs({module}): approve specification",
            f"feat({module}): complete Write it in core",
        ]
    assert trees(project) == []


def wait_for(*files: Path) -> None:
    """Until they all exist; `TIMEOUT_S` at most."""
    until = time.monotonic() + TIMEOUT_S
    while not all(file.exists() for file in files):
        assert time.monotonic() < until, files
        time.sleep(0.02)


POINTS = (
    "before:lopen.git.repository:Repository.align_index",  # its files are not all there
    "after:lopen.git.branches:Branches.start",
    "before:lopen.loop.task_commit:_record",
    "before:lopen.files.work_trees:LinkedTree.close",
)


def test_killed_anywhere_it_is_finished_in_the_end(make_project: MakeProject) -> None:
    def worker(body: dict[str, Any]) -> Answer:
        prompt = "\n".join(block["text"] for block in body["system"])
        return build("calc-t1") if "step: 6" in prompt else plan()

    project = isolated(make_project, worker)
    project.specify()
    before = dirty(project)
    assert project.lopen("approve", "calc", "--yes").code == 0

    for point in POINTS:
        ran = project.ended_at(point, "run", "calc")
        assert ran.code == -9, (point, ran.out, ran.err)
        assert checkout(project) == before, point

    # What it was killed over is cleared away by the next session, whichever module's.
    assert len(trees(project)) == 1
    project.specify("tax")
    waits = project.lopen("run", "tax")
    assert waits.code == 3
    assert "the work tree of a finished session" in waits.err
    assert [path.name for path in trees(project)] == ["tax"]
    assert project.subjects("lopen/calc")[1:] == [
        "docs(calc): approve specification",
        "feat(calc): complete Write it in core",
    ]
    assert project.git("fsck", "--no-dangling") == ""


def test_a_deleted_work_tree_is_made_again_from_the_branch(make_project: MakeProject) -> None:
    project: Project

    def vanishes(_: dict[str, Any]) -> Answer:
        [path] = trees(project)
        shutil.rmtree(path)
        return tools(("report_progress", {"message": "The folder is gone."}))

    project = isolated(make_project, [plan(tasks=("Add", "Say it")), build("calc-t1"), vanishes])
    project.specify()
    broken = project.drive()
    assert broken.code == 1
    assert "Traceback" not in broken.err

    assert project.endpoint is not None
    project.endpoint._script._turns[:] = [tools(*code("other"), *verified("calc-t2"))]
    on = project.resume()

    assert on.code == 0, on.err
    assert project.subjects("lopen/calc")[2:] == [
        "feat(calc): complete Add in core",
        "feat(calc): complete Say it in core",
    ]
    assert checkout(project)["status"] == ""


def test_the_specification_is_the_one_in_the_checkout(make_project: MakeProject) -> None:
    project: Project
    note = ("log_research", {"topic": "Sums", "summary": "They add.", "findings": "Yes."})
    later = specification().replace("Nothing is rounded.", "Nothing is ever rounded.")

    def meanwhile(_: dict[str, Any]) -> Answer:
        project.specify(text=later)
        return build("calc-t1")

    draft = tools(note, ("write_spec", {"content": specification()}))
    said = tools(("read_file", {"path": "specs/calc/SPECIFICATION.md"}), *code("other"), *verified("calc-t2"))
    project = isolated(make_project, [draft, plan(tasks=("Add", "Say it")), meanwhile, said])

    drafted = project.lopen("spec", "calc", "-p", "a calculator")
    assert drafted.code == 0, drafted.err
    assert project.read("specs/calc/SPECIFICATION.md") == specification()
    assert "They add." in project.read("specs/calc/RESEARCH-sums.md")
    assert project.git("branch", "--list", "lopen/*") == ""  # none before the gate
    latin = project.root / "specs/calc/RESEARCH-latin.md"
    latin.write_bytes(b"# Latin\n\nna\xefve\n")  # the person's own, in an encoding of its own
    project.write("more.txt", "more\n")
    project.git("add", "more.txt")
    project.git("commit", "-q", "-m", "More")  # the branch begins here, though the draft did not

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert len(ran.named("drift")) == 1
    assert project.subjects("lopen/calc")[:3] == ["Begin", "More", "docs(calc): approve specification"]
    assert project.git("show", "lopen/calc:specs/calc/RESEARCH-sums.md").startswith("# Sums")
    assert "specs/calc/RESEARCH-latin.md" in project.git("ls-tree", "-r", "--name-only", "lopen/calc")
    assert project.git("show", "lopen/calc~1:specs/calc/SPECIFICATION.md") == specification().strip()
    assert project.git("show", "lopen/calc:specs/calc/SPECIFICATION.md") == later.strip()


def test_revert_and_a_second_session_go_on_from_the_branch(make_project: MakeProject) -> None:
    project = isolated(
        make_project,
        [plan(tasks=("Add", "Say it")), build("calc-t1"), tools(*code("other"), *verified("calc-t2"))],
    )
    project.specify()
    first = project.drive()
    assert first.code == 0, first.err
    before = checkout(project)

    replayed = project.lopen("replay", first.named("session_complete")[0]["session"])
    assert replayed.code == 0, replayed.err
    reverted = project.lopen("revert", "calc", "--to", "calc-t1")
    assert reverted.code == 0, reverted.err
    assert project.subjects("lopen/calc")[2:] == ["feat(calc): complete Add in core"]
    [path] = trees(project)
    assert f"works in: {path}" in project.lopen("status", "calc").out

    assert project.endpoint is not None
    project.endpoint._script._turns[:] = [tools(*code("other"), *verified("calc-t2"))]
    assert project.resume().code == 0
    assert len(project.subjects("lopen/calc")) == 4

    project.specify(text=specification(criteria=("add(1, 2) is 3", "it prints")))
    project.endpoint._script._turns[:] = [
        plan(
            {
                "name": "print",
                "description": "It prints.",
                "acceptance_criteria": ["AC-1", "AC-2"],
                "depends_on": [],
            }
        ),
        tools(*code("third"), *verified("calc-t3")),
    ]
    again = project.drive()
    assert again.code == 0, again.err
    assert len(project.subjects("lopen/calc")) == 6
    assert checkout(project) == before
    assert trees(project) == []


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
def test_commands_read_the_history_and_write_nothing_of_the_checkout(
    make_project: MakeProject, mode: Any
) -> None:
    if not probe(mode).works:
        pytest.skip(f"{mode} does not work here")
    told: list[Any] = []
    project: Project

    def looks(_: dict[str, Any]) -> Answer:
        command = "git status --porcelain && git log --format=%s && git rev-parse --abbrev-ref HEAD"
        return tools(("run_command", {"command": command}))

    def writes(body: dict[str, Any]) -> Answer:
        told.append(last_result(body, "run_command"))
        command = (
            f"cd {project.root}; for f in README.md new .git/HEAD .git/config specs/calc/SPECIFICATION.md; do"
            " echo x > $f; done; git commit -q --allow-empty -m x"
        )
        return tools(("run_command", {"command": command}), *code(), *verified("calc-t1"))

    project = isolated(make_project, [plan(), looks, writes], LOPEN_SANDBOX__MODE=mode)
    project.specify()
    before, paper = checkout(project), project.read("specs/calc/SPECIFICATION.md")

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert checkout(project) == before
    assert project.read("specs/calc/SPECIFICATION.md") == paper
    assert len(project.subjects("lopen/calc")) == 3
    assert told[0].data["exit_code"] == 0
    printed = told[0].text.split("\n")[1:]
    assert printed == ["docs(calc): approve specification", "Begin", "lopen/calc", ""]


def test_settings_that_leave_no_commit_are_refused(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    project.write(".lopen/config.toml", '[git]\nisolation = "worktree"\n')

    ran = project.lopen("run", "calc", LOPEN_GIT__AUTO_COMMIT="false")

    assert ran.code == 2
    assert "git.isolation from" in ran.err
    assert "git.auto_commit from LOPEN_GIT__AUTO_COMMIT" in ran.err
    assert ".lopen/config.toml" in ran.err
