"""`Cargo.toml` and the configuration of nextest: targets and tests that are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lopen.core.untrusted_tables import read_toml_table
from lopen.test_integrity.runner_commands import command_findings
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding, Severity

_EXAMPLE = re.compile(r"^\s*//[/!]\s*(?:```|~~~)", re.MULTILINE)


def cargo_findings(change: FileChange) -> Iterator[Finding]:
    """`Cargo.toml`: targets that are not tested any more."""
    before, after = _toml(change.before), _toml(change.after)
    known = set(_untested(before))
    for what in _untested(after):
        if what not in known:
            yield Finding("error", f"{what}, so that tests are left out", change.path)


def gated_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Test targets that now ask for a feature that is not a default one; a target may be new with its file."""
    new = {change.path.rpartition("/")[2] for change in changes if change.before is None}
    for change in changes:
        if change.path.rpartition("/")[2] != "Cargo.toml" or change.before is None:
            continue
        before, after = _toml(change.before), _toml(change.after)
        usual = set(_table(after, "features").get("default") or ())
        known = _gates(before)
        for name, needed in _gates(after).items():
            added = [each for each in needed if each not in usual and each not in known.get(name, ())]
            if added and f"{name}.rs" not in new:
                message = f"the tests of {name} now run only with {', '.join(added)} (required-features)"
                yield Finding("error", message, change.path)


def _gates(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """The features that test targets need, by the target."""
    targets = manifest.get("test")
    listed = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    return {
        str(each.get("name", "")): [str(f) for f in each.get("required-features") or ()] for each in listed
    }


_NEXTEST = re.compile(
    r"^\s*(?P<key>default-filter|default-set|retries)\s*=\s*(?P<value>.+?)\s*$", re.MULTILINE
)


def nextest_findings(change: FileChange) -> Iterator[Finding]:
    """Settings of nextest by which tests are left out, or may fail before they pass."""
    known = {found[0].strip() for found in _NEXTEST.finditer(change.before or "")}
    for found in _NEXTEST.finditer(change.after or ""):
        if found[0].strip() in known or found["value"].strip("\"'") in {"0", "all()"}:
            continue
        text = f"{found['key']} = {found['value'][:80]}"
        if found["key"] == "retries":
            yield Finding("warning", f"`{text}` lets tests fail before they pass", change.path)
        else:
            yield Finding("error", f"`{text}` leaves tests out", change.path)


_ALIAS = re.compile(
    r"^\s*(?P<name>[\w-]+)\s*=\s*(?:\"(?P<text>[^\"\n]*)\"|\[(?P<list>[^\]\n]*)\])", re.MULTILINE
)


def alias_findings(change: FileChange) -> Iterator[Finding]:
    """Aliases of cargo's own configuration that run fewer tests."""
    before, after = (
        {f["name"]: f["text"] or re.sub(r"[\",]+", " ", f["list"] or "") for f in _ALIAS.finditer(text or "")}
        for text in (change.before, change.after)
    )
    for name, was in before.items():
        now = after.get(name, "")
        yield from command_findings(change.path, f"the alias {name}", f"cargo {was}", f"cargo {now}")


def _untested(manifest: Mapping[str, Any]) -> Iterator[str]:
    package = manifest.get("package")
    if isinstance(package, dict) and package.get("autotests") is False:
        yield "autotests is off"
    targets = [("lib", manifest.get("lib"))]
    for kind in ("bin", "test"):
        listed = manifest.get(kind)
        targets += [(kind, target) for target in listed] if isinstance(listed, list) else []
    for kind, target in targets:
        if isinstance(target, dict):
            name = f"{kind} {target.get('name', '')}".strip()
            for key in ("test", "harness"):
                if target.get(key) is False and (kind, key) != ("bin", "harness"):
                    yield f"{key} is off for {name}"


def doctest_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """A library whose examples are not run: an error where a source of the change had one before."""
    sources = [change.before or "" for change in changes if change.path.endswith(".rs")]
    severity: Severity = "error" if any(map(_EXAMPLE.search, sources)) else "warning"
    for change in changes:
        if change.path.rpartition("/")[2] == "Cargo.toml":
            was, now = (_table(_toml(text), "lib").get("doctest") for text in (change.before, change.after))
            if now is False and was is not False:
                message = "doctest is off for lib, so that the examples in its comments are left out"
                yield Finding(severity, message, change.path)


def _toml(text: str | None) -> Mapping[str, Any]:
    return read_toml_table(text or "") or {}


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}
