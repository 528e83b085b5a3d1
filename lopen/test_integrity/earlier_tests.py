"""Changed tests in their earlier version on the new code, and in their new version on the old code: which of them accept
both, though they told the two apart (docs/reference/completion.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from lopen.test_integrity.compare import MayGo
from lopen.test_integrity.detect import LANGUAGES, can_be_read, read_sides, removed_names
from lopen.test_integrity.matching import Located, match_cases
from lopen.test_integrity.paths import looks_like_test
from lopen.test_integrity.rust.inline_tests import with_inline_changes
from lopen.test_integrity.suite import FileChange, tokens
from lopen.verification.findings import Finding

_FAILED = re.compile(
    r"^FAILED (?P<name>\S+?::[^\n]*?)(?: - (?:(?P<error>(?:Type|Attribute|Import|ModuleNotFound|Name)Error)\b)?[^\n]*)?$",
    re.MULTILINE,
)
_PARAMETERS = re.compile(r"\bdef[ \t]+(\w+)[ \t]*\(([^)]*)\)")
SHOWN = 6  # names in a finding
ALL = "the whole test command"  # where the runner names none
WEAKENED = (
    "changed tests accept the old code as well as the new: the earlier version of {names} fails on the new code, and the "
    "new version passes on the old code too: assert the new behaviour exactly, or keep the earlier test"
)
UNTOLD = (
    "the earlier version of {names} cannot be run on the new code, and the new version passes on the old code too: does "
    "it still tell the two apart?"
)
REMOVED = "It used {gone}, which the change removed: is that asked for?"
OTHERWISE = "It failed as a call does not fit, and used {names}, whose parameters the change changed: is that asked for?"
CHANGED = "tests whose expectations changed (they fail on the old code, their earlier versions on the new code): {names}"

BEYOND = (
    "tests that fail in their earlier versions on the new code, and use what the old code lacks or do not run on it, so "
    "that no run tells if they are weaker than before: {names}"
)

LEANING = (
    "tests that the change does not touch passed before it, and fail on the new code without {files}, which the change adds "
    "or changes: {names}. Make the code right for these tests as they are, or change them openly"
)
UNCLEAR = (
    "tests that the change does not touch fail on the new code without {files}, which the change adds or changes: {names}. "
    "Do these files test the code, or stand in for it?"
)


@dataclass(frozen=True, slots=True)
class EarlierTests:
    """What changed tests said in two runs. `files`: how many test files that were there before the change changed.

    `failing` tests fail in their earlier version on the new code. Of these `weakened` pass in their new version on the
    old code, `changed` fail there. `untold` pass there, and did not run in their earlier version. `unnamed`: the earlier
    versions fail, and the runner names no test. `reason`: why nothing, or not all, is known. Names are those of the runner.
    `misfits`: those of `weakened` whose earlier version failed by a name or a call that does not fit, not by an assertion.
    `beyond`: tests that fail in both runs, and whose new version uses what the old code lacks, or does not run on it.
    `leaning` are tests of files that did not change, and fail on the new code without the changed files `beside` them (test
    files, the runner's settings), but pass at the base. `unclear` ones fail there, too.
    """

    files: int
    failing: int = 0
    weakened: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    reason: str = ""
    unnamed: bool = False
    misfits: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    leaning: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the result for people: one line, then the names."""
        files = f"{self.files} changed test file{'' if self.files == 1 else 's'}"
        without = "fails on the new code without what the change adds for tests"
        if not self.files and not self.reason:
            yield f"ran the tests that did not change, without {_listed(self.beside) or 'what is new for tests'}"
        elif self.reason:
            yield f"the earlier versions of {files} did not all run on the new code: {self.reason}"
        else:
            yield f"ran the earlier versions of {files} on the new code: {self._how_they_went()}"
        yield from (f"  passes on the old code too: {name}" for name in self.weakened)
        yield from (f"  passes on the old code, did not run in its earlier version: {n}" for n in self.untold)
        yield from (f"  fails on the old code: {name}" for name in self.changed)
        yield from (f"  uses what the old code lacks, or does not run on it: {name}" for name in self.beyond)
        yield from (f"  {without}: {name}" for name in (*self.leaning, *self.unclear))

    def _how_they_went(self) -> str:
        if self.unnamed:
            on_old = "pass on the old code too" if self.weakened or self.untold else "fail on the old code"
            return f"they fail without naming a test, and the new versions {on_old}"
        if not self.failing:
            return "all pass"
        fail = f"{self.failing} test{' fails' if self.failing == 1 else 's fail'}"
        count = len(self.weakened)
        return f"{fail}, {count or 'none'} of them {'passes' if count == 1 else 'pass'} on the old code too"

    def findings(self, changes: Sequence[FileChange], may_go: MayGo) -> Iterator[Finding]:
        """Yield an error for each file with weakened tests; a warning where they `may_go`, or what they used is gone."""
        gone = _gone(changes) if self.weakened or self.untold else frozenset()
        changed = _with_other_parameters(changes) if self.misfits else frozenset()
        groups: dict[tuple[str, str], list[str]] = {}
        for path, names in _by_path(self.weakened, changes).items():
            for name in names:
                used = _used(path, name, changes)
                why = REMOVED.format(gone=", ".join(sorted(used & gone))) if used & gone else may_go(path)
                if not why and name in self.misfits and used & changed:
                    why = OTHERWISE.format(names=", ".join(sorted(used & changed)))
                groups.setdefault((path, why), []).append(name)
        for (path, why), names in groups.items():
            message = WEAKENED.format(names=_listed(names))
            if why:
                yield Finding("warning", f"{message}. {why}", path or None)
            else:
                yield Finding("error", message, path or None)
        for path, names in _by_path(self.untold, changes).items():
            used = tokens(_text(path, changes)) & gone
            message = UNTOLD.format(names=_listed(names))
            if used:
                yield Finding(
                    "info", f"{message} {REMOVED.format(gone=', '.join(sorted(used)))}", path or None
                )
            else:
                yield Finding("warning", message, path or None)
        allowed = [(name, may_go(name.partition("::")[0])) for name in self.leaning]
        for why in dict.fromkeys(why for _, why in allowed):
            listed = _listed([name for name, each in allowed if each == why])
            message = LEANING.format(files=_listed(self.beside), names=listed)
            yield Finding("warning" if why else "error", f"{message}. {why}" if why else message)
        if self.unclear:
            yield Finding("warning", UNCLEAR.format(files=_listed(self.beside), names=_listed(self.unclear)))
        if self.changed:
            yield Finding("info", CHANGED.format(names=_listed(self.changed)))
        if self.beyond:
            yield Finding("info", BEYOND.format(names=_listed(self.beyond)))
        if self.reason:
            yield Finding("info", next(self.lines()))

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values for storage; `earlier_tests_from_json` reads it back."""
        return asdict(self)


def together(one: EarlierTests, other: EarlierTests) -> EarlierTests:
    """Return what two checks of one change tell, of its test files and of its inline tests."""

    def both(name: str) -> tuple[str, ...]:
        return tuple(sorted({*getattr(one, name), *getattr(other, name)}))

    return EarlierTests(
        one.files,
        one.failing + other.failing,
        both("weakened"),
        both("untold"),
        both("changed"),
        one.reason or other.reason,
        one.unnamed or other.unnamed,
        both("misfits"),
        both("beyond"),
    )


def earlier_tests_from_json(stored: Mapping[str, Any]) -> EarlierTests:
    """Return the result that `EarlierTests.to_json` wrote."""
    weakened, untold, changed = (tuple(stored[key]) for key in ("weakened", "untold", "changed"))
    later = ("misfits", "beyond", "leaning", "unclear", "beside")  # absent in older records
    return EarlierTests(
        stored["files"],
        stored["failing"],
        weakened,
        untold,
        changed,
        stored["reason"],
        stored["unnamed"],
        *(tuple(stored.get(key, ())) for key in later),
    )


def misfits(output: str) -> dict[str, str]:
    """Return the tests that pytest's summary says failed by a name or a call that does not fit alone, with the error."""
    kinds: dict[str, set[str]] = {}
    for found in _FAILED.finditer(output):
        kinds.setdefault(found["name"].split("[")[0], set()).add(found["error"] or "")
    return {name: min(told) for name, told in kinds.items() if "" not in told}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def in_file(name: str, path: str) -> bool:
    """Return True if a runner's `name` of a test is one of the file: it may begin in a folder, or with a module."""
    place = name.partition("::")[0]
    return f"/{path}".endswith(f"/{place}") or f"/{place}".endswith(f"/{path}")


def _by_path(names: Sequence[str], changes: Sequence[FileChange]) -> dict[str, list[str]]:
    """Return the names by the changed test file that each is of, "" where that is not known."""
    files = [change for change in changes if change.before is not None and looks_like_test(change.path)]
    files += [change for change in with_inline_changes(changes) if change not in files]
    found: dict[str, list[str]] = {}
    for name in names:
        path = next((file.path for file in files if in_file(name, file.path)), "")
        if not path:  # Go names a package
            short = re.compile(rf"\b{re.escape(re.split('::|/', name)[-1])}\b")
            path = next((file.path for file in files if short.search(file.before or "")), "")
        found.setdefault(path or (files[0].path if len(files) == 1 else ""), []).append(name)
    return found


def renamed(changes: Sequence[FileChange], before: Collection[str], after: Collection[str]) -> dict[str, str]:
    """Return earlier → new name for the tests of `before` that the change renamed or moved; `after` are those there now."""
    ours = [c for c in changes if can_be_read(c.before) and can_be_read(c.after)]
    found: dict[str, str] = {}
    for language in LANGUAGES:
        read = read_sides(language, [c for c in ours if language.covers(c.path)])
        old, new = (
            [Located(c.path, case) for c in read for case in side(c).cases if not case.support]
            for side in (attrgetter("before"), attrgetter("after"))
        )
        for one, other in match_cases(old, new).pairs:
            names = [n for n in before if n not in after and _is(n, one)]
            found |= {n: m for n in names for m in after if m not in before and _is(m, other)}
    return found


def _is(name: str, located: Located) -> bool:
    return in_file(name, located.path) and name.endswith(f"::{located.case.name}")


def _text(path: str, changes: Sequence[FileChange]) -> str:
    """Return the earlier text of a file, "" for one that is not known."""
    return next((change.before or "" for change in changes if change.path == path), "")


def _gone(changes: Sequence[FileChange]) -> frozenset[str]:
    """Return what the change removed and no changed code speaks of any more."""
    code = [change.after or "" for change in changes if not looks_like_test(change.path)]
    return removed_names(changes) - {word for text in code for word in re.findall(r"\w+", text)}


def _with_other_parameters(changes: Sequence[FileChange]) -> frozenset[str]:
    """Return the Python functions of the code that have other parameters than before."""
    before, after = (
        {
            found
            for c in changes
            if not looks_like_test(c.path)
            for found in _PARAMETERS.findall(side(c) or "")
        }
        for side in (attrgetter("before"), attrgetter("after"))
    )
    return frozenset(name for name, _ in before - after) & frozenset(name for name, _ in after - before)


def _used(path: str, name: str, changes: Sequence[FileChange]) -> frozenset[str]:
    """Return what the earlier version of one test named; nothing where it is not known."""
    ours = [change for change in changes if change.path == path and can_be_read(change.before)]
    for language in LANGUAGES:
        if not ours or not language.covers(path):
            continue
        for side in read_sides(language, ours):
            for case in side.before.cases:
                if name.endswith(f"::{case.name}"):
                    return case.tokens
    return frozenset()
