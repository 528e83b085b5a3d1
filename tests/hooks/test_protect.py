from __future__ import annotations

from pathlib import Path

import pytest

from lopen.hooks.protect import forbidden, in_shell

ROOT = "/home/ann/project"

PERSONS = [
    "lopen approve auth",
    "lopen confirm s1",
    "lopen answer s1 yes",
    "lopen skip t1 --reason x",
    "lopen revert",
    "lopen budget extend session:s --tokens 5 --reason x",
    "lopen budget reset session:s",
    "lopen circuit ack session:s",
    "lopen circuit reset session:s",
    "lopen hooks uninstall",
    "lopen config set budget.enabled false",
    "lopen -C /tmp/x approve auth",
    "lopen --project /tmp/x -v budget extend a --tokens 1 --reason b",
    "python -m lopen approve auth",
    "python3.12 -I -m lopen approve auth",
    "/home/ann/.venv/bin/lopen approve auth",
    ".venv/bin/python -m lopen approve auth",
    "LOPEN_UNDER_SESSION= lopen approve auth",
    "env -u LOPEN_UNDER_SESSION lopen approve auth",
    "env -i PATH=$PATH lopen approve auth",
    "cd /tmp && lopen approve auth",
    "true; lopen approve auth",
    "false || lopen approve auth",
    "ls | xargs -n1 lopen approve",
    "yes | lopen approve auth",
    "(lopen approve auth)",
    "{ lopen approve auth; }",
    "if true; then lopen approve auth; fi",
    "for m in a b; do lopen approve $m; done",
    "lopen 'approve' auth",
    'l"ope"n app\\rove auth',
    "lopen \\\n approve auth",
    "bash -c 'lopen approve auth'",
    'sh -lc "cd x && lopen approve auth"',
    "bash -c \"bash -c 'lopen approve auth'\"",
    "eval lopen approve auth",
    "eval 'lopen approve auth'",
    "echo $(lopen approve auth)",
    "echo `lopen approve auth`",
    'echo "now: $(lopen approve auth)"',
    "cat <(lopen approve auth)",
    "bash <<EOF\nlopen approve auth\nEOF",
    "bash <<< 'lopen approve auth'",
    "echo lopen approve auth | bash",
    "nohup lopen approve auth &",
    "timeout 5 lopen approve auth",
    "sudo -u ann lopen approve auth",
    "uv run lopen approve auth",
    "watch 'lopen approve auth'",
    "L=lopen; $L approve auth",
    "V=approve; lopen $V auth",
    "python -c \"import subprocess; subprocess.run(['lopen', 'approve', 'auth'])\"",
    "echo a # b\nlopen approve auth",
    "$'lopen' approve auth",
]
FREE = [
    "lopen status",
    "lopen budget show",
    "lopen circuit status",
    "lopen check auth",
    "lopen config show --json",
    "lopen log -f",
    "lopen alerts",
    "git commit -m 'tell people to run lopen approve'",
    'git commit -m "lopen approve auth"',
    "grep -rn 'lopen approve' docs",
    "echo 'lopen approve auth'",
    "cat docs/lopen-approve.md",
    "cat <<'EOF' > docs/a.md\nRun `lopen approve`.\nEOF",
    "# lopen approve auth",
    "pytest tests/test_approve.py",
    "approve auth",
    "cd lopen && ls",
    "",
    "'",
    "echo $((1 + 2)) ${HOME} $'a\\n'",
]
EDITS = [
    "rm -rf .lopen",
    "rm .lopen/state.db",
    "echo x > .lopen/config.toml",
    "echo x >> ./.lopen/config.toml",
    "echo x | tee .claude/settings.json",
    "echo x &> .claude/settings.local.json",
    "sed -i s/a/b/ .claude/settings.json",
    "cp /tmp/x .claude/settings.json",
    "mv .claude/settings.json /tmp",
    "mv .lopen /tmp",
    "cd .lopen && rm state.db",
    "cd .claude; echo x > settings.json",
    "rm -rf src/../.lopen/logs",
    "rm -rf .lop*",
    "rm -rf .l?pen/state.db",
    "rm -rf /home/ann/project",
    "rm -rf ..",
    "rm -rf .",
    "find .lopen -delete",
    "find . -name x -exec rm .lopen/x ';'",
    "dd if=/dev/zero of=.lopen/state.db",
    "python -c \"open('.lopen/state.db', 'w')\"",
    "sqlite3 .lopen/state.db 'delete from budgets'",
    "git checkout -- .claude/settings.json",
    "touch ~/.claude/settings.json",
    "bash -c 'rm .lopen/state.db'",
    "echo x > '.lopen/a'",
    "ln -sf /tmp/x .claude/settings.json",
]
READS = [
    "cat .lopen/config.toml",
    "ls -la .lopen .claude",
    "grep -r budget .lopen/",
    "git diff .claude/settings.json",
    "cp .lopen/config.toml /tmp/x",
    "find .lopen -name '*.jsonl'",
    "rm -rf build dist",
    "rm -rf ./*",
    "mv a.py src/",
    "mv a.py .",
    "echo x > src/lopen/a.py",
    "cat .lopen/logs/x.jsonl 2>/dev/null | head",
    "echo x > .claude/commands/settings.md",
    "make test 2>&1",
]


@pytest.mark.parametrize("command", PERSONS)
def test_a_persons_command_is_blocked_however_it_is_written(command: str) -> None:
    assert "person's command" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize("command", FREE)
def test_other_commands_and_mere_words_are_not(command: str) -> None:
    assert in_shell(command, ROOT, ROOT) == ""


@pytest.mark.parametrize("command", EDITS)
def test_a_command_that_changes_a_protected_place_is_blocked(command: str) -> None:
    assert "protected" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize("command", READS)
def test_a_command_that_only_reads_or_changes_something_else_is_not(command: str) -> None:
    assert in_shell(command, ROOT, ROOT) == ""


@pytest.mark.parametrize(
    ("tool", "arguments", "allowed"),
    [
        ("Write", {"file_path": f"{ROOT}/.claude/settings.json"}, False),
        ("Edit", {"file_path": ".claude/settings.local.json"}, False),
        ("MultiEdit", {"file_path": "src/../.lopen/config.toml"}, False),
        ("NotebookEdit", {"notebook_path": ".lopen/a.ipynb"}, False),
        ("mcp__files__write", {"path": ".LOPEN/config.toml"}, False),
        ("Write", {"file_path": "~/.claude/settings.json"}, False),
        ("Read", {"file_path": ".claude/settings.json"}, True),
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


def test_relative_paths_are_read_from_where_the_session_stands() -> None:
    assert in_shell("echo x > settings.json", f"{ROOT}/.claude", ROOT)
    assert in_shell("rm state.db", f"{ROOT}/.lopen", ROOT)


def test_a_very_long_command_is_searched_not_read() -> None:
    assert in_shell("echo " + "x" * 300_000, ROOT, ROOT) == ""
    assert in_shell("echo " + "x" * 300_000 + "; lopen approve auth", ROOT, ROOT)


@pytest.mark.parametrize(
    "text", ["$(" * 5_000, "'" * 9_999, "`" * 999, "((((" * 999, "<<" * 999, 'bash -c "' * 500]
)
def test_hostile_nesting_ends(text: str) -> None:
    in_shell(text, ROOT, ROOT)
