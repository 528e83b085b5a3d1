"""Two sides of a change compared case by case: which tests are gone, kept from running, or weaker than they were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from operator import attrgetter

from lopen.oracle.verdict import Finding, Severity
from lopen.test_integrity.suite import COMMON, Case, Skip, Suite
from lopen.test_integrity.weakening import weakening_findings

MayGo = Callable[[str], str]  # why tests of this file may be removed; empty where they may not


@dataclass(frozen=True, slots=True)
class Change:
    """A test file's two sides. `collected`: the language's usual runner finds tests at this path."""

    path: str
    before: Suite
    after: Suite
    deleted: bool
    collected: bool


def compare(changes: Sequence[Change], removed: frozenset[str], may_go: MayGo) -> list[Finding]:
    """Findings for one language's files. `removed` are names that the change took out of the tested code."""
    before, after = (
        [Located(c.path, case, c.collected) for c in changes for case in side(c).cases if not case.support]
        for side in (attrgetter("before"), attrgetter("after"))
    )
    hidden = [test for change in changes for test in _hidden(change)]
    matched = match_cases([old for old in before if old not in hidden], after)
    findings = [*_deleted(changes, (*hidden, *matched.lost), removed, may_go)]
    for old, new in matched.pairs:
        if old.collected and not new.collected:
            message = f"test {old.case.name} moved to {new.path}, where the test runner does not look"
            findings.append(Finding("error", message, new.path, new.case.line))
        findings += weakening_findings(old.case, _with_moved(old, new, matched.gained), new.path)
    findings += _skipped([(new.path, new.case, old.case) for old, new in matched.pairs])
    findings += _never_failing(matched.gained)
    for change in changes:
        findings += [*_narrowed(change), *_weaker_support(change)]
    return findings


def _hidden(c: Change) -> list[Located]:
    """Return the tests whose whole body stands in the same file under a name that the runner does not collect."""
    called = {token for case in c.after.cases for token in (case.name, *case.tokens)}
    moved = [(case, c.after.uncollected.get(case.body)) for case in c.before.cases if not case.support]
    hidden = [case for case, other in moved if other and not {other, case.name} & called]
    return [Located(c.path, case, c.collected) for case in hidden]


def _with_moved(old: Located, new: Located, gained: Sequence[Located]) -> Case:
    """A test with what moved from it into new tests: all that its subtests check, and what others repeat."""
    if len(new.case.real) >= len(old.case.real) or not gained:
        return new.case
    starts = tuple(new.case.name + mark for mark in ("/", " > "))
    kept = {check.text for check in new.case.checks}
    said = {check.text for check in old.case.checks} - kept
    moved = [
        check
        for other in gained
        for check in other.case.checks
        if check.text in said or (other.path == new.path and other.case.name.startswith(starts))
    ]
    return replace(new.case, checks=(*new.case.checks, *moved)) if moved else new.case


def _weaker_support(change: Change) -> Iterator[Finding]:
    """Helpers that are still there and check less: the tests that call them say the same as before."""
    after = {case.name: case for case in change.after.cases if case.support}
    for old in change.before.cases:
        if old.support and (old.checks or old.rows) and old.name in after:
            yield from weakening_findings(old, after[old.name], change.path)


def _deleted(
    changes: Sequence[Change], lost: Sequence[Located], removed: frozenset[str], may_go: MayGo
) -> Iterator[Finding]:
    by_path = {change.path: change for change in changes}
    groups: dict[tuple[str, frozenset[str]], list[Case]] = {}
    for located in lost:
        gone = _subjects(located.case, removed) if removed else frozenset()
        groups.setdefault((located.path, gone), []).append(located.case)
    for (path, gone), cases in groups.items():
        yield _deletion(by_path[path], cases, gone, may_go)


def _subjects(case: Case, removed: frozenset[str]) -> frozenset[str]:
    words = {word for token in case.tokens for word in token.strip('"').replace(".", "_").split("/")}
    return (case.tokens | words) & removed


