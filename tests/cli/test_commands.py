"""`check`, `config` and `diagram`, as a person runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Lopen, doctor_report, json_lines
from tests.project import specification

SPEC = "specs/calc/SPECIFICATION.md"


def test_check_names_every_problem_with_its_line(lopen: Lopen, project: Path) -> None:
    lopen("init", "calc")
    lopen("init", "other")
    text = (project / SPEC).read_text()
    (project / SPEC).write_text(text.replace("- [ ] An", "- An").replace("- [ ] A ", "- A "))
    done = lopen("check")
    assert done.returncode == 1
    assert any(line.startswith(f"{SPEC}:") for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[-1] == "calc, other: 1 problem, 12 warnings"
    lines = json_lines(lopen("check", "--json").stdout)
    assert {line["event"] for line in lines} <= {"problem", "warning", "check"}
    assert lines[-1]["problems"] == 1
    assert lopen("check", "other").returncode == 0


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
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "calc: no problems, 6 warnings")
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


def test_check_finds_the_specification_in_a_folder_that_can_be_no_module(lopen: Lopen, project: Path) -> None:
    lopen("init", "calc")
    text = (project / SPEC).read_text()
    for name, rule in (("my module", "' '"), ("x.lock", "'.lock', which git refuses")):
        (project / "specs" / name).mkdir()
        (project / "specs" / name / "SPECIFICATION.md").write_text(text)
        done = lopen("check")
        assert done.returncode == 1
        line = next(line for line in done.stdout.splitlines() if line.startswith(f"specs/{name}/"))
        assert rule in line
        refused = lopen("check", name)
        assert refused.returncode == 2
        assert rule in refused.stderr
    assert done.stdout.splitlines()[-1] == "calc: 2 problems, 6 warnings"
    (project / SPEC).unlink()
    done = lopen("check")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "2 problems")
    assert "my module" in done.stdout


def test_check_warns_of_another_name_and_makes_nothing(lopen: Lopen, project: Path) -> None:
    lopen("init", "calc")
    text = (project / SPEC).read_text()
    (project / SPEC).write_text(text.replace("name: calc", "name: sums"))
    done = lopen("check")
    assert done.returncode == 0
    said = done.stdout.splitlines()
    assert any(line.startswith(f"{SPEC}:2: warning: ") and "name: sums" in line for line in said)
    assert not (project / ".lopen" / "state.db").exists()


def test_check_shows_hostile_text_inert(lopen: Lopen, project: Path) -> None:
    lopen("init", "calc")
    with (project / SPEC).open("a") as file:
        file.write("\n# \x1b]0;evil\x07 title\n")
    assert "\x1b" not in lopen("check").stdout


def test_check_helps_with_a_name_it_does_not_know(lopen: Lopen) -> None:
    assert "lopen init MODULE" in lopen("check").stderr
    lopen("init", "calc")
    done = lopen("check", "cal")
    assert (done.returncode, done.stdout) == (1, "")
    assert "did you mean calc?" in done.stderr


def test_status_helps_with_a_name_it_does_not_know(lopen: Lopen) -> None:
    lopen("init", "calc")
    near, other, calc = (lopen("status", name) for name in ("cal", "nosuch", "calc"))
    assert (near.returncode, other.returncode, calc.returncode) == (1, 1, 1)
    assert near.stderr == "lopen: no module named cal\n  did you mean calc?\n"
    assert other.stderr == "lopen: no module named nosuch\n  to create it: lopen init nosuch\n"
    assert calc.stderr == "lopen: calc has no session yet\n  to start one: lopen run calc\n"


def test_config_shows_every_value_with_its_source(lopen: Lopen, project: Path) -> None:
    (project / ".lopen").mkdir()
    (project / ".lopen" / "config.toml").write_text('[models]\nbuilding = "huge"\n')
    done = lopen("config", "show", "models", env={"LOPEN_MODELS__PLANNING": "mine"})
    assert '\n* models.planning = "mine"  (environment, LOPEN_MODELS__PLANNING)\n' in done.stdout
    assert f'\n* models.building = "huge"  (project, {project}/.lopen/config.toml:2)\n' in done.stdout
    assert '\n  models.research = "' in done.stdout  # a default is not marked
    assert done.stdout.startswith("[models]\n")
    assert "* set by you or the project: 2 of 5" in done.stdout
    sections = [line for line in lopen("config").stdout.splitlines() if line.startswith("[")]
    assert len(sections) == len(set(sections)) > 10  # each heading once
    assert "models.building is set by the repository" in done.stderr


def test_config_shows_no_password(lopen: Lopen) -> None:
    done = lopen("config", "show", "budget.store", env={"LOPEN_BUDGET__STORE": "redis://u:secret@host/0"})
    assert "redis://…@host/0" in done.stdout
    assert "secret" not in done.stdout


def test_config_as_json_is_a_line_a_key(lopen: Lopen) -> None:
    lines = json_lines(lopen("config", "show", "--json").stdout)
    assert {line["event"] for line in lines} == {"setting"}
    assert {"key", "value", "source", "location"} <= set(lines[0])
    assert len(lines) > 50


def test_a_wrong_configuration_is_exit_two_with_its_place(lopen: Lopen, project: Path) -> None:
    (project / ".lopen").mkdir()
    (project / ".lopen" / "config.toml").write_text("[sandbox]\nmode = 'none'\n")
    done = lopen("config", "show")
    assert done.returncode == 2
    assert f"{project}/.lopen/config.toml:2: sandbox.mode" in done.stderr
    assert "lopen config set --user sandbox.mode" in done.stderr


def test_config_set_writes_and_says_where(lopen: Lopen, project: Path) -> None:
    done = lopen("config", "set", "budget.session_tokens", "1000")
    assert done.returncode == 0
    assert done.stdout == f"budget.session_tokens is set in {project}/.lopen/config.toml\n"
    done = lopen("config", "set", "--user", "sandbox.mode", "none", env={"LOPEN_SANDBOX__MODE": "bwrap"})
    assert "LOPEN_SANDBOX__MODE overrides this value" in done.stderr


def test_config_set_takes_no_address_that_is_none(lopen: Lopen) -> None:
    for address in ("nonsense", "https:/x", "http://a b"):
        done = lopen("config", "set", "--user", "model.base_url", address)
        assert done.returncode == 2
        assert "begins with http:// or https://, such as https://" in done.stderr
    assert lopen("config", "set", "--user", "model.base_url", "http://127.0.0.1:1/v1").returncode == 0
    assert lopen("config", "set", "--user", "model.base_url", "").returncode == 0


def test_a_negative_number_is_told_as_one(lopen: Lopen) -> None:
    for arguments in (("budget", "extend", "module:x", "-5", "--reason", "r"), ("run", "x", "-0.5")):
        done = lopen(*arguments)
        assert done.returncode == 2
        assert "a number cannot be negative" in done.stderr
        assert "No such option" not in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("version", "lopen has no command version\n  did you mean lopen --version?"),
        ("stauts", "lopen has no command stauts\n  did you mean status?"),
        ("frobnicate", "lopen has no command frobnicate\n  see lopen --help"),
        ("config unsett", "lopen config has no command unsett\n  did you mean unset?"),
        ("run calc --dry-rn", "lopen run has no option --dry-rn\n  did you mean --dry-run?"),
        ("approve", "lopen approve needs MODULE\n  see lopen approve --help"),
        ("show", "lopen show needs TASK|VERDICT|CALL\n"),
        ("run --bogus", "lopen run has no option --bogus\n  see lopen run --help"),
        ("log -n", "-n needs a value\n  see lopen --help"),
        ("run calc --max-cost abc", "Invalid value for '--max-cost': it must be a number\n"),
        (
            "run calc --max-iterations 1.5",
            "Invalid value for '--max-iterations': it must be a whole number\n",
        ),
        ("log -n 0", "Invalid value for '-n' / '--last': it must be greater than or equal to 1\n"),
    ],
)
def test_a_mistyped_command_line_is_answered_in_plain_words(lopen: Lopen, line: str, said: str) -> None:
    done = lopen(*line.split())
    assert done.returncode == 2
    assert said in done.stderr


LOOKING = [
    *(["status"], ["status", "calc"], ["log"], ["modules"], ["check"], ["session", "list"], ["revert"]),
    *(["budget", "show"], ["circuit", "status"], ["alerts"], ["memory", "report"], ["memory", "clean"]),
    *(["doctor"], ["config", "show"], ["run", "calc"]),
]


def test_nothing_is_made_where_nothing_ran(lopen: Lopen, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for arguments in LOOKING:
        done = lopen(*arguments, cwd=folder)
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        assert list(folder.iterdir()) == [], arguments


def test_nothing_is_made_for_a_session_that_cannot_begin(lopen: Lopen, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "specs" / "calc").mkdir(parents=True)
    (folder / SPEC).write_text(specification())
    done = lopen("run", "calc", cwd=folder)
    assert (done.returncode, "is not a git repository" in done.stderr) == (1, True)
    assert [path.name for path in folder.iterdir()] == ["specs"]


def test_the_state_that_cannot_be_made_is_named_with_its_folder(lopen: Lopen) -> None:
    done = lopen("approve", "calc", "--yes", "-C", "/proc", "-v")
    assert done.returncode == 1
    first, hint = done.stderr.splitlines()
    assert first.startswith("lopen: cannot write in /proc/.lopen: ")
    assert "make /proc writable" in hint


def test_a_file_where_lopen_s_folder_belongs_is_named(lopen: Lopen, project: Path) -> None:
    (project / ".lopen").write_text("in the way")
    for arguments in (["init"], ["init", "calc"], ["approve", "calc"], ["status"]):
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
    for arguments in (["init", "calc"], ["check"], ["check", "calc"], ["run", "calc"], ["approve", "calc"]):
        done = lopen(*arguments)
        assert done.returncode == 1, arguments
        first, hint, *_ = done.stderr.splitlines()
        assert first == f"lopen: {project}/specs is not a folder"
        assert "rename or remove it" in hint
    assert doctor_report(lopen)["database"] == "ok"


def test_diagram_prints_the_table(lopen: Lopen) -> None:
    assert lopen("diagram").stdout.startswith("stateDiagram-v2\n")
    (line,) = json_lines(lopen("diagram", "--json").stdout)
    assert "component_complete" in line["mermaid"]
