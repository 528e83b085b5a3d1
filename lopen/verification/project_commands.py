"""Detection of a project's verify commands from its file names and a few marker files.

A listing maps relative paths to contents; only `MARKERS` need contents. `listing` reads one; the rest is pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
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

MAKE: Final = ("GNUmakefile", "makefile", "Makefile")
JUST: Final = ("justfile", "Justfile", ".justfile")
PYTHON: Final = ("pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt")
MARKERS: Final = frozenset({"package.json", *PYTHON, *MAKE, *JUST})
TARGETS: Final[Mapping[str, Name]] = {
    "setup": "verify-setup",
    "build": "verify-build",
    "test": "verify-tests",
    "tests": "verify-tests",
    "lint": "verify-lint",
}
# Lock file → how its tool runs another one, and sets up
PYTHON_LOCKS: Final = (
    ("uv.lock", "uv run ", "uv sync --frozen"),
    ("poetry.lock", "poetry run ", "poetry install --no-interaction"),
    ("pdm.lock", "pdm run ", "pdm install --frozen-lockfile"),
    ("requirements-dev.txt", "", "python3 -m pip install -r requirements-dev.txt"),
    ("requirements.txt", "", "python3 -m pip install -r requirements.txt"),
)
NODE_LOCKS: Final = (
    ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn", "yarn install --immutable"),
    ("bun.lock", "bun", "bun install --frozen-lockfile"),
    ("package-lock.json", "npm", "npm ci"),
)
# Pattern of a file's name → the commands, in the order of `NAMES`
FIXED: Final[tuple[tuple[str, tuple[str | None, ...]], ...]] = (
    (r"Cargo\.toml", ("cargo fetch", "cargo build", "cargo test", "cargo clippy -- -D warnings")),
    (r"go\.mod", ("go mod download", "go build ./...", "go test ./...", "go vet ./...")),
    (r"build\.gradle(\.kts)?", (None, "gradle assemble", "gradle test", None)),
    (r"pom\.xml", (None, "mvn -q -DskipTests package", "mvn -q test", None)),
    (r".*\.(sln|csproj|fsproj)", ("dotnet restore", "dotnet build --no-restore", "dotnet test", None)),
)
WRAPPERS: Final = {"gradle": "gradlew", "mvn": "mvnw"}


@dataclass(frozen=True, slots=True)
class Detected:
    """A command or None for each standard name, and the project's gaps, as text."""

    commands: Mapping[Name, str | None]
    missing: tuple[str, ...]


def detect(files: Listing) -> Detected:
    """Return the verify commands of a project.

    Targets of a makefile or justfile take precedence over the commands of each language, which are joined.
    """
    targets = dict(_targets(files))
    found: dict[Name, list[str]] = {}
    for rule in (_python, _node, _fixed):
        for name, command in rule(files):
            found.setdefault(name, []).append(command)
    commands = {name: targets.get(name) or " && ".join(found.get(name, [])) or None for name in NAMES}
    wanted: tuple[tuple[Name, str], ...] = (("verify-tests", "test runner"), ("verify-lint", "linter"))
    return Detected(commands, tuple(what for name, what in wanted if not commands[name]))


def _targets(files: Listing) -> Found:
    """Yield targets with common names, from the file that make or just itself would read."""
    for program, names in (("make", MAKE), ("just", JUST)):
        file = next((name for name in names if name in files), None)
        if file is not None:
            for rule in re.findall(r"^@?([A-Za-z][^:=\n]*):(?!=)", files[file], re.MULTILINE):
                for target in rule.split() if program == "make" else rule.split()[:1]:
                    if target in TARGETS:
                        yield TARGETS[target], f"{program} {target}"
            return


def _python(files: Listing) -> Found:
    names = {path.rsplit("/", 1)[-1] for path in files}
    python = [n for n in names if n.endswith(".py")]
    texts = "\n".join(files.get(marker, "") for marker in PYTHON)
    if not python and not names & set(PYTHON):
        return
    runner, setup = next(((run, setup) for lock, run, setup in PYTHON_LOCKS if lock in files), ("", ""))
    if setup:
        yield "verify-setup", setup
    if "pytest.ini" in files or "conftest.py" in names or "pytest" in texts:
        yield "verify-tests", f"{runner}python3 -m pytest -q"
    elif tests := [path for path in files if re.search(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$", path)]:
        # unittest finds files of its own pattern alone, and looks into packages only
        found = all(_found_by_unittest(path, files) for path in tests)
        yield "verify-tests", f"{runner}python3 -m " + ("unittest discover" if found else "pytest -q")
    lint = {"ruff check .": ("ruff.toml", ".ruff.toml"), "flake8": (".flake8",), "mypy .": ("mypy.ini",)}
    asked = [c for c, own in lint.items() if set(own) & set(files) or c.split()[0] in texts]
    if asked:
        yield "verify-lint", " && ".join(f"{runner}{command}" for command in asked)


def _found_by_unittest(path: str, files: Listing) -> bool:
    folder, _, name = path.rpartition("/")
    return name.startswith("test") and (not folder or f"{folder}/__init__.py" in files)


def _node(files: Listing) -> Found:
    if "package.json" not in files:
        return
    scripts: Any = (read_json_table(files["package.json"]) or {}).get("scripts", {})
    scripts = scripts if isinstance(scripts, dict) else {}
    own = ((program, setup) for lock, program, setup in NODE_LOCKS if lock in files)
    program, setup = next(own, ("npm", "npm install"))
    yield "verify-setup", setup
    if "build" in scripts:
        yield "verify-build", f"{program} run build"
    elif "tsconfig.json" in files:
        yield "verify-build", "npx --no-install tsc --noEmit"
    if "test" in scripts and "no test specified" not in str(scripts["test"]):  # npm's placeholder
        yield "verify-tests", f"{program} run test"
    elif any(re.search(r"(^|/)[\w.-]+[.-]test\.[cm]?js$", f) for f in files):
        yield "verify-tests", "node --test"
    if "lint" in scripts:
        yield "verify-lint", f"{program} run lint"
    elif any(re.fullmatch(r"eslint\.config\.[cm]?[jt]s|\.eslintrc(\.\w+)?", f) for f in files):
        yield "verify-lint", "npx --no-install eslint ."


def _fixed(files: Listing) -> Found:
    for pattern, commands in FIXED:
        if any(re.fullmatch(pattern, file) for file in files):
            for name, command in zip(NAMES, commands, strict=True):
                if command is not None:
                    program, rest = command.split(" ", 1)
                    wrapper = WRAPPERS.get(program, "")
                    yield name, f"./{wrapper} {rest}" if wrapper in files else command


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
