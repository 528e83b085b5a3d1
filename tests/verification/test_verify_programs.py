"""A verify command that could not start, told apart from one that fails because there is nothing to verify yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.verification.verify_programs import start_failure

PLANNED = {"calc", "selfcheck"}
CASES = [
    # command, exit code, output, the line that says why it could not start
    ("pytest -q", 127, "sh: 1: pytest: not found", "sh: 1: pytest: not found"),
    ("pytest -q", 127, "bash: line 1: pytest: command not found", "bash: line 1: pytest: command not found"),
    ("pytest -q", 127, "zsh:1: command not found: pytest", "zsh:1: command not found: pytest"),
    ("/opt/run", 127, "sh: 1: /opt/run: not found", "sh: 1: /opt/run: not found"),
    ("./gradlew test", 127, "sh: 1: ./gradlew: not found", ""),  # a file that is to be written
    ("bash check.sh", 127, "bash: check.sh: No such file or directory", ""),
    ("./run", 126, "sh: 1: ./run: Permission denied", "sh: 1: ./run: Permission denied"),
    ("make test", 2, "make: *** [Makefile:2: test] Error 127", "make: *** [Makefile:2: test] Error 127"),
    ("make test", 2, "make: *** No rule to make target 'test'.  Stop.", ""),
    ("python -m nosuch", 1, "/usr/bin/python3: No module named nosuch", "/usr/bin/python3: No module named nosuch"),
    ("python -mpytest", 1, "/usr/bin/python: No module named pytest", "/usr/bin/python: No module named pytest"),
    ("python -m calc.selfcheck", 1, "/usr/bin/python: No module named calc", ""),  # the module that is built
    ("python -m selfcheck", 1, "/usr/bin/python: No module named selfcheck", ""),  # the specification names it
    ("python -m tests.run", 1, "/usr/bin/python: No module named tests", ""),
    ("python -m tools", 1, "/usr/bin/python: No module named tools", ""),  # a folder of the project
    ("python -m unittest", 1, "ModuleNotFoundError: No module named 'nosuch'", ""),  # a test's import
    ("cargo clippy", 101, "error: no such command: `clippy`", "error: no such command: `clippy`"),
    ("python -m unittest", 5, "NO TESTS RAN", ""),
    ("pytest -q", 1, "E   sh: 1: git: not found", ""),  # what a test printed
    ("exit 127", 127, "", "exit code 127"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "output", "line"), CASES)
def test_what_could_not_start_is_named_by_its_own_words(
    tmp_path: Path, command: str, code: int, output: str, line: str
) -> None:
    (tmp_path / "tools").mkdir()
    assert start_failure(command, code, output, root=tmp_path, planned=PLANNED) == line
