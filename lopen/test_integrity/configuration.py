"""What decides which tests run at all: runner configuration, conftest, manifests, scripts that run the tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from lopen.core.untrusted_tables import read_json_table
from lopen.test_integrity.java.builds import jvm_findings
from lopen.test_integrity.narrowed_places import (
    lowered_findings,
    narrowed_findings,
)
from lopen.test_integrity.place_settings import HARMLESS, PLACES, in_other_table
from lopen.test_integrity.project_tasks import nox_findings, task_findings, tool_command_findings
from lopen.test_integrity.python import pytest_settings
from lopen.test_integrity.python.pytest_plugins import conftest_findings
from lopen.test_integrity.runner_commands import RUNNER, command_findings
from lopen.test_integrity.runner_scripts import script_findings
from lopen.test_integrity.rust.manifests import (
    alias_findings,
    cargo_findings,
    doctest_findings,
    gated_findings,
    nextest_findings,
)
from lopen.test_integrity.suite import FileChange, words
from lopen.test_integrity.workflows import WORKFLOWS, workflow_findings
from lopen.verification.findings import Finding

_CONFIGURED = re.compile(
    r"\b(?P<key>testPathIgnorePatterns|modulePathIgnorePatterns|testIgnore|excludeSpecPattern|grepInvert|exclude|ignore|spec|testMatch|testRegex|testNamePattern|grep|fgrep)"
    r"\s*(?:[\"']\s*)?:\s*(?P<value>\[[^\]]*\]|[^,\n}]+)"
)
_NEGATED = re.compile(r"[\"'`]!([^\"'`\s]+[./][^\"'`\s]*)[\"'`]")
_OF_COVERAGE = re.compile(r"\bc(?:ollectC)?overage\w*[\"']?\s*:\s*\[[^\]]*$")
_FLAGS = re.compile(
    r"\b(?P<key>passWithNoTests|invert|dangerouslyIgnoreUnhandledErrors)\s*(?:[\"']\s*)?:\s*true"
)
_LEAVING_KEYS = words(
    "testPathIgnorePatterns modulePathIgnorePatterns testIgnore excludeSpecPattern grepInvert exclude ignore"
)


_NPM = re.compile(
    r"^[ \t]*(?P<key>script-shell|node-options|scriptShell|nodeOptions|yarn-path|yarnPath)[ \t]*[=: \t][ \t]*(?P<value>\S.*)$",
    re.MULTILINE,
)
_PRELOADED = re.compile(r"(?:^|[\s\"'])(?:--require|-r|--import|--(?:experimental-)?loader)(?:[ =]|$)")
_NODE_OPTIONS = re.compile(r"\bNODE_OPTIONS=(?P<value>\"[^\"]*\"|'[^']*'|\S+)")


def package_findings(change: FileChange) -> Iterator[Finding]:
    """`package.json`: the test scripts, and jest's own table."""
    before, after = _json(change.before), _json(change.after)
    old, new = _scripts(before), _scripts(after)
    for name, was in old.items():
        if re.match(r"test|verify|check|ci", name) and isinstance(was, str):
            others = any(RUNNER.search(str(new.get(each, ""))) for each in ("test", "verify", "check"))
            if name in new or name in {"test", "verify", "check"} or not others:
                yield from tool_command_findings(
                    change.path, f"the script {name}", was, str(new.get(name, ""))
                )
        lost = set(_called_scripts(was)) - set(_called_scripts(new.get(name)))
        kept = _called_scripts(" ".join(map(str, new.values())))
        unused = [each for each in lost if not any(fnmatchcase(each, pattern) for pattern in kept)]
        gone = sorted(each for each in unused if RUNNER.search(str(new.get(each, ""))))
        if gone and re.match(r"test|verify|check|ci", name):
            yield Finding("error", f"the script {name} no longer runs {', '.join(gone)}", change.path)
    for name, text in new.items():
        named = re.match(r"(?:pre|post)?test(?!.*(?:update|snap))", name)
        if name not in old and named and isinstance(text, str):
            yield from command_findings(change.path, f"the script {name}", "", text)
    preloaded = {found["value"] for text in old.values() for found in _NODE_OPTIONS.finditer(str(text))}
    for name, text in new.items():
        for found in _NODE_OPTIONS.finditer(str(text)):
            if found["value"] not in preloaded and re.search(r"[\s=]\.{0,2}/", found["value"]):
                message = f"the script {name} loads a file of the project into node before anything else"
                yield Finding("warning", message, change.path)
    for key in ("jest", "mocha", "ava"):
        was, now = json.dumps(_table(before, key)), json.dumps(_table(after, key))
        yield from _configured(change.path, was, now, new=not change.before)


