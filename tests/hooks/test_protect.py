from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from lopen.claude_hooks.protect import forbidden, in_shell
from tests.fuzz.inputs import bounded, pieces

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
    "git config alias.x '!lopen approve demo' && git x",
    "git config --global alias.x '! sh -c \"lopen approve demo\"'",
    "git -c alias.x='!lopen approve demo' x",
    "git -c 'alias.x=!cd /tmp; lopen approve demo' x log",
    "echo 'cd x; lopen budget extend s --tokens 1 --reason r' > a.sh",
    "printf '#!/bin/sh\\nlopen approve auth\\n' > bin/go && bin/go",
    "echo lopen approve auth | tee -a a.sh",
    "cat > a.sh <<'EOF'\nlopen approve auth\nEOF",
    "cat > a.md <<EOF\ntext\nEOF\nlopen approve auth",
    "sh <<'EOF' | cat\nlopen approve auth\nEOF",
    "cat <<'EOF' | sh\nlopen approve auth\nEOF",
    "sh <<'EOF' && true\nlopen approve auth\nEOF",
    "lopen alerts ack all",
    # quoting and nesting
    "echo $'it\\'s' ; lopen approve auth",
    "(( x = 1 << 2 ))\nlopen approve auth",
    "cat <<EOF\n$(lopen approve auth)\nEOF",
    "cat <<EOF\n`lopen approve auth`\nEOF",
    "echo `echo \\`lopen approve auth\\``",
    "echo `echo \\`echo \\\\\\`lopen approve auth\\\\\\`\\``",
    "$'\\x6copen' approve auth",
    'echo "${x:-$(lopen approve auth)}"',
    "x=$(cat <<EOF\n)\nEOF\n); lopen approve auth",
    "case a in a) lopen approve auth;; esac",
    "for ((i = 0; i < 1 << 2; i++)); do lopen approve auth; done",
    "a[1 << 2]=3\nlopen approve auth",
    "[[ a < b ]] && lopen approve auth",
    "coproc X { lopen approve auth; }",
    # aliases, functions, variables
    "alias l=lopen; l circuit ack x",
    "alias l='lopen circuit'; l ack x",
    "alias l=lopen k=l; k approve auth",
    'f() { lopen "$@"; }; f approve auth',
    "f() { $1 $2 auth; }; f lopen approve",
    '"$@" lopen approve auth',
    'set -- lopen approve auth; "$@"',
    "x=lopen; $x approve auth",
    "x=lop; y=en; ${x}$y approve auth",
    'x=lop; x+=en; export c="lopen approve auth"; $c',
    "c='lopen approve auth'; bash -c \"$c\"",
    "c='lopen approve auth'; eval \"$c\"",
    "c='lopen approve auth'; bash <<< \"$c\"",
    "c='lopen approve auth'; echo \"$c\" | FOO=$(date) bash",
    "for x in ls lopen; do $x approve auth; done",
    'a=(lopen approve auth); "${a[@]}"',
    "${x:-lopen} approve auth",
    "${x:-lopen approve auth}",
    "${x}lopen approve auth",
    "lop$(echo en) approve auth",
    "/usr/bin/lop?n approve auth",
    "{lopen,approve,auth}",
    "lopen {approve,auth}",
    # programs that run others
    "command lopen approve auth",
    "exec -a x lopen approve auth",
    "env -S 'lopen approve auth'",
    "env -S'lopen approve auth'",
    "x=lopen; env nohup $x approve auth",
    "echo approve auth | xargs lopen",
    "echo lopen approve auth | xargs env",
    "echo approve | xargs -I{} lopen {} auth",
    "echo 'lopen approve auth' | xargs -I % sh -c %",
    "cat words | xargs lopen",
    "cat words | xargs -n 2 lopen budget",
    "echo lopen approve auth | cat | sh",
    "{ echo lopen approve auth; true; } | sh",
    "echo lopen approve auth | { cat; sh; }",
    "echo lopen approve auth | if true; then sh; fi",
    "{ sh; } <<EOF\nlopen approve auth\nEOF",
    "(cat; sh) <<< 'lopen approve auth'",
    "python <<EOF\nrun(['lopen', 'approve', 'auth'])\nEOF",
]
UNREADABLE = [
    'eval "$(cat lopen.txt)"',
    'bash -c "$UNKNOWN" lopen',
    "bash <(sed s,x,lopen, file)",
    "source <(grep lopen file)",
    "sed s,x,lopen, file | bash",
    'while read x; do eval "$x"; done <<< "lopen $y"',
    "lopen status; echo 'not closed",
    'lopen status; "${x:-' + '"${x:-' * 100,
    'sh -c "echo \'lopen"',
    'eval "$X"; cat .lopen/config.toml',
    "lopen status $a $b $c; a=1 a=2 a=3 a=4 a=5 b=1 b=2 b=3 b=4 b=5 c=1 c=2 c=3",
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
    "echo 'then run lopen approve auth' >> README.md",
    "echo 'lopen status' > a.sh",
    "cat > x.py <<'EOF'\nprint('lopen approve')\nEOF",
    "echo lopen > names",
    "cat > docs/a.md <<'EOF'\nRun `lopen approve auth`.\nEOF",
    "cat > a.py <<EOF\nopen('.lopen/x', 'w'); rm('.lopen')\nEOF\necho done",
    "echo 'lopen approve auth' 2>/dev/null",
    "git config alias.st status",
    "git config alias.x '!lopen status'",
    "git tag -m 'lopen approve works' v1",
    "pytest tests/test_approve.py",
    "approve auth",
    "cd lopen && ls",
    "",
    "'",
    "echo $((1 + 2)) ${HOME} $'a\\n'",
    "lopen alerts list",
    "x=lopen; $x status",
    "alias l=lopen; l status",
    "cat <<'EOF'\n$(lopen approve auth)\nEOF",
    "cat <<\\EOF\n`lopen approve auth`\nEOF",
    "echo 'it'\\''s $(lopen approve auth)'",
    "echo '`lopen approve`' \\$(true)",
    "(( lopen << 2 ))",
    "# it's lopen",
    'eval "$(direnv hook bash)"',
    'cd lopen/ && bash -c "$X"',
    "curl https://example.org/install.sh | sh",
    'git commit -m "it\'s lopen"',
    "sed -i 's/lopen/x/' a.py | sh a.sh",
    "ls * lib/*",
    "cat a b | xargs grep lopen",
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
    "rm -rf .claude",
    "rm -rf ./.claude/",
    "cd src && rm -rf ../.claude",
    "git rm -rf .claude",
    "mv .claude x",
    "mv .claude /tmp/old && mkdir .claude",
    "mv new .claude",
    "cp -r new .claude",
    "cp -R new/. .claude/",
    "cp -a /tmp/.claude .",
    "cp settings.json .claude/",
    "cp -t .claude a.md settings.local.json",
    "mv /tmp/.lopen .",
    "rsync -a new/ .claude/",
    "git checkout other -- .claude",
    "git checkout other .claude",
    "git -C /home/ann/project checkout other -- .claude",
    "git checkout log -- .claude",
    "git restore --source=HEAD~1 .",
    "git restore -s HEAD~1 -- .claude",
    "git clean -fdx",
    "git clean -xdf",
    "git clean -f -d -X",
    "git clean -ffdx .",
    "cd src && git clean -fdx ..",
    "git stash --all",
    "git stash push -u -a",
    "find . -delete",
    "find . -type f -delete",
    "find /home/ann -name '*.db' -delete",
    "find . -name state.db -delete",
    "find . -name 'st*' -exec rm {} +",
    "find . -name .claude -exec rm -rf {} ';'",
    "find . -type d -exec sh -c 'rm -rf \"$1\"' _ {} ';'",
    "find . '(' -name '*.pyc' -o -name '*.toml' ')' -delete",
    "find . -name config.toml | xargs rm -f",
    "find . -path '*/.lopen/*' -print0 | xargs -0 rm",
    "rsync -a --delete /tmp/empty/ ./",
    "rsync -a --delete-after /tmp/empty/ /home/ann",
    "rsync -a --delete --exclude=.lopen /tmp/empty/ .",
    "(cd /tmp); rm -rf .",
    "echo $(cd /tmp; pwd); rm -rf .",
    "x=.lopen; rm -rf $x",
    "d=.claude; echo '{}' > $d/settings.json",
    "for f in a .lopen/state.db; do rm $f; done",
    "{ echo a; } > .lopen/config.toml",
    "if true; then echo a; fi 2> .lopen/config.toml",
    "alias r='rm -rf'; r .lopen",
    "cat <<EOF\n$(rm -rf .lopen)\nEOF",
    "echo .lopen/state.db | xargs rm",
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
    "rm -rf .claude/commands",
    "mv .claude/commands/a.md .claude/commands/b.md",
    "mv notes.md .claude/",
    "cp a.md .claude/agents/",
    "cp -r agents .claude/agents",
    "cp -r .lopen /tmp/copy",
    "cp -r .claude /tmp/copy",
    "rsync -a .lopen/ /tmp/copy/",
    "git checkout main",
    "git checkout -b feature",
    "git checkout -- src",
    "git checkout HEAD~1 -- src/a.py",
    "git restore src/a.py",
    "git restore --staged .",
    "git clean -fd",
    "git clean -fdx build",
    "git clean -ndx",
    "git stash",
    "git stash pop",
    "git stash -u -- src",
    "git add -A .claude",
    "find . -name '*.pyc' -delete",
    "find . -name __pycache__ -type d -exec rm -rf {} +",
    "find . '(' -name '*.pyc' -o -name '*.pyo' ')' -delete",
    "find src -type f -delete",
    "find . -name .lopen -prune -o -name .claude -prune -o -type f -delete",
    "find . -not -path './.lopen/*' -not -path './.claude/*' -type f -delete",
    "find . -maxdepth 1 -type f -delete",
    "find . -type f -exec wc -l {} +",
    "find . -name '*.py' -exec sed -i s/a/b/ {} +",
    "find . -type f -name '*.orig' | xargs rm -f",
    "find . -type f | xargs grep budget",
    "rsync -a --delete build/ dist/",
    "rsync -an --delete /tmp/empty/ ./ --dry-run",
    "rsync -a --delete --exclude=.lopen --exclude=.claude /tmp/new/ ./",
    "(cd /tmp/x && rm -rf .)",
    "x=build; rm -rf $x",
]


