"""`lopen merge`: the result is verified in a temporary clone, and nothing of the person's moves before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.project import Project, build, plan, specification

RESTORING = ("tests.crash.faults:die", "lopen.git.repository:Repository.restore", "after", 1)


def built(make_project: MakeProject, commands: Mapping[str, str] | None = None, **more: str) -> Project:
    """A project whose module calc is complete, HEAD on main."""
    project = make_project([plan(), build("calc-t1")], **more)
    project.run_module(text=specification(commands=commands))
    return project


def seen(project: Project) -> list[str]:
    """All that a refused merge leaves alone: HEAD, the branches, the index, and the files with their content."""
    heads = project.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    status = project.git("status", "--porcelain", "--untracked-files=all")
    files = project.git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    content = [path + project.read(path) for path in files if (project.root / path).is_file()]
    return [
        (project.root / ".git/HEAD").read_text(),
        heads,
        status,
        project.git("worktree", "list"),
        *content,
    ]


def commit_on_main(project: Project, path: str, text: str) -> None:
    """The person commits on main."""
    project.write(path, text)
    project.git("add", path)
    project.git("commit", "-q", "-m", "Meanwhile")


def commit_on_branch(project: Project, path: str, text: str) -> None:
    """The person commits on the module's branch, in a work tree beside the checkout."""
    beside = project.root.parent / "beside"
    project.git("worktree", "add", "-q", str(beside), "lopen/calc")
    (beside / path).parent.mkdir(exist_ok=True)
    (beside / path).write_text(text, "utf-8")
    project.git("-C", str(beside), "add", "-f", path)
    project.git("-C", str(beside), "commit", "-q", "-m", "Meanwhile")
    project.git("worktree", "remove", str(beside))


def test_a_branch_is_fast_forwarded_and_merged_only_once(make_project: MakeProject) -> None:
    setup = {"verify-setup": "mkdir -p node_modules/dep && echo 1 > node_modules/dep/index.js"}
    project = built(make_project, setup, LOPEN_SANDBOX__NETWORK="true")
    project.specify("tax")  # of another module, not committed: in nobody's way
    project.write("unrelated.txt", "mine\n")

    rooms = Path(project.environment()["XDG_CACHE_HOME"], "lopen/rooms")
    assert not list(rooms.iterdir()), "it went with the clone"

    ran = project.lopen("merge", "calc")

    assert ran.code == 0, ran.err
    assert "verify-tests passed" in ran.out
    assert not list(rooms.iterdir())
    assert project.git("symbolic-ref", "--short", "HEAD") == "main"
    assert project.git("rev-parse", "main") == project.git("rev-parse", "lopen/calc")
    assert project.git("status", "--porcelain", "--", ":!.lopen") == "?? specs/tax/\n?? unrelated.txt"
    again = project.lopen("merge", "calc")
    assert (again.code, again.out) == (0, "lopen/calc is merged already\n")
    finished = project.lopen("run", "calc")
    assert finished.code == 0, finished.err


def test_the_result_is_what_is_verified_and_committed(make_project: MakeProject) -> None:
    check = "test ! -e README.md || ! grep -q forbidden README.md"
    project = built(make_project, {"verify-lint": check})
    commit_on_main(project, "README.md", "forbidden\n")
    before = seen(project)

    refused = project.lopen("merge", "calc")

    assert (refused.code, seen(project)) == (1, before)
    assert "verify-lint did not pass on the merge of lopen/calc into main" in refused.err
    commit_on_main(project, "README.md", "welcome\n")
    main = project.git("rev-parse", "main")
    project.git("switch", "-q", "-c", "third")
    merged = project.lopen("merge", "calc", "--json")
    assert merged.code == 0, merged.err
    [event] = merged.named("merged")
    assert (event["into"], event["verified"]) == ("main", ["verify-tests", "verify-lint"])
    assert project.git("rev-parse", "main^1", "main^2").split() == [
        main,
        project.git("rev-parse", "lopen/calc"),
    ]
    assert project.git("symbolic-ref", "--short", "HEAD") == "third"
    assert project.git("status", "--porcelain", "--", ":!.lopen") == "?? specs/"
    assert project.git("show", "main:README.md") == "welcome"
    assert "return a + b" in project.git("show", "main:calc.py")


def test_a_refused_merge_changes_nothing(make_project: MakeProject) -> None:
    project = built(make_project)
    assert_refused(project, "there is no branch elsewhere", "--into", "elsewhere")
    project.write("README.md", "half a sentence\n")
    assert_refused(project, "uncommitted work: README.md\n  commit it, or put it aside (git stash), then")
    project.git("checkout", "-q", "README.md")
    commit_on_branch(project, ".lopen/config.toml", "# theirs\n")
    settings = project.write(".lopen/config.toml", "# mine\n")
    assert_refused(project, "the merge would write over untracked files: .lopen/config.toml")
    settings.unlink()
    blocking = project.write("calc.py/draft.txt", "a folder where the merge makes a file\n")
    assert_refused(project, "the merge would write over untracked files: calc.py/draft.txt")
    blocking.unlink()
    blocking.parent.rmdir()
    project.git("switch", "-q", "-c", "third")
    project.git("worktree", "add", "-q", "../beside", "main")
    assert_refused(project, "main is checked out in another work tree")
    project.git("worktree", "remove", "../beside")
    project.git("switch", "-q", "main")
    commit_on_main(project, "calc.py", "mine = 1\n")
    assert_refused(project, "lopen/calc and main conflict in calc.py")


def assert_refused(project: Project, says: str, *arguments: str) -> None:
    before = seen(project)
    ran = project.lopen("merge", "calc", *arguments)
    assert (ran.code, seen(project)) == (1, before), ran.err
    assert says in ran.err


def test_an_unfinished_module_is_not_merged(make_project: MakeProject) -> None:
    project = make_project([plan()])
    project.specify()
    told = project.lopen("merge", "calc")
    assert (told.code, "calc has no session" in told.err) == (1, True)
    project.approved_run()
    told = project.lopen("merge", "calc")
    assert (told.code, "calc is not complete" in told.err) == (1, True), told.err


def test_a_killed_merge_is_completed_by_the_next(make_project: MakeProject) -> None:
    project = built(make_project)
    commit_on_main(project, "README.md", "welcome\n")
    killed = project.lopen("merge", "calc", arrange=[RESTORING])
    assert (killed.code, (project.root / "calc.py").exists()) == (-9, True)

    ran = project.lopen("merge", "calc")

    assert ran.code == 0, ran.err
    assert project.git("symbolic-ref", "--short", "HEAD") == "main"
    assert project.git("status", "--porcelain", "--", ":!.lopen") == ""
    assert project.git("rev-parse", "main^2") == project.git("rev-parse", "lopen/calc")
