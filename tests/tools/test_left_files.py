"""Files that tools obey by themselves, planted where git ignores them (docs/reference/sandbox.md)."""

from __future__ import annotations

import time
from pathlib import Path

from lopen.core.clock import SystemClock
from lopen.git.repository import Repository
from lopen.tools.left_files import clear_left_files
from tests.tools.examples import git

PLANTED = [
    "GNUmakefile",
    "makefile",
    "Justfile",
    ".justfile",
    "sub/GNUmakefile",
    ".npmrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".mocharc.js",
    "vitest.config.ts",
    ".pytest.ini",
    "pytest.toml",
    "tox.ini",
    "setup.cfg",
    ".pdbrc",
    ".pre-commit-config.yaml",
    ".bazelrc",
    ".mcp.json",
    ".exrc",
    ".gdbinit",
    "compose.override.yaml",
    ".envrc",
    ".cargo/config.toml",
    "sub/.cargo/config",
    ".mvn/jvm.config",
    ".husky/pre-push",
    ".yarn/releases/yarn.cjs",
]
LEFT = [
    "node_modules/left/.npmrc",
    "node_modules/left/tox.ini",
    "build/GNUmakefile",
    "build/.cargo/config.toml",
    ".yarn/install-state.gz",
    ".cargo/registry",
    "data.ini",
    ".env",
    "Makefile",
]


def test_what_tools_obey_is_removed_and_named(root: Path) -> None:
    rules = "*\n!.gitignore\n!/sub/\n!/sub/a.py\n"
    files = {
        ".gitignore": rules,
        "sub/a.py": "",
        ".mise.toml": "a person's own",
        "tox.toml": "a person's own",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Ignore")
    time.sleep(0.05)  # longer than file times lag behind the clock
    started = time.time_ns()
    for path in (*PLANTED, *LEFT, "tox.toml"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("planted")

    found = clear_left_files(root, Repository.open(root, clock=SystemClock()), ((started, time.time_ns()),))

    assert set(found.removed) == set(PLANTED)
    assert all((root / path).exists() for path in (*LEFT, ".mise.toml", "tox.toml"))
    assert all(path in " ".join(found.lines()) for path in PLANTED)