def _deletion(change: Change, cases: Sequence[Case], gone: frozenset[str], may_go: MayGo) -> Finding:
    names = _listed(case.name for case in cases)
    renamed = [
        f"{case.short} is now {other}"
        for case in cases
        if (other := change.after.uncollected.get(case.body)) is not None
    ]
    where = f"{change.path} was deleted with" if change.deleted else "gone:"
    message = f"{where} {_counted(len(cases))} {names}"
    if renamed:
        message += f" ({_listed(renamed)}, which the test runner does not collect)"
    if gone:
        message += f". What it tested ({_listed(sorted(gone))}) was removed too; is that asked for?"
        return Finding("warning", message, change.path)
    if reason := may_go(change.path):
        return Finding("warning", f"{message}. {reason}", change.path)
    return Finding("error", message, change.path, None if change.deleted else cases[0].line)


def _skipped(cases: Iterable[tuple[str, Case, Case]]) -> Iterator[Finding]:
    """New skips of tests that were there before; a mark on a class or a file is one finding."""
    groups: dict[tuple[str, Skip], list[str]] = {}
    for path, new, old in cases:
        for skip in _added_skips(old, new):
            groups.setdefault((path, skip), []).append(new.name)
    for (path, skip), names in groups.items():
        severity: Severity = "error" if skip.certain else "warning"
        message = f"{skip.text} keeps {_counted(len(names))} from running: {_listed(names)}"
        yield Finding(severity, message, path, skip.line)


def _added_skips(old: Case, new: Case) -> list[Skip]:
    if any(skip.certain and skip.text for skip in old.skips) and len(new.skips) <= len(old.skips):
        return []  # it did not run before either; another reason or place takes nothing away
    known = [skip.text for skip in old.skips]
    added = []
    for skip in new.skips:
        if skip.text in known:
            known.remove(skip.text)
        else:
            added.append(skip)
    return added


def _never_failing(gained: Sequence[Located]) -> Iterator[Finding]:
    """New tests take nothing away, but one that cannot fail is no evidence, and the oracle should know."""
    for located in gained:
        case = located.case
        unconditional = [skip for skip in case.skips if skip.certain and not _may_run(skip)]
        if unconditional:
            message = f"the new test {case.name} never runs: {unconditional[0].text}"
            yield Finding("warning", message, located.path, case.line)
        elif case.checks and not case.real:
            message = f"the new test {case.name} cannot fail: what it asserts is {case.checks[0].kind}"
            yield Finding("warning", message, located.path, case.line)


def _may_run(skip: Skip) -> bool:
    """Return True if a skip asks for something first."""
    return " if " in skip.text or "importorskip" in skip.text


def _narrowed(change: Change) -> Iterator[Finding]:
    known = [mark.text for mark in change.before.narrowing]
    for mark in change.after.narrowing:
        if mark.text in known:
            known.remove(mark.text)
        else:
            severity: Severity = "error" if mark.certain else "warning"
            yield Finding(severity, f"{mark.text} keeps other tests from running", change.path, mark.line)


def _listed(names: Iterable[str], limit: int = 6) -> str:
    listed = list(names)
    shown = ", ".join(listed[:limit])
    return f"{shown} and {len(listed) - limit} more" if len(listed) > limit else shown


def _counted(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


_WORD = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z_\"']")
_CALL = re.compile(r"\b([A-Za-z_]\w*)!?\s*\(")
SIMILAR = 0.6  # of the two bodies' words in order, from which on one is taken for a rewriting of the other
_MAX_COMPARED = 2_000  # pairs compared word by word, so that a huge change stays quick


@dataclass(frozen=True, slots=True)
class Located:
    """A case and its file."""

    path: str
    case: Case
    collected: bool = True


@dataclass(frozen=True, slots=True)
class Matched:
    """`pairs` are the same test before and after, `lost` tests have no counterpart, `gained` are new."""

    pairs: tuple[tuple[Located, Located], ...]
    lost: tuple[Located, ...]
    gained: tuple[Located, ...]


