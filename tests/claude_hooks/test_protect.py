from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from lopen.claude_hooks.protect import forbidden, in_shell
from lopen.core.person import config_folder, data_folder
from tests.fuzz.inputs import bounded, pieces

ROOT = "/home/ann/project"

PERSONS = [
    "lopen approve auth",
    "lopen budget extend session:s --tokens 5 --reason x",
    "lopen circuit ack session:s",
    "lopen hooks uninstall",
    "lopen config set budget.enabled false",
    "lopen alerts ack all",
    "lopen -C /tmp/x approve auth",
    "lopen -v budget extend a --tokens 1 --reason b",
    "python3.12 -I -m lopen approve auth",
    "/home/ann/.venv/bin/lopen approve auth",
    "python3 /srv/venv/lib/lopen/__main__.py approve auth",
    "env -i PATH=$PATH lopen approve auth",
    "cd /tmp && lopen approve auth",
    "ls\nlopen approve auth",
    "yes | lopen approve auth",
    "(lopen approve auth)",
    "{ lopen approve auth; }",
    "if true; then lopen approve auth; fi",
    "for m in a b; do lopen approve $m; done",
    'l"ope"n app\\rove auth',
    "lopen \\\n approve auth",
    "bash -c 'lopen approve auth'",
    "bash -c \"bash -c 'lopen approve auth'\"",
    "eval 'lopen approve auth'",
    "echo $(lopen approve auth)",
    "echo `lopen approve auth`",
    'echo "now: $(lopen approve auth)"',
    "cat > a.md <<EOF\nit's text\nEOF\nlopen approve auth",
    "timeout 5 uv run lopen approve auth",
    "python -c \"import subprocess; subprocess.run(['lopen', 'approve', 'auth'])\"",
    "GIT_EDITOR='lopen approve auth;' git rebase -i",
    "pip uninstall -y lopen",
    "echo x; lopen approve auth # it's an unclosed quote",
    "echo " + "x" * 300_000 + "; lopen approve auth",
]
PROTECTED = [
    "rm -rf .lopen",
    "echo x > .lopen/config.toml",
    "echo x >> ./.lopen/config.toml",
    "echo x | tee .claude/settings.json",
    "echo x &> .claude/settings.local.json",
    "sed -i s/a/b/ .claude/settings.json",
    "mv .claude/settings.json /tmp",
    "cd .lopen && rm state.db",
    "rm -rf src/../.lopen/logs",
    "dd if=/dev/zero of=.lopen/state.db",
    "git checkout -- .claude/settings.json",
    "touch ~/.claude/settings.json",
    "rm -rf ./.claude/",
    "find .lopen -delete",
    "if true; then echo a; fi 2> .lopen/config.toml",
    "rm " + "a " * 600 + ".lopen",
]
HARMLESS = [
    "lopen status",
    "lopen budget show",
    "lopen config show --json",
    "git commit -m 'tell people to run lopen approve'",
    "grep -rn 'lopen approve' docs",
    "echo 'then run lopen approve auth' >> README.md",
    "cat > a.py <<EOF\nopen('.lopen/x', 'w')\nEOF\necho done",
    "pytest tests/test_approve.py",
    "pip uninstall -y requests",
    "approve auth",
    "cd lopen && ls",
    "",
    "'",
    "cat .lopen/config.toml",
    "cat .lopen/logs/x.jsonl 2>/dev/null | head",
    "git diff .claude/settings.json",
    "git add -A .claude",
    "rm -rf build dist",
    "mv notes.md .claude/agents/",
    "echo x > .claude/commands/settings.md",
    "make test 2>&1",
]


@pytest.mark.parametrize("command", PERSONS)
def test_a_persons_command_is_refused(command: str) -> None:
    assert "person's command" in in_shell(command, ROOT)


@pytest.mark.parametrize("command", PROTECTED)
def test_a_command_that_changes_a_protected_path_is_refused(command: str) -> None:
    assert "protected" in in_shell(command, ROOT)


@pytest.mark.parametrize("command", HARMLESS)
def test_other_commands_and_mere_words_are_not(command: str) -> None:
    assert in_shell(command, ROOT) == ""


@pytest.mark.parametrize(
    "command", ["echo '{}' | lopen hook user-prompt-submit", "lopen hook session-start < a"]
)
def test_no_command_tells_of_events_that_are_the_clients(command: str) -> None:
    assert "for Claude Code itself" in in_shell(command, ROOT)


@pytest.mark.parametrize(
    "command", ["echo x > {config}/config.toml", "rm -rf {config}", "ln -sf x {data}/seal.key"]
)
def test_the_persons_own_folders_of_lopen_are_protected(command: str) -> None:
    own = {"config": config_folder(), "data": data_folder()}
    assert "protected" in in_shell(command.format(**own), ROOT)
    assert forbidden("Write", {"file_path": f"{own['config']}/config.toml"}, ROOT)


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
        ("mcp__fs__edit", {"edits": [{"path": ".claude/settings.json", "new": "{}"}]}, False),
        ("mcp__fs__write", {"targets": [["a", ["file:///home/ann/project/.lopen/a"]]]}, False),
        ("mcp__fs__delete_directory", {"at": ".claude"}, False),
        ("mcp__sh__run", {"cmd": "rm -rf .lopen"}, False),
        ("mcp__sh__run", {"command": ["sh", "-c", "lopen approve auth"]}, False),
        ("mcp__sh__start", {"command": "lopen", "args": ["approve", "auth"]}, False),
        ("mcp__sh__start", {"program": {"argv": ["lopen", "circuit", "ack"]}}, False),
        ("mcp__ide__executeCode", {"code": "import lopen\nprint(lopen.__version__)"}, True),
        ("mcp__sh__start", {"command": "pytest", "args": ["-q", 5]}, True),
        ("mcp__fs__find_replace", {"file": ".lopen/config.toml"}, False),
        ("mcp__fs__read_file", {"path": ".claude/settings.json"}, True),
        ("mcp__web__navigate", {"url": "http://localhost/.lopen/a"}, True),
        ("mcp__git__status", {"repo_path": "."}, True),
        ("mcp__fs__write", {"path": "a.md", "content": ".lopen/config.toml"}, True),
        ("mcp__gh__create_issue", {"title": ".lopen/", "body": "see .lopen/config.toml"}, True),
        ("Edit", {"file_path": "README.md", "old_string": ".lopen/", "new_string": ".lopen/x"}, True),
        ("Task", {"prompt": ".lopen/config.toml", "description": "look"}, True),
        ("Write", {"file_path": "docs/.claude.md"}, True),
        ("Write", {"file_path": ".claude/agents/settings.md"}, True),
        ("Write", {"file_path": "a\0b"}, True),
        ("Write", None, True),
        ("Write", {"file_path": 5}, True),
    ],
)
def test_tools_may_not_write_protected_paths(tool: str, arguments: object, allowed: bool) -> None:
    assert (forbidden(tool, arguments, ROOT) == "") is allowed


def test_a_symbolic_link_to_a_protected_path_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / ".lopen").mkdir()
    (tmp_path / "innocent").symlink_to(tmp_path / ".lopen")
    assert forbidden("Write", {"file_path": "innocent/config.toml"}, str(tmp_path))
    assert in_shell("echo x > innocent/config.toml", str(tmp_path))


@given(
    pieces(
        *(part for text in [*PERSONS[:-1], *PROTECTED[:-1]] for part in text.split(" ")),
        " ",
        ";",
        "|",
        "$(",
        ")",
    )
)
@bounded(100)
def test_any_text_is_allowed_or_refused(text: str) -> None:
    assert isinstance(in_shell(text, ROOT), str)
