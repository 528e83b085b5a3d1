from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lopen
from lopen.claude_hooks import protected_places
from lopen.claude_hooks.protect import forbidden, in_shell, plain_words
from lopen.claude_hooks.resolved_commands import Resolution
from lopen.core.person import config_folder, data_folder
from tests.fuzz.inputs import bounded, pieces
from tests.tables import table

ROOT = "/home/ann/project"

CASES = table(__file__, "shell_commands.toml")


@pytest.mark.parametrize("command", CASES["person_commands"])
def test_a_persons_command_is_blocked_however_it_is_written(command: str) -> None:
    assert "person's command" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize("command", CASES["unreadable"])
def test_a_command_that_cannot_be_told_and_names_lopen_is_blocked(command: str) -> None:
    assert "cannot tell what it runs" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize("command", CASES["harmless"] + CASES["protected_reads"])
def test_other_commands_and_mere_words_are_not(command: str) -> None:
    assert in_shell(command, ROOT, ROOT) == ""


OWN = [
    "echo x > {config}/config.toml",
    "cd {config} && sed -i s/a/b/ config.toml",
    "D={config}; cp x $D/config.toml",
    "rm -rf {config}",
    "ln -sf x {data}/seal.key",
    "find {above} -name seal.key -delete",
    "mv {above} elsewhere",
]


@pytest.mark.parametrize("command", OWN)
def test_the_persons_own_folders_of_lopen_are_protected(command: str) -> None:
    own = {"config": config_folder(), "data": data_folder(), "above": os.path.dirname(data_folder())}
    assert "protected" in in_shell(command.format(**own), ROOT, ROOT)
    assert forbidden("Write", {"file_path": f"{own['config']}/config.toml"}, ROOT, ROOT)


FORGED = [
    "echo '{}' | lopen hook user-prompt-submit",
    "lopen hook session-start < event.json",
    "/venv/bin/python -I -S /venv/lib/lopen/claude_hooks/hook.py session-end <<< '{}'",
    "bash -c 'python3 -m lopen hook subagent-stop'",
]


@pytest.mark.parametrize("command", FORGED)
def test_no_command_tells_of_events_that_are_the_clients(command: str) -> None:
    assert "for Claude Code itself" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize(
    "command",
    [
        "pip uninstall -y lopen",
        "python3 -m pip uninstall lopen",
        "uv tool uninstall lopen",
        "pipx uninstall lopen",
    ],
)
def test_lopen_is_not_taken_away(command: str) -> None:
    assert "person's command" in in_shell(command, ROOT, ROOT)
    assert in_shell(command.replace("lopen", "requests"), ROOT, ROOT) == ""


def test_an_installed_lopen_is_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_places, "_INSTALLED", True)
    code = os.path.dirname(lopen.__file__)
    assert "protected" in in_shell(f"sed -i s/a/b/ {code}/claude_hooks/entry.py", ROOT, ROOT)
    assert "protected" in in_shell(f"rm -rf {os.path.dirname(code)}", ROOT, ROOT)
    assert forbidden("Edit", {"file_path": f"{code}/claude_hooks/guard.py"}, ROOT, ROOT)
    assert in_shell(f"cat {code}/claude_hooks/entry.py", ROOT, ROOT) == ""


