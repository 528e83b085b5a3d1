"""Settings by which a runner looks into fewer places: patterns of files, members of a workspace, modules, tags.

Which tests a narrower pattern leaves out is not read here; two runs tell. So most of what is found is a warning, and so is
the usual division into unit tests and slower ones.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from lopen.test_integrity.place_settings import HARMLESS, SETTINGS, STRING, Setting
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_DIVIDED = re.compile(
    r"\*\$\*|(?<![A-Z])IT(?:Case)?\b|\b(?:integration|e2e|end-to-end|slow|generated|performance|benchmark|docker)(?:Tests?)?\b",
)
_LINES = re.compile(r"(?:^|(?<=\s))(?://|#)[^\n]*", re.MULTILINE)
_MOST = 100  # entries of a setting
_BRACES = re.compile(r"\{([^{}]*)\}")
_PREFIX = re.compile(
    r"^(?:<rootDir>/|\./|\{?(?:src|lib|test|tests|spec|__tests__|packages|app)(?:,\w+)*\}?/|\*+/)*"
)


_THRESHOLDS = re.compile(
    r"\b(?:coverageThreshold|thresholds?)[\"']?\s*:\s*(?P<table>\{(?:[^{}]|\{[^{}]{0,400}\}){0,2000}\})"
)
_LEAST = re.compile(
    r"\b(?P<key>branches|functions|lines|statements|\d+)[\"']?\s*:\s*(?P<value>\d{1,3}(?:\.\d+)?)"
)
_RETRIES = re.compile(
    r"\b(?:retry|retries|retryTimes)[\"']?\s*:\s*(?:[^,\n{}]{0,80}\?\s*)?(?P<value>\d{1,3})\b"
)
_TEST_FOLDER = re.compile(r"\btestDir[\"']?\s*:\s*[\"'`](?:\./)?(?P<value>[^\"'`\n]+)")
_USUAL_RETRIES = 2


def narrowed_findings(change: FileChange, changes: Sequence[FileChange] = ()) -> Iterator[Finding]:
    """Yield a finding for each setting that looks into fewer places than before, or leaves out more.

    What another of the `changes` takes over, or whose file goes, is not missed here.
    """
    gone = {each.path.rpartition("/")[2] for each in changes if each.after is None}
    was, now = (_uncommented(change.path, text or "") for text in (change.before, change.after))
    for setting in SETTINGS:
        if not setting.files.search(change.path):
            continue
        before, after = setting.read(was)[:_MOST], setting.read(now)[:_MOST]
        if not setting.kept:
            added = [each for each in after if each not in before and not _is_harmless(setting, each)]
        elif before:
            added = (
                [each for each in before if not any(_covers(other, each) for other in after)] if after else []
            )
            if added and setting.new:
                added = after
        else:
            added = after if setting.new and not any(map(_is_wide, after)) else []
        if setting.kept and not setting.new and before and not after:
            added = before
        if (
            added
            and setting.counted
            and len(after) >= len(before) - len(gone.intersection(map(_last, before)))
        ):
            added = []
        if added and setting.kept and not setting.new:
            added = [each for each in added if not _is_divided(each, after)]
            taken = _taken_over(setting, change, changes)
            added = [each for each in added if each not in taken and _last(each) not in gone]
        if added:
            message = f"{setting.says} {', '.join(dict.fromkeys(added))[:200]}"
            soft = setting.divides and is_division(change, added)
            yield Finding("warning" if soft else setting.severity, message, change.path)


def _is_divided(folder: str, after: Sequence[str]) -> bool:
    """Return True if several of its parts stand in a folder's place."""
    return sum(each.startswith(f"{folder}/") for each in after) > 1


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _taken_over(setting: Setting, change: FileChange, changes: Sequence[FileChange]) -> set[str]:
    """Return the entries that another file of the change has now, and had not before."""
    kin = [each for each in changes if each is not change and each.after and "." in _last(each.path)]
    alike = [each for each in kin if each.path.rpartition(".")[2] == change.path.rpartition(".")[2]]
    return {
        entry
        for each in alike
        for entry in set(setting.read(each.after or "")) - set(setting.read(each.before or ""))
    }


def is_division(change: FileChange, left_out: Sequence[str]) -> bool:
    """Return True if a build file is new, or leaves out what runs by itself: integration tests, generated code."""
    entries = [entry for each in left_out for entry in STRING.findall(each) or re.split(r"[,|]", each)]
    return change.before is None or all(_DIVIDED.search(entry) for entry in entries if entry.strip())


def _is_harmless(setting: Setting, entry: str) -> bool:
    return setting.says.startswith("mocha") and HARMLESS.search(entry) is not None


def _uncommented(path: str, text: str) -> str:
    if not path.endswith(".xml"):
        return _LINES.sub("", text)
    first, *rest = text.split("<!--")
    return first + "".join(part.partition("-->")[2] for part in rest)


def _is_wide(pattern: str) -> bool:
    """Return True if a pattern takes every file that is named like a test, in the usual folders."""
    rest = _PREFIX.sub("", pattern)
    return "/" not in rest and ("*" in rest or "(" in rest or not rest)


def _covers(pattern: str, other: str) -> bool:
    """Return True if a glob takes what another one takes, by one path made of the other."""
    if pattern == other or "(" in pattern:
        return True
    if "**" in other and "**" not in pattern:
        return False
    first = re.sub(r"\{([^,}]*)[^}]*\}", r"\1", other)
    sample = first.replace("**/", "a/b/").replace("**", "a/b").replace("*", "x")
    choices = [(found[0], found[1].split(",")) for found in itertools.islice(_BRACES.finditer(pattern), 3)]
    for chosen in itertools.islice(itertools.product(*(values for _, values in choices)), 50):
        glob = pattern
        for (written, _), value in zip(choices, chosen, strict=True):
            glob = glob.replace(written, value, 1)
        glob = glob.replace("**/", "*").rstrip("/")
        if fnmatchcase(sample, glob) or fnmatchcase(sample, f"{glob}/*"):
            return True
    return False


def lowered_findings(path: str, was: str, now: str) -> Iterator[Finding]:
    """Yield findings for numbers by which a run passes more easily, and a folder within the one that was looked into."""
    before, after = _least(was), _least(now)
    lower = [key for key, least in before.items() if after.get(key, 0) < least]
    if lower:
        yield Finding("warning", f"less coverage is asked for: {', '.join(lower)}", path)
    tries = [max((int(f["value"]) for f in _RETRIES.finditer(text)), default=0) for text in (was, now)]
    if was and tries[1] > max(tries[0], _USUAL_RETRIES):
        yield Finding("warning", f"a test that fails is tried again up to {tries[1]} times", path)
    folders = [found["value"].rstrip("/") for found in _TEST_FOLDER.finditer(was)]
    for found in _TEST_FOLDER.finditer(now):
        if any(found["value"].startswith(f"{folder}/") for folder in folders):
            yield Finding("warning", f"tests are looked for only in {found['value']}", path)


def _least(text: str) -> Mapping[str, float]:
    """The least coverage by what is covered, where a table says it."""
    tables = [found["table"] for found in _THRESHOLDS.finditer(text)]
    found = [each for table in tables for each in _LEAST.finditer(table)]
    return {each["key"]: float(each["value"]) for each in found}
