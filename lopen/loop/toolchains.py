"""The languages of a project as this machine has them: version of the language, test runners and linters on PATH."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from lopen.base.trusted_programs import is_brought


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A language: the files that tell of it, the command that tells its version, the tools looked for."""

    language: str
    files: frozenset[str]  # names, or suffixes with their dot
    version: tuple[str, ...]
    tools: tuple[str, ...]


def _toolchain(language: str, files: str, version: str, tools: str) -> Toolchain:
    return Toolchain(language, frozenset(files.split()), tuple(version.split()), tuple(tools.split()))


TOOLCHAINS = (
    _toolchain(
        "Python",
        ".py .pyi pyproject.toml setup.py requirements.txt",
        "python3 --version",
        "pytest ruff mypy flake8 tox uv",
    ),
    _toolchain(
        "JavaScript/TypeScript",
        ".js .jsx .mjs .cjs .ts .tsx .mts package.json",
        "node --version",
        "npm pnpm yarn tsc eslint vitest jest",
    ),
    _toolchain("Go", ".go go.mod", "go version", "gofmt golangci-lint staticcheck"),
    _toolchain("Rust", ".rs Cargo.toml", "rustc --version", "cargo rustfmt cargo-clippy"),
    _toolchain("Java", ".java pom.xml build.gradle build.gradle.kts", "java --version", "mvn gradle"),
    _toolchain("C/C++", ".c .h .cc .cpp .hpp CMakeLists.txt", "cc --version", "make cmake ctest clang-tidy"),
    _toolchain("Ruby", ".rb Gemfile", "ruby --version", "bundle rake rspec rubocop"),
)


def languages(files: Sequence[str], commands: Mapping[str, str | None], root: Path) -> tuple[str, ...]:
    """Return a line for each language of `files` and of the verify commands' programs, as they are now."""
    paths = [PurePosixPath(f) for f in files]
    seen = {p.name for p in paths} | {p.suffix for p in paths}
    programs = {
        PurePosixPath(command.split()[0]).name for command in commands.values() if command and command.split()
    }
    return tuple(
        _line(chain, root)
        for chain in TOOLCHAINS
        if chain.files & seen
        or programs & {chain.version[0], *chain.tools}
        or chain.language.lower() in programs
    )


def installed(root: Path) -> tuple[str, ...]:
    """Return a line for each language that this machine has, whatever the project's files are."""
    return tuple(_line(chain, root) for chain in TOOLCHAINS if shutil.which(chain.version[0]))


def _line(chain: Toolchain, root: Path) -> str:
    there = [tool for tool in chain.tools if shutil.which(tool)]
    tools = f"on PATH: {', '.join(there)}" if there else f"none of {', '.join(chain.tools)} on PATH"
    return f"{chain.language}: {_version(chain.version, root)}; {tools}"


@cache
def _version(command: tuple[str, ...], root: Path) -> str:
    """Asked outside of the project and of no program in it: rustup, go and version managers start what a
    repository names for them.
    """
    path = shutil.which(command[0])
    if path is None:
        return "not installed here"
    if is_brought(path, root):
        return "the project's own"
    try:
        ran = subprocess.run(
            [path, *command[1:]],
            capture_output=True,
            text=True,
            timeout=10,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "version unknown"
    said = (ran.stdout or ran.stderr).strip().splitlines()
    return said[0][:80] if said else "version unknown"
