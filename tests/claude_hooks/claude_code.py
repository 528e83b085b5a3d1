"""The real `claude` command, installed once a machine from npm's registry, for the tests that drive it headless.

It is installed into the person's cache folder, outside every repository. Where it cannot be, the tests are
skipped and say why; LOPEN_TEST_WITHOUT_CLAUDE=1 goes without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lopen.core.files import locked_folder

PACKAGE = "@anthropic-ai/claude-code@latest"  # the tag itself: npm would look for one that suits its own Node
INSTALLS_WITHIN_S = 180
ANSWERS_WITHIN_S = 30
SURROUNDINGS = dict(os.environ)  # npm reads the person's own configuration; the tests' home is another one


def installed() -> Path:
    """The command's path; skips the test where there is none."""
    if SURROUNDINGS.get("LOPEN_TEST_WITHOUT_CLAUDE") == "1":
        pytest.skip("LOPEN_TEST_WITHOUT_CLAUDE=1 says to go without Claude Code")
    base = SURROUNDINGS.get("XDG_CACHE_HOME") or os.path.join(SURROUNDINGS.get("HOME", ""), ".cache")
    folder = Path(base) / "lopen-tests" / "claude-code"
    command = folder / "node_modules" / ".bin" / "claude"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked_folder(folder):
            if not command.exists():
                _install(folder)
            _run([str(command), "--version"], ANSWERS_WITHIN_S)
    except (OSError, TimeoutError, subprocess.SubprocessError) as error:
        pytest.skip(f"Claude Code cannot be installed here: {_reason(error)}")
    return command


def _install(folder: Path) -> None:
    npm = shutil.which("npm", path=SURROUNDINGS.get("PATH"))
    if npm is None:
        raise FileNotFoundError("there is no npm")
    options = ["--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    _run([npm, "install", *options, PACKAGE], INSTALLS_WITHIN_S)


def _run(argv: list[str], seconds: float) -> None:
    subprocess.run(
        argv, env=SURROUNDINGS, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True
    )


def _reason(error: Exception) -> str:
    """Without what the registry or the machine said: names of hosts stay out of reports."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"{Path(error.cmd[0]).name} ended with {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{Path(error.cmd[0]).name} took more than {error.timeout:.0f} s"
    return str(error) or type(error).__name__