class _Pairing:
    """What is still unmatched on either side, and what was matched."""

    def __init__(self, before: Sequence[Located], after: Sequence[Located]) -> None:
        self.lost = list(before)
        self.gained = list(after)
        self.pairs: list[tuple[Located, Located]] = []

    def pair_by(self, *keys: str, related: bool = False) -> None:
        """Pair what agrees in all of `keys` (and, with `related`, calls the same); each counterpart serves once."""
        waiting: dict[tuple[str, ...], list[Located]] = {}
        for located in self.gained:
            waiting.setdefault(_key(located, keys), []).append(located)
        still_lost = []
        for located in self.lost:
            candidates = waiting.get(_key(located, keys), [])
            found = next((c for c in candidates if not related or _related(located, c)), None)
            if found is None:
                still_lost.append(located)
            else:
                candidates.remove(found)
                self.pairs.append((located, found))
        self.lost = still_lost
        self.gained = [located for group in waiting.values() for located in group]

    def pair_similar(self) -> None:
        """Pair each lost test with the most similar new one, where that is similar enough."""
        if len(self.lost) * len(self.gained) > _MAX_COMPARED:
            return
        for located in list(self.lost):
            scored = [(_similarity(located, other), -i) for i, other in enumerate(self.gained)]
            score, index = max(scored, default=(0.0, 0))
            if score >= SIMILAR and _rewritten(located, self.gained[-index]):
                self.lost.remove(located)
                self.pairs.append((located, self.gained.pop(-index)))


def match_cases(before: Sequence[Located], after: Sequence[Located]) -> Matched:
    """Match the surest way first: the place, then name and body, body alone, name alone, then similarity."""
    pairing = _Pairing(before, after)
    pairing.pair_by("path", "name")
    pairing.pair_by("short", "body")
    pairing.pair_by("body")
    pairing.pair_by("name", related=True)
    pairing.pair_by("path", "short", related=True)
    pairing.pair_by("short", related=True)
    pairing.pair_similar()
    lost = [located for located in pairing.lost if not _taken_up(located, pairing)]
    return Matched(tuple(pairing.pairs), tuple(lost), tuple(pairing.gained))


def _key(located: Located, keys: Sequence[str]) -> tuple[str, ...]:
    case = located.case
    values = {"path": located.path, "name": case.name, "short": case.short, "body": case.body}
    return tuple(values[key] for key in keys)


def _similarity(one: Located, other: Located) -> float:
    a, b = _WORD.findall(one.case.body), _WORD.findall(other.case.body)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= SIMILAR else 0.0


def _rewritten(one: Located, other: Located) -> bool:
    """Return True if `other` may be `one` in other words. Two short tests that call nothing look alike by chance."""
    wanted, said = ({text for check in x.case.real for text in check.literals} for x in (one, other))
    elsewhere = bool(_called(one)) and (not wanted or bool(wanted & said))  # else one of the same function
    return _related(one, other) and (one.path == other.path or elsewhere)


def _related(one: Located, other: Located) -> bool:
    """Return True if `other` calls what `one` calls. A test of something else under the same name is another test."""
    return not (called := _called(one)) or 2 * len(called & set(_CALL.findall(other.case.body))) > len(called)


def _called(located: Located) -> set[str]:
    return set(_CALL.findall(located.case.body)) - COMMON


def _taken_up(located: Located, pairing: _Pairing) -> bool:
    """Return True if a new or grown test now says all that this one's assertions said (merged, parametrised)."""
    wanted = frozenset().union(*(check.tokens for check in located.case.real)) - COMMON
    if not any(_NAME.match(token) for token in wanted):
        return False  # numbers alone are found anywhere
    wholes = [check.tokens - COMMON for check in located.case.real]
    if all(any(whole <= new.case.tokens for new in pairing.gained) for whole in wholes):
        return True
    return any(
        wanted <= new.case.tokens and not wanted <= old.case.tokens and _is_grown(old.case, new.case)
        for old, new in pairing.pairs
    )


def _is_grown(old: Case, new: Case) -> bool:
    return len(new.real) > len(old.real) or (new.rows or 0) > (old.rows or 0)