@pytest.mark.parametrize("command", CASES["protected_edits"])
def test_a_command_that_changes_a_protected_place_is_blocked(command: str) -> None:
    assert "protected" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize(
    ("tool", "arguments", "allowed"),
    [
        ("Write", {"file_path": f"{ROOT}/.claude/settings.json"}, False),
        ("Edit", {"file_path": ".claude/settings.local.json"}, False),
        ("MultiEdit", {"file_path": "src/../.lopen/config.toml"}, False),
        ("NotebookEdit", {"notebook_path": ".lopen/a.ipynb"}, False),
        ("mcp__files__write", {"path": ".LOPEN/config.toml"}, False),
        ("Write", {"file_path": "~/.claude/settings.json"}, False),
        ("mcp__fs__move_file", {"source": "a.json", "destination": ".claude/settings.json"}, False),
        ("mcp__fs__write", {"file": ".lopen/config.toml", "content": "x"}, False),
        ("mcp__fs__edit", {"edits": [{"path": ".claude/settings.json", "new": "{}"}]}, False),
        ("mcp__fs__write", {"targets": [["a", ["file:///home/ann/project/.lopen/a"]]]}, False),
        ("mcp__fs__delete_directory", {"at": ".claude"}, False),
        ("mcp__sh__run", {"cmd": "rm -rf .lopen"}, False),
        ("mcp__sh__run", {"command": ["sh", "-c", "lopen approve auth"]}, False),
        ("mcp__sh__start", {"command": "lopen", "args": ["approve", "auth"]}, False),
        ("mcp__sh__start", {"program": {"argv": ["lopen", "circuit", "ack"]}}, False),
        ("mcp__ide__executeCode", {"code": "import os; os.system('lopen approve auth')"}, False),
        ("mcp__ide__executeCode", {"code": "import lopen\nprint(lopen.__version__)"}, True),
        ("mcp__sh__start", {"command": "pytest", "args": ["-q", 5]}, True),
        ("mcp__fs__find_replace", {"file": ".lopen/config.toml"}, False),
        ("mcp__fs__read_file", {"path": ".claude/settings.json"}, True),
        ("mcp__fs__list_directory", {"path": ".lopen"}, True),
        ("mcp__web__navigate", {"url": "http://localhost/.lopen/a"}, True),
        ("mcp__git__status", {"repo_path": "."}, True),
        ("mcp__fs__write", {"path": "a.md", "content": ".lopen/config.toml"}, True),
        ("mcp__gh__create_issue", {"title": ".lopen/", "body": "see .lopen/config.toml"}, True),
        ("mcp__fs__list_and_move", {"path": "src", "to": ["dst", 5, None, {"deep": "x"}]}, True),
        ("Edit", {"file_path": "README.md", "old_string": ".lopen/", "new_string": ".lopen/x"}, True),
        ("Task", {"prompt": ".lopen/config.toml", "description": "look"}, True),
        ("Write", {"file_path": "docs/.claude.md"}, True),
        ("Write", {"file_path": "src/settings.py"}, True),
        ("Write", {"file_path": ".claude/agents/settings.md"}, True),
        ("Write", {"file_path": "a\0b"}, True),
        ("Write", None, True),
        ("Write", {"file_path": 5}, True),
    ],
)
def test_file_tools_may_not_write_protected_places(tool: str, arguments: object, allowed: bool) -> None:
    assert (forbidden(tool, arguments, ROOT, ROOT) == "") is allowed


def test_a_symbolic_link_to_a_protected_place_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / ".lopen").mkdir()
    (tmp_path / "innocent").symlink_to(tmp_path / ".lopen")
    where = str(tmp_path)
    assert forbidden("Write", {"file_path": "innocent/config.toml"}, where, where)
    assert in_shell("echo x > innocent/config.toml", where, where)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Hooks were installed after the first commit; the settings are tracked, lopen's state is ignored."""
    git(tmp_path, "init", "-q")
    for name in ("state.db", ".gitignore"):
        (tmp_path / ".lopen").mkdir(exist_ok=True)
        (tmp_path / ".lopen" / name).write_text("*\n")
    (tmp_path / ".claude").mkdir()
    settings = tmp_path / ".claude" / "settings.json"
    for text in ("{}", '{"hooks": {}}'):
        settings.write_text(text)
        git(tmp_path, "add", "-f", ".claude")
        git(tmp_path, "commit", "-q", "-m", "settings", "--allow-empty")
    return tmp_path


def test_git_is_asked_whether_the_settings_would_change(repository: Path) -> None:
    where = str(repository)
    assert in_shell("git restore --source=HEAD~1 .", where, where)
    assert in_shell("git checkout HEAD~1 -- .", where, where)
    assert in_shell("cd src; git checkout HEAD~1 ..", where, where)
    for harmless in (
        "git restore --source=HEAD .",
        "git checkout .",
        "git restore .",
        "git checkout HEAD -- .",
    ):
        assert in_shell(harmless, where, where) == ""
    (repository / ".claude" / "settings.json").write_text('{"hooks": {"more": 1}}')
    for command in ("git checkout .", "git restore :/", "git checkout -- ."):
        assert in_shell(command, where, where)


def test_git_is_asked_what_a_clean_would_remove(repository: Path) -> None:
    where = str(repository)
    for command in ("git clean -fdx", "git clean -fdxq", "git clean -dX --force", "git clean -fdx -- .lopen"):
        assert in_shell(command, where, where), command
    for command in ("git clean -fd", "git clean -fdx -e .lopen", "git clean -fdx build", "git stash -u"):
        assert in_shell(command, where, where) == "", command
    git(repository, "rm", "-q", "--cached", ".claude/settings.json")
    for command in ("git clean -fd", "git clean -fd .", "git stash -u"):
        assert in_shell(command, where, where), command


