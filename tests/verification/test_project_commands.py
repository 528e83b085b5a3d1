"""Which verify commands a project's files speak for."""

from __future__ import annotations

import json

import pytest

from lopen.verification.project_commands import NAMES, detect

NPM = json.dumps({"scripts": {"test": "jest", "lint": "eslint .", "build": "tsc"}})
MAKEFILE = "SRC := a\nall: build\n\nbuild:\n\tcc\ntest lint: build\n\t./t\n.PHONY: test\n"


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({}, [None, None, None, None]),
        ({"a.py": "", "tests/test_a.py": ""}, [None, None, "python3 -m pytest -q", None]),
        (
            {"tests/__init__.py": "", "tests/test_a.py": "", "test_b.py": ""},
            [None, None, "python3 -m unittest discover", None],
        ),
        (
            {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n"},
            [None, None, "python3 -m pytest -q", "ruff check . && mypy ."],
        ),
        (
            {"pyproject.toml": "pytest", "uv.lock": "", ".flake8": ""},
            ["uv sync --frozen", None, "uv run python3 -m pytest -q", "uv run flake8"],
        ),
        ({"package.json": NPM}, ["npm install", "npm run build", "npm run test", "npm run lint"]),
        (
            {"package.json": NPM, "pnpm-lock.yaml": ""},
            ["pnpm install --frozen-lockfile", "pnpm run build", "pnpm run test", "pnpm run lint"],
        ),
        (
            {
                "package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}',
                "eslint.config.mjs": "",
                "package-lock.json": "",
            },
            ["npm ci", None, None, "npx --no-install eslint ."],
        ),
        (
            {"Cargo.toml": ""},
            ["cargo fetch", "cargo build", "cargo test", "cargo clippy -- -D warnings"],
        ),
        ({"go.mod": ""}, ["go mod download", "go build ./...", "go test ./...", "go vet ./..."]),
        ({"build.gradle.kts": "", "gradlew": ""}, [None, "./gradlew assemble", "./gradlew test", None]),
        (
            {"Makefile": MAKEFILE, "go.mod": ""},
            ["go mod download", "make build", "make test", "make lint"],
        ),
        ({"justfile": "test:\n  go test\n"}, [None, None, "just test", None]),
        (
            {"package.json": NPM, "tests/test_a.py": "", "a.py": ""},
            ["npm install", "npm run build", "python3 -m pytest -q && npm run test", "npm run lint"],
        ),
    ],
)
def test_the_commands_of_a_project(files: dict[str, str], commands: list[str | None]) -> None:
    assert [detect(files).commands[name] for name in NAMES] == commands


@pytest.mark.parametrize("text", ["", "[]", "{", '{"scripts": 3}', "null"])
def test_a_broken_package_file_names_no_script(text: str) -> None:
    assert detect({"package.json": text}).commands["verify-tests"] is None


def test_what_is_missing_is_said() -> None:
    assert detect({}).missing == ("test runner", "linter")
    assert detect({"pom.xml": ""}).missing == ("linter",)
    assert detect({"Cargo.toml": ""}).missing == ()