@pytest.mark.parametrize("command", PERSONS)
def test_a_persons_command_is_blocked_however_it_is_written(command: str) -> None:
    assert "person's command" in in_shell(command, ROOT, ROOT)


@pytest.mark.parametrize("command", UNREADABLE)
def test_a_command_that_cannot_be_told_and_names_lopen_is_blocked(command: str) -> None:
    assert "cannot tell what it runs" in in_shell(command, ROOT, ROOT)


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
        ("mcp__fs__move_file", {"source": "a.json", "destination": ".claude/settings.json"}, False),
        ("mcp__fs__write", {"file": ".lopen/config.toml", "content": "x"}, False),
        ("mcp__fs__edit", {"edits": [{"path": ".claude/settings.json", "new": "{}"}]}, False),
        ("mcp__fs__write", {"targets": [["a", ["file:///home/ann/project/.lopen/a"]]]}, False),
        ("mcp__fs__delete_directory", {"at": ".claude"}, False),
        ("mcp__sh__run", {"cmd": "rm -rf .lopen"}, False),
        ("mcp__sh__run", {"command": ["sh", "-c", "lopen approve auth"]}, False),
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
    "eval " * 5_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_read_to_an_end(text: str) -> None:
    in_shell(text, ROOT, ROOT)


def test_a_text_of_too_many_commands_is_refused() -> None:
    assert in_shell("rm a;" * 3_000, ROOT, ROOT) == ""
    assert "give it in parts" in in_shell("rm a;" * 5_000 + "rm -rf .lopen", ROOT, ROOT)


@given(
    pieces(
        *(part for text in [*PERSONS, *EDITS] for part in text.split(" ")), " ", ";", "|", "$(", ")", "{", "}"
    )
)
@bounded(100)
def test_any_text_is_allowed_or_refused(text: str) -> None:
    assert isinstance(in_shell(text, ROOT, ROOT), str)