def _scripts(document: Mapping[str, Any]) -> dict[str, Any]:
    """The scripts; one of several commands (Composer's) as one line."""
    return {
        name: " && ".join(map(str, text)) if isinstance(text, list) else text
        for name, text in _table(document, "scripts").items()
    }


def _called_scripts(command: object) -> list[str]:
    """The other scripts that a script calls."""
    text = str(command or "")
    listed = re.findall(r"\b(?:run-[sp]|npm-run-all2?|concurrently)\s([^&|;]+)", text)
    several = [word.strip("\"'").removeprefix("npm:") for words_ in listed for word in words_.split()]
    return [*re.findall(r"\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?([\w:-]+)", text), *several]


def javascript_findings(change: FileChange) -> Iterator[Finding]:
    """Configuration written as code: jest, vitest, mocha and their kin."""
    yield from _configured(change.path, change.before or "", change.after or "", new=change.before is None)


def _configured(path: str, was: str, now: str, *, new: bool) -> Iterator[Finding]:
    known = {(f["key"], entry) for f in _CONFIGURED.finditer(was) for entry in _entries(f["value"])}
    for found in _CONFIGURED.finditer(now):
        key = found["key"]
        if in_other_table(now, found.start()):
            continue
        added = [e for e in _entries(found["value"]) if (key, e) not in known and not HARMLESS.search(e)]
        if key in _LEAVING_KEYS and added:
            yield Finding("warning" if new else "error", f"{key} now leaves out {', '.join(added)}", path)
        elif key in {"testNamePattern", "grep", "fgrep"} and added:
            yield Finding("error", f"{key} now runs only {', '.join(added)}", path)
        elif key in {"testMatch", "testRegex"} and added and any(k == key for k, _ in known):
            yield Finding("warning", f"{key} now is {', '.join(added)}", path)
    negated = set(_NEGATED.findall(was))
    for found in _NEGATED.finditer(now):
        if (
            found[1] not in negated
            and not HARMLESS.search(found[1])
            and not in_other_table(now, found.start())
            and not _OF_COVERAGE.search(now, max(0, found.start() - 2_000), found.start())
        ):
            yield Finding("warning" if new else "error", f"a pattern now leaves out {found[1]}", path)
    flags = {f["key"] for f in _FLAGS.finditer(was)}
    for found in _FLAGS.finditer(now):
        if found["key"] not in flags:
            yield Finding("error", f"{found['key']} lets a run without tests, or with failures, pass", path)

    yield from lowered_findings(path, was, now)


def _entries(value: str) -> list[str]:
    return re.findall(r"[\"'`]([^\"'`]+)[\"'`]|(/[^/\n]+/)", value) and [
        a or b for a, b in re.findall(r"[\"'`]([^\"'`]+)[\"'`]|(/[^/\n]+/)", value)
    ]


def npm_findings(change: FileChange) -> Iterator[Finding]:
    """`.npmrc` and its kin: the shell that scripts run in, and options of every node process."""
    known = {found.group().strip() for found in _NPM.finditer(change.before or "")}
    for found in _NPM.finditer(change.after or ""):
        value = found["value"].strip().strip("\"'")
        if found.group().strip() in known:
            continue
        if found["key"].lower() == "yarnpath":
            replaced = not re.match(r"(?:\./)?\.yarn/releases/yarn-[\w.-]+\.c?js$", value)
        elif found["key"] in {"script-shell", "scriptShell"}:
            replaced = not re.search(r"(?:^|/)(?:ba|da|z)?sh$", value)
        else:
            replaced = bool(_PRELOADED.search(value))
            if not replaced:
                yield Finding("warning", f"node now always runs with {value[:80]}", change.path)
        if replaced:
            yield Finding("error", f"scripts now run with {found['key']} {value[:80]}", change.path)


