from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from lopen.claude_hooks.protect import forbidden, in_shell
from lopen.cli.app import COMMANDS, load_command
from lopen.core.person import PERSONS_COMMANDS, config_folder, data_folder
from tests.fuzz.inputs import bounded, pieces

ROOT = "/home/ann/project"

PERSONS = [
    "lopen approve auth",
    "lopen budget extend session:s --tokens 5 --reason x",
    "lopen circuit ack session:s",
    "lopen hooks uninstall",
    "lopen alerts ack all",
    "lopen pr calc",
    "lopen session delete calc-1",
    "lopen -C /tmp/x approve auth",
    "/home/ann/.venv/bin/lopen approve auth",
    "python3 /srv/venv/lib/lopen/__main__.py approve auth",
    "env -i PATH=$PATH lopen approve auth",
    "cd /tmp && lopen approve auth",
    "ls\nlopen approve auth",
    "yes | lopen approve auth",
    "if true; then lopen approve auth; fi",
    'l"ope"n app\\rove auth',
    "lopen \\\n approve auth",
    "bash -c \"bash -c 'lopen approve auth'\"",
    "eval 'lopen approve auth'",
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
    "echo x | tee .claude/settings.json",
    "sed -i s/a/b/ .claude/settings.json",
    "cd .lopen && rm state.db",
    "rm -rf src/../.lopen/logs",
    "dd if=/dev/zero of=.lopen/state.db",
    "git checkout -- .claude/settings.json",
    "touch ~/.claude/settings.json",
    "find .lopen -delete",
    "if true; then echo a; fi 2> .lopen/config.toml",
    "rm " + "a " * 600 + ".lopen",
]
HARMLESS = [
    "lopen status",
    "lopen config show --json",
    "git commit -m 'tell people to run lopen approve'",
    "grep -rn 'lopen approve' docs",
    "echo 'then run lopen approve auth' >> README.md",
    "cat > a.py <<EOF\nopen('.lopen/x', 'w')\nEOF\necho done",
    "pytest tests/test_approve.py",
    "cd lopen && ls",
    "",
    "'",
    "cat .lopen/config.toml",
    "cat .lopen/logs/x.jsonl 2>/dev/null | head",
    "git diff .claude/settings.json",
    "git add -A .claude",
    "mv notes.md .claude/agents/",
    "echo x > .claude/commands/settings.md",
    "make test 2>&1",
]


def test_a_persons_command_is_refused_and_other_commands_are_not() -> None:
    assert [c for c in PERSONS if "person's command" not in in_shell(c, ROOT)] == []
    assert [c for c in HARMLESS if in_shell(c, ROOT)] == []
    for command in ("echo '{}' | lopen hook user-prompt-submit", "lopen hook session-start < a"):
        assert "for Claude Code itself" in in_shell(command, ROOT)


def test_every_command_of_the_list_is_one_of_lopens() -> None:
    for name in PERSONS_COMMANDS:
        verb, _, then = name.partition(" ")
        loaded = load_command(COMMANDS[verb])
        assert not then or then in loaded.commands


def test_a_command_that_changes_a_protected_path_is_refused() -> None:
    own = (f"rm -rf {config_folder()}", f"ln -sf x {data_folder()}/seal.key")
    assert [c for c in (*PROTECTED, *own) if "protected" not in in_shell(c, ROOT)] == []
    assert forbidden("Write", {"file_path": f"{config_folder()}/config.toml"}, ROOT)


def test_lopens_folders_are_protected_in_each_spelling_of_their_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    allowed = []
    for home in ("/home/ann", "/home/ann b"):
        monkeypatch.setenv("HOME", home)
        commands = [
            "cp evil.toml $HOME/.config/lopen/config.toml",
            'rm -rf "$HOME"/.config/lopen',
            "sed -i s/a/b/ ${HOME}/.config/lopen/config.toml",
            "tee $HOME/.config/lopen/config.toml",
            "rm -rf ~/.config/lopen",
            f"rm -rf '{home}/.config/lopen'",
            "echo x > $HOME/.config/lopen/config.toml",
        ]
        allowed += [c for c in commands if "protected" not in in_shell(c, ROOT)]
    monkeypatch.setenv("HOME", "/home/ann")
    nested = ("bash -c 'rm -rf $HOME/.config/lopen'", "dd if=a of=$HOME/.config/lopen/config.toml")
    assert [*allowed, *(c for c in nested if "protected" not in in_shell(c, ROOT))] == []
    assert in_shell("rm -rf $HOME/.config/other", ROOT) == ""


REFUSED_CALLS: list[tuple[str, object]] = [
    ("Write", {"file_path": f"{ROOT}/.claude/settings.json"}),
    ("Edit", {"file_path": ".claude/settings.local.json"}),
    ("NotebookEdit", {"notebook_path": ".lopen/a.ipynb"}),
    ("mcp__files__write", {"path": ".LOPEN/config.toml"}),
    ("Write", {"file_path": "~/.claude/settings.json"}),
    ("mcp__fs__move_file", {"source": "a.json", "destination": ".claude/settings.json"}),
    ("mcp__fs__edit", {"edits": [{"path": ".claude/settings.json", "new": "{}"}]}),
    ("mcp__fs__write", {"targets": [["a", ["file:///home/ann/project/.lopen/a"]]]}),
    ("mcp__fs__delete_directory", {"at": ".claude"}),
    ("mcp__sh__run", {"cmd": "rm -rf .lopen"}),
    ("mcp__sh__run", {"command": ["sh", "-c", "lopen approve auth"]}),
    ("mcp__sh__start", {"command": "lopen", "args": ["approve", "auth"]}),
    ("mcp__fs__find_replace", {"file": ".lopen/config.toml"}),
    ("mcp__fs__write_file", {"path": ".lopen/state.db", "content": "a"}),
]
ALLOWED_CALLS: list[tuple[str, object]] = [
    ("mcp__ide__executeCode", {"code": "import lopen\nprint(lopen.__version__)"}),
    ("mcp__sh__start", {"command": "pytest", "args": ["-q", 5]}),
    ("mcp__fs__read_file", {"path": ".claude/settings.json"}),
    ("mcp__web__navigate", {"url": "http://localhost/.lopen/a"}),
    ("mcp__fs__write", {"path": "a.md", "content": "see .lopen/config.toml\n"}),
    ("mcp__fs__write_file", {"path": "a", "content": "~/.config/lopen"}),
    ("mcp__slack__post", {"text": ".lopen/ is full"}),
    ("mcp__github__create_issue", {"title": ".claude/settings.json is broken"}),
    ("Edit", {"file_path": "README.md", "old_string": ".lopen/", "new_string": ".lopen/x"}),
    ("Write", {"file_path": "docs/.claude.md"}),
    ("Write", {"file_path": ".claude/agents/settings.md"}),
    ("Write", {"file_path": "a\0b"}),
    ("Write", None),
]


def test_tools_may_not_write_protected_paths() -> None:
    assert [call for call in REFUSED_CALLS if not forbidden(*call, ROOT)] == []
    assert [call for call in ALLOWED_CALLS if forbidden(*call, ROOT)] == []


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
