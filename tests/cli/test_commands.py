"""`check`, `config` and `diagram`, as a person runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import Lopen, doctor_report, json_lines

SPEC = "specs/calc/SPECIFICATION.md"


def test_check_names_every_problem_with_its_line(lopen: Lopen, project: Path) -> None:
    lopen("init", "calc")
    lopen("init", "other")
    text = (project / SPEC).read_text()
    (project / SPEC).write_text(text.replace("- [ ] An", "- An").replace("- [ ] A ", "- A "))
    done = lopen("check")
    assert done.returncode == 1
    assert any(line.startswith(f"{SPEC}:") for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[-2:] == ["calc: 2 problems, 6 warnings", "other: 1 problem, 6 warnings"]
    lines = json_lines(lopen("check", "--json").stdout)
    assert {line["event"] for line in lines} <= {"problem", "warning", "check"}
    assert lines[-1]["problems"] == 3


def test_check_tells_of_an_unreadable_specification_once_where_it_is_and_how_to_mend_it(
    lopen: Lopen, project: Path
) -> None:
    lopen("init", "calc")
    (project / SPEC).write_bytes(b"# a\nb\n\xff\n")
    done = lopen("check")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == (
        f"{SPEC}:3: not UTF-8 at byte 6 (invalid start byte); save it as UTF-8"
    )
    [problem, _] = json_lines(lopen("check", "--json").stdout)
    assert (problem["path"], problem["line"]) == (SPEC, 3)


def test_check_takes_a_path_and_names_a_file_of_the_wrong_case(lopen: Lopen, project: Path) -> None:
    lopen("init", "calc")
    for path in (SPEC, "specs/calc", "./specs/calc/", str(project / SPEC)):
        done = lopen("check", path)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "calc: 1 problem, 6 warnings")
    missing = lopen("check", "specs/other")
    assert missing.returncode == 1
    assert "SPECIFICATION.md:1: " in missing.stdout
    (project / "specs/m2").mkdir()
    (project / "specs/m2/Specification.md").write_text((project / SPEC).read_text())
    for arguments in (["check"], ["check", "m2"]):
        done = lopen(*arguments)
        assert done.returncode == 1
        assert (
            "specs/m2/Specification.md:1: the file must be named SPECIFICATION.md; rename it" in done.stdout
        )


def test_check_helps_with_a_name_it_does_not_know(lopen: Lopen) -> None:
    assert "lopen init MODULE" in lopen("check").stderr
    lopen("init", "calc")
    done = lopen("check", "cal")
    assert (done.returncode, done.stdout) == (1, "")
    assert "did you mean calc?" in done.stderr


def test_config_shows_every_value_with_its_source(lopen: Lopen, project: Path) -> None:
    (project / ".lopen").mkdir()
    (project / ".lopen" / "config.toml").write_text('[models]\nbuilding = "huge"\n')
    done = lopen("config", "show", "models", env={"LOPEN_MODELS__PLANNING": "mine"})
    assert '\n* models.planning = "mine"  (environment, LOPEN_MODELS__PLANNING)\n' in done.stdout
    assert f'\n* models.building = "huge"  (project, {project}/.lopen/config.toml:2)\n' in done.stdout
    assert '\n  models.research = "' in done.stdout  # a default is not marked
    files = done.stdout.partition("\n\n[models]\n")[0].splitlines()
    assert files[0] == f"project: {project}/.lopen/config.toml"
    assert files[1].startswith("user: ")
    assert files[1].endswith("/lopen/config.toml (missing)")
    assert "* set by you or the project: 2 of 5" in done.stdout
    sections = [line for line in lopen("config").stdout.splitlines() if line.startswith("[")]
    assert len(sections) == len(set(sections)) > 10  # each heading once
    assert "models.building is set by the repository" in done.stderr


def test_config_set_writes_and_says_where(lopen: Lopen, project: Path) -> None:
    done = lopen("config", "set", "budget.session_tokens", "1000")
    assert done.returncode == 0
    assert done.stdout == f"budget.session_tokens is set in {project}/.lopen/config.toml\n"
    done = lopen("config", "set", "--user", "sandbox.mode", "none", env={"LOPEN_SANDBOX__MODE": "bwrap"})
    assert "LOPEN_SANDBOX__MODE overrides this value" in done.stderr


MISTYPED = {
    "stauts": "No such command 'stauts'. Did you mean 'status'?\n  see lopen --help",
    "run calc --dry-rn": "No such option: --dry-rn (Possible options: --dry-run)\n  see lopen run --help",
    "buld": "No such command 'buld'. Did you mean 'run'?\n  see lopen --help",
    "answer": "Missing argument 'TEXT'\n",
    "run": "no modules yet\n  to start one: lopen init MODULE",
    "skip": "Missing argument 'TASK'\n  see lopen skip --help",
    "log -n": "Option '-n' requires an argument",
    "run calc --max-cost abc": "Invalid value for '--max-cost': it must be a number\n",
    "log -n 0": "Invalid value for '-n' / '--last': it must be greater than or equal to 1\n",
    "check a b": "unexpected extra argument",
    "-C /nowhere diagram": "/nowhere: no such folder",
}


def test_a_mistyped_command_line_is_answered_in_plain_words(lopen: Lopen) -> None:
    for line, said in MISTYPED.items():
        done = lopen(*line.split())
        assert (done.returncode, done.stdout) == (2, ""), line
        assert said in done.stderr
        assert "Traceback" not in done.stderr


LOOKING = [
    *(["status"], ["log"], ["check"], ["session", "list"], ["revert"], ["budget", "show"]),
    *(["circuit", "status"], ["alerts"], ["memory"], ["doctor"], ["run", "calc"]),
]


def test_nothing_is_made_where_nothing_ran(lopen: Lopen, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for arguments in LOOKING:
        done = lopen(*arguments, cwd=folder)
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        assert list(folder.iterdir()) == [], arguments


def test_a_file_where_lopen_s_folder_belongs_is_named(lopen: Lopen, project: Path) -> None:
    (project / ".lopen").write_text("in the way")
    for arguments in (["init", "calc"], ["approve", "calc"], ["status"]):
        done = lopen(*arguments, "-v")
        assert (done.returncode, done.stdout) == (1, ""), arguments
        first, hint = done.stderr.splitlines()
        assert first == f"lopen: {project}/.lopen is not a folder"
        assert "rename or remove it" in hint
    assert [path.name for path in project.iterdir() if path.name != ".git"] == [".lopen"]


def test_a_file_where_specifications_belong_is_named(lopen: Lopen, project: Path) -> None:
    commit = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "m"]
    subprocess.run(commit, cwd=project, check=True)
    (project / "specs").write_text("in the way")
    for arguments in (["init", "calc"], ["check"], ["run", "calc"], ["approve", "calc"]):
        done = lopen(*arguments)
        assert done.returncode == 1, arguments
        first, hint, *_ = done.stderr.splitlines()
        assert first == f"lopen: {project}/specs is not a folder"
        assert "rename or remove it" in hint
    assert doctor_report(lopen)["database"] == "ok"
