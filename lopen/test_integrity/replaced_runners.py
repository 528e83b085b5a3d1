"""Settings by which another program runs the tests than before, or loads code of its own before them."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding, Severity

_MOST_CHARS = 200_000
_AGENT = r"-(?:javaagent|agentpath|agentlib|Xbootclasspath)\S*|--patch-module\S*"
_JS_TOOLS = (
    r"jest(?:-[\w-]+)?|@jest/[\w-]+|vitest|@vitest/[\w-]+|mocha|chai|expect|ava|tap|sinon|tsx|ts-node|c8|nyc"
)
_GO_CHECKS = r"\S*(?:testify|gotest\.tools|gomega|ginkgo|go-cmp|quicktest|check\.v1|goconvey)\S*"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of a file that replaces a runner, and how that is told.

    Lines that agree in the group `origin`, where the pattern has one and it matches, come from the same place.
    """

    path: re.Pattern[str]
    line: re.Pattern[str]
    severity: Severity
    what: str


def _rule(path: str, line: str, severity: Severity, what: str) -> _Rule:
    return _Rule(re.compile(rf"(?:^|/)(?:{path})$"), re.compile(line, re.MULTILINE), severity, what)


_TARGET = re.compile(r"\s*\[target\.[\"']?(?P<triple>\w+-[\w-]+)[\"']?\]\s*(?:#.*)?$")
_BUILT = re.compile(r"^[^#\n\w]*(?:build\s*\.\s*)?target[\"']?\s*=|\bbuild[\"']?\s*=", re.MULTILINE)
_CARGO = r"\.cargo/config(?:\.toml)?"
_RULES = (
    _rule(_CARGO, r"^[^#\n]*\b(?:runner|rustc|rustdoc|rustc-(?:workspace-)?wrapper|include)\s*=[^\n]*", "error", "cargo now runs by"),
    _rule(_CARGO, r"^[^#\n]*\blinker\s*=\s*[\"'][^\"'\n]*(?:/|\.sh)[^\n]*", "error", "cargo now links by"),
    _rule(_CARGO, r"^[^#\n]*\b(?:RUSTC\w*|RUSTFLAGS|RUSTDOC\w*|CARGO_(?:BUILD|TARGET)_\w+|PATH|LD_\w+)\s*=[^\n]*", "error", "cargo now sets"),
    _rule(r"rust-toolchain(?:\.toml)?", r"^[^#\n]*\bpath\s*=[^\n]*", "error", "the Rust tools now come from"),
    _rule(r"\.mvn/jvm\.config|gradle\.properties", rf"^[^#\n]*(?:{_AGENT})[^\n]*", "error", "Java now loads this before the tests:"),
    _rule(r"\.mvn/extensions\.xml", r"<artifactId>[^<]*</artifactId>", "error", "Maven now loads the extension"),
    _rule(
        r"\.mvn/maven\.config",
        r"-Dmaven\.test\.(?:failure|error)\.ignore(?!=false)\S*|-DtestFailureIgnore\S*|-DskipITs\S*|(?:^|\s)(?:-fn|--fail-never)\b",
        "error",
        "Maven now passes although tests fail, by",
    ),
    _rule(
        r"(?:gradle|maven)-wrapper\.properties",
        r"^\s*(?:distributionUrl|wrapperUrl)\s*=(?!\s*https\\?://(?:services\.gradle\.org|repo\.maven\.apache\.org|repo1\.maven\.org)/)(?:\s*(?P<origin>https?\\?://[^/\n]+)/)?[^\n]*",
        "error",
        "the wrapper now takes another program:",
    ),
    _rule(r"(?:[\w.-]*\.)?init\.gradle(?:\.kts)?|init\.d/[\w.-]+\.gradle", r"\A[\s\S]{0,80}", "warning", "an init script changes what Gradle runs:"),
    _rule(r"go\.mod", rf"^\s*(?:replace\s+)?{_GO_CHECKS}[^\n]*=>\s*\.{{1,2}}/[^\n]*", "error", "what tests check with is now the project's own:"),
    _rule(r"Cargo\.toml", r"^\s*\[patch\b[^\n]*", "warning", "dependencies are replaced:"),
    _rule(
        r"package\.json",
        rf"\"(?:{_JS_TOOLS})\"\s*:\s*\"(?:file:|link:|portal:|\.{{1,2}}/|git|https?:|npm:)[^\"\n]*\"",
        "error",
        "what runs the tests now comes from",
    ),
    _rule(
        r"(?:package\.json|jest\.config\.\w+)",
        r"[\"']?\b(?:testRunner|runner)[\"']?\s*:\s*[\"'](?:<rootDir>|\.{1,2})/[^\"'\n]*[\"']",
        "error",
        "jest now runs tests by",
    ),
    _rule(
        r"(?:package\.json|jest\.config\.\w+)",
        r"[\"']?\bresolver[\"']?\s*:\s*[\"'](?:<rootDir>|\.{1,2})/[^\"'\n]*[\"']",
        "warning",
        "jest now finds modules by",
    ),
    _rule(r"tsconfig[\w.-]*\.json", rf"\"(?:node:(?:assert|test)[/\w]*|assert|{_JS_TOOLS})\"\s*:\s*\[[^\]\n]*", "error", "imports of the tests are led elsewhere:"),
    _rule(r"(?:bunfig\.toml|\.mocharc\.\w+)", r"^[^#\n]*\b(?:preload|require|import)[\"']?\s*[=:][^\n]*(?:[\"'\s\[](?:\.{0,2}/|\w[\w.-]*/[\w./-]*\.[cm]?[jt]s)|\n\s*- *[\"']?(?:\.{0,2}/|\w[\w.-]*/[\w./-]*\.[cm]?[jt]s))[^\n]*", "warning", "the runner now loads first"),
    _rule(
        r"(?:\.?pytest\.ini|\.?pytest\.toml|pyproject\.toml|tox\.ini|setup\.cfg)",
        r"(?:^|[\s\"'])-p(?:\s+|=|[\"'],\s*[\"'])?(?!no:|xdist|cov|pytest|_pytest|asyncio|anyio|hypothesis|randomly|pytester|\s)[A-Za-z][\w.]*",
        "warning",
        "pytest now loads the plugin",
    ),
)  # fmt: skip


def replaced_runner_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a finding for each line that is new and has something else run the tests."""
    for change in changes:
        if change.after is None or max(len(change.after), len(change.before or "")) > _MOST_CHARS:
            continue
        for rule in _RULES:
            if rule.path.search(change.path):
                known = {_origin(found) for found in rule.line.finditer(change.before or "")}
                for found in rule.line.finditer(change.after):
                    if _origin(found) not in known:
                        line = change.after.count("\n", 0, found.start()) + 1
                        said = " ".join(found[0].split())[:80]
                        foreign = ".cargo/" in change.path and _is_foreign(change.after, found.start())
                        severity: Severity = "warning" if foreign else rule.severity
                        yield Finding(severity, f"{rule.what} `{said}`", change.path, line)


def _origin(found: re.Match[str]) -> str:
    return found.groupdict().get("origin") or found[0].strip()


def _is_foreign(text: str, at: int) -> bool:
    """Return True if a line of cargo's settings is of a target that is not this machine's and is not built by default."""
    above = reversed(text[max(at - 4_000, 0) : at].split("\n"))
    target = _TARGET.match(next((line for line in above if line.lstrip().startswith("[")), ""))
    if target is None or "'''" in text or '"""' in text or _BUILT.search(text):
        return False
    system = {"darwin": "apple-darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine())
    return not (target["triple"].startswith(f"{machine}-") and system in target["triple"])
