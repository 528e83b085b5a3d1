"""Detection of a project's verify commands from its file names and a few marker files.

A listing maps relative paths to contents; only `MARKERS` need contents. `listing` reads one; the rest is pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from lopen.core.untrusted_tables import read_json_table

MAX_FILES = 5_000
MAX_DEPTH = 4
MAX_MARKER_BYTES = 256 * 1024
SKIPPED = frozenset({"node_modules", "target", "build", "dist", "venv", "__pycache__", "vendor", "specs"})

Name = Literal["verify-setup", "verify-build", "verify-tests", "verify-lint"]
NAMES: Final[tuple[Name, ...]] = ("verify-setup", "verify-build", "verify-tests", "verify-lint")
Listing = Mapping[str, str]
Found = Iterator[tuple[Name, str]]

JUST: Final = ("justfile", "Justfile", ".justfile")
MARKERS: Final = frozenset(
    {
        "package.json",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "Makefile",
        "makefile",
        "GNUmakefile",
        *JUST,
        "requirements.txt",
        "requirements-dev.txt",
        "build.gradle",
        "build.gradle.kts",
    }
)

_MAKE_TARGETS: Final[Mapping[str, Name]] = {
    "setup": "verify-setup",
    "build": "verify-build",
    "test": "verify-tests",
    "tests": "verify-tests",
    "lint": "verify-lint",
}
_NPM_PLACEHOLDER = "no test specified"


@dataclass(frozen=True, slots=True)
class Detected:
    """A command or None for each standard name, and what the project lacks, as text."""

    commands: Mapping[Name, str | None]
    missing: tuple[str, ...]


def detect(files: Listing) -> Detected:
    """Return the verify commands of a project.

    Targets of a makefile or justfile take precedence over those of each language, which are joined.
    """
    targets = dict(_make(files))
    found: dict[Name, list[str]] = {}
    for rule in RULES:
        for name, command in rule(files):
            found.setdefault(name, []).append(command)
    commands = {name: targets.get(name) or " && ".join(found.get(name, [])) or None for name in NAMES}
    wanted: tuple[tuple[Name, str], ...] = (("verify-tests", "test runner"), ("verify-lint", "linter"))
    return Detected(commands, tuple(what for name, what in wanted if not commands[name]))


def _make(files: Listing) -> Found:
    """Yield targets with common names, from the file that make itself would read."""
    makefile = next((f for f in ("GNUmakefile", "makefile", "Makefile") if f in files), None)
    if makefile is not None:
        for rule in re.findall(r"^([A-Za-z][\w \t-]*):(?!=)", files[makefile], re.MULTILINE):
            for target in rule.split():
                if target in _MAKE_TARGETS:
                    yield _MAKE_TARGETS[target], f"make {target}"
    elif justfile := next((f for f in JUST if f in files), None):
        for target in re.findall(r"^@?([A-Za-z][\w-]*)[^:=\n]*:(?!=)", files[justfile], re.MULTILINE):
            if target in _MAKE_TARGETS:
                yield _MAKE_TARGETS[target], f"just {target}"


def _python(files: Listing) -> Found:
    names = {path.rsplit("/", 1)[-1] for path in files}
    python = [n for n in names if n.endswith(".py")]
    if not python and not names & {"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"}:
        return
    texts = "\n".join(
        files.get(m, "") for m in ("pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt")
    )
    texts += files.get("requirements-dev.txt", "")
    runner, setup = _python_environment(files)
    if setup:
        yield "verify-setup", setup
    if "pytest.ini" in files or "conftest.py" in names or "pytest" in texts:
        yield "verify-tests", f"{runner}python3 -m pytest -q"
    elif any(re.fullmatch(r"test_.*\.py|.*_test\.py", n) for n in python):
        yield "verify-tests", f"{runner}python3 -m unittest discover"
    lint = list(_python_lint(files, texts, runner))
    if lint:
        yield "verify-lint", " && ".join(lint)


def _python_environment(files: Listing) -> tuple[str, str]:
    """Return the prefix that runs a tool and the setup command, by the lock file."""
    for lock, runner, setup in (
        ("uv.lock", "uv run ", "uv sync --frozen"),
        ("poetry.lock", "poetry run ", "poetry install --no-interaction"),
        ("pdm.lock", "pdm run ", "pdm install --frozen-lockfile"),
        ("Pipfile.lock", "pipenv run ", "pipenv sync --dev"),
    ):
        if lock in files:
            return runner, setup
    for file in ("requirements-dev.txt", "requirements.txt"):
        if file in files:
            return "", f"python3 -m pip install -r {file}"
    return "", ""


def _python_lint(files: Listing, texts: str, runner: str) -> Iterator[str]:
    if {"ruff.toml", ".ruff.toml"} & set(files) or "ruff" in texts:
        yield f"{runner}ruff check ."
    elif ".flake8" in files or "[flake8]" in texts or "flake8" in texts:
        yield f"{runner}flake8"
    if "mypy.ini" in files or "[tool.mypy]" in texts or "[mypy]" in texts:
        yield f"{runner}mypy ."


def _node(files: Listing) -> Found:
    if "package.json" not in files:
        return
    scripts = _scripts(files["package.json"])
    program, setup = _node_program(files)
    yield "verify-setup", setup
    if "build" in scripts:
        yield "verify-build", f"{program} run build"
    elif "tsconfig.json" in files:
        yield "verify-build", "npx --no-install tsc --noEmit"
    if "test" in scripts and _NPM_PLACEHOLDER not in str(scripts["test"]):
        yield "verify-tests", f"{program} run test"
    elif any(re.search(r"(^|/)[\w.-]+[.-]test\.[cm]?js$", f) for f in files):
        yield "verify-tests", "node --test"
    if "lint" in scripts:
        yield "verify-lint", f"{program} run lint"
    elif any(re.fullmatch(r"eslint\.config\.[cm]?[jt]s|\.eslintrc(\.\w+)?", f) for f in files):
        yield "verify-lint", "npx --no-install eslint ."


def _scripts(text: str) -> Mapping[str, Any]:
    scripts = (read_json_table(text) or {}).get("scripts", {})
    return scripts if isinstance(scripts, dict) else {}


def _node_program(files: Listing) -> tuple[str, str]:
    for lock, program, setup in (
        ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn", "yarn install --immutable"),
        ("bun.lock", "bun", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun", "bun install --frozen-lockfile"),
        ("package-lock.json", "npm", "npm ci"),
    ):
        if lock in files:
            return program, setup
    return "npm", "npm install"


def _cargo(files: Listing) -> Found:
    if "Cargo.toml" in files:
        yield "verify-setup", "cargo fetch"
        yield "verify-build", "cargo build"
        yield "verify-tests", "cargo test"
        yield "verify-lint", "cargo clippy -- -D warnings"


def _go(files: Listing) -> Found:
    if "go.mod" in files:
        yield "verify-setup", "go mod download"
        yield "verify-build", "go build ./..."
        yield "verify-tests", "go test ./..."
        golangci = any(f.startswith(".golangci.") for f in files)
        yield "verify-lint", "golangci-lint run" if golangci else "go vet ./..."


def _gradle(files: Listing) -> Found:
    build = next((f for f in ("build.gradle", "build.gradle.kts") if f in files), None)
    if build is not None:
        program = "./gradlew" if "gradlew" in files else "gradle"
        yield "verify-build", f"{program} assemble"
        yield "verify-tests", f"{program} test"
        if "checkstyle" in files[build]:
            yield "verify-lint", f"{program} checkstyleMain"


def _maven(files: Listing) -> Found:
    if "pom.xml" in files:
        program = "./mvnw" if "mvnw" in files else "mvn"
        yield "verify-build", f"{program} -q -DskipTests package"
        yield "verify-tests", f"{program} -q test"


def _dotnet(files: Listing) -> Found:
    if any(f.endswith((".sln", ".csproj", ".fsproj")) for f in files):
        yield "verify-setup", "dotnet restore"
        yield "verify-build", "dotnet build --no-restore"
        yield "verify-tests", "dotnet test"


RULES: Final[tuple[Callable[[Listing], Found], ...]] = (_python, _node, _cargo, _go, _gradle, _maven, _dotnet)


def listing(root: Path) -> Listing:
    """Return the project's files near its root, with the contents of marker files."""
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder).relative_to(root)
        deep = len(here.parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in sorted(files):
            path = (here / name).as_posix()
            found[path] = _marker(root / path) if path in MARKERS else ""
            if len(found) >= MAX_FILES:
                return found
    return found


def _marker(path: Path) -> str:
    try:
        if not path.is_file():  # reading a pipe would block
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_MARKER_BYTES)
    except OSError:
        return ""


def command_lines(detected: Detected) -> Iterator[str]:
    """Yield the lines of `Skills & Hooks` for the detected commands."""
    for name in NAMES:
        command = detected.commands[name]
        yield f"- **{name}**: " + (f"`{command}`" if command else "none")
    yield "- **verify-commit**: none"