def pnpm_findings(change: FileChange) -> Iterator[Finding]:
    """`.pnpmfile.cjs`: code that decides which packages are installed, the test runner among them."""
    if re.search(RUNNER.pattern + r"|\b(?:assert|chai|expect)\b", change.after or "") and not re.search(
        RUNNER.pattern, change.before or ""
    ):
        yield Finding("error", "pnpm now changes the test runner that it installs", change.path)
    elif change.before is None:
        yield Finding("warning", "pnpm now runs this file when it installs packages", change.path)


def _json(text: str | None) -> Mapping[str, Any]:
    return read_json_table(text or "{}") or {}


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


MAX_CHARS = 120_000  # both sides; nobody writes more configuration than that

Reader = Callable[[FileChange], Iterator[Finding]]


READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (re.compile(r"^conftest\.py$"), conftest_findings),
    (re.compile(r"^(?:package|composer)\.json$"), package_findings),
    (re.compile(r"^(?:\.npmrc|\.yarnrc(?:\.yml)?|pnpm-workspace\.yaml)$"), npm_findings),
    (re.compile(r"^\.pnpmfile\.[cm]?js$"), pnpm_findings),
    (
        re.compile(
            r"^(?:jest|vitest|vite|karma|playwright|cypress|ava)\.config\.\w+$|^\.mocharc\.\w+$|^jasmine\.\w+$"
            r"|^(?:karma|wdio|protractor|nightwatch|codecept)\.conf\.\w+$|^(?:angular|project|web-test-runner\.config)\.\w+$"
        ),
        javascript_findings,
    ),
    (re.compile(r"^Cargo\.toml$"), cargo_findings),
    (re.compile(r"^nextest\.toml$"), nextest_findings),
    (re.compile(r"^config(?:\.toml)?$"), alias_findings),
    (re.compile(r"^(?:pom\.xml|build\.gradle(?:\.kts)?|gradle\.properties|maven\.config)$"), jvm_findings),
    (
        re.compile(r"^(?:GNUm|[Mm])akefile$|^[Jj]ustfile$|^Taskfile\.ya?ml$|^tox\.ini$|\.(?:sh|bash|mk)$"),
        script_findings,
    ),
    (re.compile(r"^noxfile\.py$"), nox_findings),
    (re.compile(r"^pyproject\.toml$"), task_findings),
)


def configuration_findings(changes: Sequence[FileChange]) -> list[Finding]:
    """Findings about files that are not tests and yet keep tests from running or from failing."""
    found = [
        finding
        for change in changes
        if change.after is not None and _is_readable(change)
        for pattern, reader in READERS
        if pattern.search(change.path.rpartition("/")[2])
        for finding in reader(change)
    ]
    for change in changes:
        if change.after is not None and pytest_settings.FILES.search(change.path) and _is_readable(change):
            found += pytest_settings.findings(change, changes)
        if (
            change.after is not None
            and PLACES.search(change.path.rpartition("/")[2])
            and _is_readable(change)
        ):
            found += narrowed_findings(change, changes)
    found += workflow_findings([change for change in changes if WORKFLOWS.search(change.path)])
    return [*found, *doctest_findings(changes), *gated_findings(changes), *_coverage_findings(changes)]


def _is_readable(change: FileChange) -> bool:
    return len(change.after or "") + len(change.before or "") <= MAX_CHARS


_FLOOR = re.compile(r"\bfail[-_]under[\"']?[ \t]*[= \t][ \t]*[\"']?(\d{1,3})(?!\d)")


def _coverage_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """A coverage that the tests must reach, and that is lower in the whole change, or asked for no longer."""
    ours = [c for c in changes if not c.path.endswith((".py", ".md", ".rst")) and "under" in (c.before or "")]
    was = {c.path: max(map(int, _FLOOR.findall(c.before or "")), default=0) for c in ours}
    now = max((int(n) for c in changes for n in _FLOOR.findall(c.after or "")), default=0)
    for path, floor in was.items():
        if floor > now:
            yield Finding("warning", f"the coverage that is asked for falls from {floor} to {now}", path)