def test_what_lies_in_the_state_folder_tells_what_a_find_would_delete(repository: Path) -> None:
    where = str(repository)
    (repository / ".lopen" / "sessions").mkdir()
    (repository / ".lopen" / "sessions" / "x.part").touch()
    assert in_shell("find . -name '*.part' -delete", where, where)
    assert in_shell("find . -maxdepth 2 -name '*.part' -delete", where, where) == ""
    assert in_shell("find . -name '*.half' -delete", where, where) == ""


def test_relative_paths_are_read_from_where_the_session_stands() -> None:
    assert in_shell("echo x > settings.json", f"{ROOT}/.claude", ROOT)
    assert in_shell("rm state.db", f"{ROOT}/.lopen", ROOT)


def test_a_very_long_command_is_searched_not_read() -> None:
    assert in_shell("echo " + "x" * 300_000, ROOT, ROOT) == ""
    assert in_shell("echo " + "x" * 300_000 + "; lopen approve auth", ROOT, ROOT)


HOSTILE = [
    *(
        "$(" * 5_000,
        "'" * 9_999,
        "`" * 999,
        "((((" * 999,
        "<<" * 999,
        'bash -c "' * 500,
        "sh -c 'sh -c a';" * 500,
    ),
    "".join(f"x{i}=$x{i + 1}$x{i + 1};" for i in range(3_000)) + "$x0",
    "".join(f"x=$x$y{i};y{i}=$x;" for i in range(1_000)) + "$x",
    "x=1;x=2;" + "$x $x $x $x;" * 1_000,
    "alias a=b b=a;" + "a;" * 1_000,
    "{ " + "a;" * 2_000 + "} | { " + "xargs sh;" * 2_000 + "}",
    "{ " * 2_000 + "sh;" + "} <<<a;" * 2_000,
    "python '" + "lopen " * 30_000 + "'",
    "x '" + "${" * 90_000 + "'",
    "echo " + "{a,b}" * 10_000,
    "echo {" + "," * 100_000,
    "false && : " + "{a,b}" * 5_000 + ";",
    ": " + "{a," * 5_000 + "b" + "}" * 5_000,
    ": " + "{a,b}{a,b}{a,b}{a,b}{a,b} " * 5_000,
    "eval " * 5_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_hides_no_persons_command_behind_it(text: str) -> None:
    assert in_shell(f"{text}\nlopen approve auth", ROOT, ROOT)


BEHIND_MUCH = [
    "rm " + "a " * 600 + ".lopen",
    "{a,b}{c,l}{o,d}{p,e}{e,f}{n,g} approve auth",
    "{l" + ",l" * 40 + "}open approve auth",
]


@pytest.mark.parametrize("text", BEHIND_MUCH)
def test_a_program_or_place_behind_much_is_found(text: str) -> None:
    assert in_shell(text, ROOT, ROOT)


def test_a_text_of_too_many_commands_is_refused() -> None:
    assert in_shell("rm a;" * 3_000, ROOT, ROOT) == ""
    assert "give it in parts" in in_shell("rm a;" * 5_000 + "rm -rf .lopen", ROOT, ROOT)


@given(
    pieces(
        *(
            part
            for text in [*CASES["person_commands"], *CASES["protected_edits"]]
            for part in text.split(" ")
        ),
        " ",
        ";",
        "|",
        "$(",
        ")",
        "{",
        "}",
    )
)
@bounded(100)
def test_any_text_is_allowed_or_refused(text: str) -> None:
    assert isinstance(in_shell(text, ROOT, ROOT), str)


WORDS = "ls git time /bin/bash sh eval function for in a/b.txt -C .. xargs rm . cd lopen a@b 100% - x:y env export alias"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=5).map(" ".join))
@bounded(200)
def test_a_plain_command_is_read_as_the_shell_reader_reads_it(text: str) -> None:
    if words := plain_words(text):
        [command] = (read := Resolution(text)).commands
        assert (command.words, command.subshell, command.writes, command.fed) == (words, (), (), "")
        assert (command.sources, read.cut, read.uncertain) == ([], False, False)
