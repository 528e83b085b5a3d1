"""`lopen init` in sample repositories on disk, broken ones among them, and its complete example."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Lopen, json_lines

FIFO, LOOP = b"<fifo>", b"<link to itself>"
NPM = json.dumps({"scripts": {"test": "jest", "lint": "eslint ."}}).encode()
PYPROJECT = b'[project]\nname = "x"\n[tool.pytest.ini_options]\n[tool.ruff]\nline-length = 100\n'
JUSTFILE = b"set shell := ['bash', '-c']\n\ntest *args:\n  true\n\n@lint:\n  true\n"

# Name → files, then the commands found: setup, build, tests, lint
SAMPLES: dict[str, tuple[Mapping[str, bytes], tuple[str | None, ...]]] = {
    "Python with pytest and ruff": (
        {"pyproject.toml": PYPROJECT, "src/x/__init__.py": b"", "tests/test_x.py": b""},
        (None, None, "python3 -m pytest -q", "ruff check ."),
    ),
    "JavaScript": (
        {"package.json": NPM, "package-lock.json": b"{}", "src/a.js": b"", "test/a.test.js": b""},
        ("npm ci", None, "npm run test", "npm run lint"),
    ),
    "TypeScript without scripts": (
        {
            "package.json": b'{"type": "module"}',
            "tsconfig.json": b"{}",
            "src/a.ts": b"",
            "test/a.test.mjs": b"",
        },
        ("npm install", "npx --no-install tsc --noEmit", "node --test", None),
    ),
    "Go": (
        {"go.mod": b"module example.org/x\n", "x.go": b"package x\n", "x_test.go": b"package x\n"},
        ("go mod download", "go build ./...", "go test ./...", "go vet ./..."),
    ),
    "Rust": (
        {"Cargo.toml": b'[package]\nname = "x"\n', "Cargo.lock": b"", "src/lib.rs": b""},
        ("cargo fetch", "cargo build", "cargo test", "cargo clippy -- -D warnings"),
    ),
    "Java with Maven's wrapper": (
        {"pom.xml": b"<project/>", "mvnw": b"", "src/main/java/X.java": b""},
        (None, "./mvnw -q -DskipTests package", "./mvnw -q test", None),
    ),
    "just": ({"Justfile": JUSTFILE, "main.c": b""}, (None, None, "just test", "just lint")),
    "broken: package.json is cut off, a pipe is named go.mod": (
        {"package.json": b'{"scripts": {"test": "je', "go.mod": FIFO, "src/a.js": b""},
        ("npm install && go mod download", "go build ./...", "go test ./...", "go vet ./..."),
    ),
    "broken: pyproject.toml is no text, a link leads to itself": (
        {"pyproject.toml": b"\xff\xfe\x00[tool.ruff\x00", "lib": LOOP, "test_a.py": b"\x00"},
        (None, None, "python3 -m unittest discover", "ruff check ."),
    ),
    "broken: the Makefile is a folder, a name is no UTF-8": (
        {"Makefile/README": b"", "caf\udce9.py": b"", "requirements.txt": b"pytest\n"},
        ("python3 -m pip install -r requirements.txt", None, "python3 -m pytest -q", None),
    ),
}


def lay_out(root: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is FIFO:
            os.mkfifo(path)
        elif content is LOOP:
            path.symlink_to(path)
        else:
            path.write_bytes(content)


@pytest.mark.parametrize("name", SAMPLES)
def test_init_finds_the_commands_of_a_repository(lopen: Lopen, project: Path, name: str) -> None:
    files, commands = SAMPLES[name]
    lay_out(project, files)

    done = lopen("init", "calc", "--json")

    assert done.returncode == 0, done.stderr
    found = [line["command"] for line in json_lines(done.stdout) if line["event"] == "init_command"]
    assert tuple(found) == commands
    checked = lopen("check", "calc")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_example_is_complete(lopen: Lopen, project: Path) -> None:
    done = lopen("init", "--example")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("next: lopen run tariff  (shows it and asks for your approval)\n")
    assert "verify-" not in done.stdout + done.stderr  # it has its own
    checked = lopen("check", "--json")
    assert checked.returncode == 0, checked.stdout
    [counts] = [line for line in json_lines(checked.stdout) if line["event"] == "check"]
    assert (counts["problems"], counts["warnings"]) == (0, 0)
    assert lopen("init", "calc", "--example").returncode == 2
