"""Builds of Maven and Gradle that skip tests, leave some out or ignore their failures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lopen.test_integrity.narrowed_places import is_division
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_JVM = re.compile(
    r"<(?:skipTests|skip|maven\.test\.skip|testFailureIgnore|skipITs)>\s*true"
    r"|\b(?:skipTests|maven\.test\.skip)\s*=\s*true|-DskipTests|-Dmaven\.test\.skip"
    r"|\bignoreFailures\s*(?:=|\.set\()?\s*true|\bfailOnNoMatchingTests\s*=\s*false|\bisIgnoreFailures\s*=\s*true"
    r"|\bexclude(?:TestsMatching)?\s*\(?\s*[\"'][^\"']*(?:Test|test)[^\"']*[\"'](?:\s*,\s*[\"'][^\"'\n]+[\"'])*|<exclude>[^<]*Test[^<]*</exclude>"
    r"|\btest\s*(?:\.\s*)?\{[^}]{0,400}\benabled\s*=\s*false|\btest\.enabled\s*=\s*false|\bexcludeTags\b[^\n]*|<excludedGroups>[^<]*"
)


def jvm_findings(change: FileChange) -> Iterator[Finding]:
    """Maven and Gradle: skipping, excluding, ignoring failures."""
    known = [" ".join(found.split()) for found in _JVM.findall(_filled(_uncommented(change.before or "")))]
    for found in _JVM.finditer(_filled(_uncommented(change.after or ""))):
        text = " ".join(found.group().split())
        if text in known:
            known.remove(text)
        else:
            line = (change.after or "").count("\n", 0, found.start()) + 1
            if text.startswith("<skip>") and not _runs_tests(change.after or "", found.start()):
                continue
            soft = re.match(r"<?exclude", text) and is_division(change, [text])
            yield Finding(
                "warning" if soft else "error",
                f"`{text[:100]}` keeps tests from running or from failing the build",
                change.path,
                line,
            )


def _filled(text: str) -> str:
    """A POM in which a property's name within an element is its value, where the POM says it."""
    values = dict(re.findall(r"<([\w.-]{1,80})>[ \t]*(true|false)[ \t]*<", text))
    return re.sub(r">\$\{([\w.-]{1,80})\}<", lambda m: f">{values[m[1]]}<" if m[1] in values else m[0], text)


def _uncommented(text: str) -> str:
    """Without comments, line numbers kept."""
    return re.sub(
        r"<!--.*?-->|/\*.*?\*/|(?<!:)//[^\n]*",
        lambda m: re.sub(r"[^\n]", " ", m.group()),
        text,
        flags=re.DOTALL,
    )


def _runs_tests(text: str, at: int) -> bool:
    """Return True unless a place in a POM belongs to a plugin that does not run tests."""
    start = text.rfind("<plugin>", 0, at)
    plugin = text[start:at] if start >= 0 and "</plugin>" not in text[start:at] else ""
    name = re.search(r"<artifactId>\s*([\w.-]+)", plugin + text[at : at + 500])
    return not plugin or name is None or bool(re.search(r"surefire|failsafe|compiler|test", name[1]))
