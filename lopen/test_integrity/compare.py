"""Two sides of a change compared case by case: which tests are gone, kept from running, or weaker than they were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from lopen.test_integrity.matching import Located, calls_same, match_cases, replaces
from lopen.test_integrity.suite import EMPTY, HOOK, Case, Check, Skip, Suite, tokens
from lopen.test_integrity.weakening import weakening_findings
from lopen.verification.findings import Finding, Severity

MayGo = Callable[[str], str]  # why tests of this file may be removed; empty where they may not


@dataclass(frozen=True, slots=True)
class Change:
    """A test file's two sides. `collected`: the language's usual runner finds tests at this path."""

    path: str
    before: Suite
    after: Suite
    deleted: bool
    collected: bool


_before, _after = attrgetter("before"), attrgetter("after")


def compare(
    changes: Sequence[Change], removed: frozenset[str], may_go: MayGo, others: Sequence[Case] = ()
) -> list[Finding]:
    """Findings for one language's files. `removed` are names that the change took out of the tested code.

    `others` are the tests that it adds in another language: one of the same name may be the same test.
    """
    before, after = (
        [
            Located(c.path, case, c.collected, alone=other(c) is EMPTY)
            for c in changes
            for case in side(c).cases
            if not case.support
        ]
        for side, other in ((_before, _after), (_after, _before))
    )
    hidden = [test for change in changes for test in _hidden(change)]
    matched = match_cases([old for old in before if old not in hidden], after, removed)
    inner = {(old.path, old.case.name.rpartition("/")[0]) for old in before}
    lost = [old for old in matched.lost if old.case.checks or (old.path, old.case.name) not in inner]
    lost = [old for old in lost if not any(_is_ported(old.case, other) for other in others)]
    instead = [old for old in lost if any(replaces(old, new) for new in matched.gained)]
    lost = [old for old in lost if old not in instead]
    findings = [*_deleted(changes, (*hidden, *lost), removed, may_go)]
    findings += _deleted(changes, instead, removed, lambda path: may_go(path) or _REPLACED)
    for old, new in matched.pairs:
        if old.collected and not new.collected:
            message = f"test {old.case.name} moved to {new.path}, where the test runner does not look"
            findings.append(Finding("error", message, new.path, new.case.line))
        findings += weakening_findings(old.case, _with_moved(old, new, matched.gained), new.path)
    findings += _skipped([(new.path, new.case, old.case) for old, new in matched.pairs])
    findings += _never_failing(matched.gained)
    for change in changes:
        findings += [*_narrowed(change), *_weaker_support(change)]
    findings += _hooks_gone(changes)
    return findings


_REPLACED = "A new test of the file calls what it called; does it check as much?"


def _is_ported(old: Case, other: Case) -> bool:
    """Return True if a test in another language has the name and the literals of a lost one."""
    literals = {text for check in old.real for text in check.literals}
    return old.short == other.short and other.says(literals)


def _hidden(c: Change) -> list[Located]:
    """Return the tests whose whole body stands in the same file under a name that the runner does not collect."""
    called = {token for case in c.after.cases for token in (case.name, *case.tokens)}
    moved = [(case, c.after.uncollected.get(case.body)) for case in c.before.cases if not case.support]
    hidden = [case for case, other in moved if other and not {other, case.name} & called]
    return [Located(c.path, case, c.collected) for case in hidden]


def _with_moved(old: Located, new: Located, gained: Sequence[Located]) -> Case:
    """A test with what moved from it into new tests: all that its subtests check, and what others repeat."""
    if new.case.plain and any(other.path == new.path and calls_same(new, other) for other in gained):
        new = replace(new, case=replace(new.case, plain=False))  # rows written out as tests
    if len(new.case.real) >= len(old.case.real) or not gained:
        return new.case
    starts = tuple(new.case.name + mark for mark in ("/", " > "))
    kept = {check.text for check in new.case.checks}
    lost = [check for check in old.case.checks if check.text not in kept]
    said = {check.text for check in lost}
    moved = [
        check
        for other in gained
        for check in other.case.checks
        if check.text in said
        or (other.path == new.path and (other.case.name.startswith(starts) or _says_one_of(check, lost)))
    ]
    return replace(new.case, checks=(*new.case.checks, *moved)) if moved else new.case


def _says_one_of(check: Check, lost: Sequence[Check]) -> bool:
    """Return True if a check of another test expects the same text or large number as strictly, of something else."""
    telling = {text for text in check.literals if len(text) > _TELLING}
    return any(o.rank == check.rank and o.literals & telling and o.literals <= check.literals for o in lost)


_TELLING = 4  # characters of a literal that many assertions may have by chance


def _weaker_support(change: Change) -> Iterator[Finding]:
    """Helpers that are still there and check less: the tests that call them say the same as before."""
    after = {case.name: case for case in change.after.cases if case.support}
    for old in change.before.cases:
        if old.support and (old.checks or old.rows) and old.name in after:
            yield from weakening_findings(old, after[old.name], change.path)


def _hooks_gone(changes: Sequence[Change]) -> Iterator[Finding]:
    """Hooks that checked something behind each test, and that no file of the change has any more."""
    kept = {case.name for change in changes for case in change.after.cases if case.support}
    for change in changes:
        for old in change.before.cases:
            gone = old.name.startswith(HOOK) and old.name not in kept and not change.deleted
            gone = gone and not _asserted_elsewhere(old, change)
            if (gone and any(case.real for case in change.after.cases)) or (gone and not change.collected):
                message = (
                    f"{old.name} is gone, and with it what it checked, such as {old.checks[0].text[:80]}"
                )
                yield Finding("warning", message, change.path)


def _asserted_elsewhere(hook: Case, change: Change) -> bool:
    """Return True if tests or helpers of the file make each call now by which a hook checked something."""
    wanted = {name for check in hook.checks for name in _METHOD.findall(check.text)[:1]}
    said = frozenset().union(*(tokens(check.text) for case in change.after.cases for check in case.real))
    return bool(wanted) and wanted <= said


_METHOD = re.compile(r"\.(\w+)\(")


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
    """New tests take nothing away, but one that cannot fail proves nothing, and the oracle should know."""
    for located in gained:
        case = located.case
        unconditional = [
            skip
            for skip in case.skips
            if skip.certain and not _may_run(skip) and not skip.text.endswith(" on a row")
        ]
        if unconditional and case.body:  # a title without a body claims nothing
            message = f"the new test {case.name} never runs: {unconditional[0].text}"
            yield Finding("warning", message, located.path, case.line)
        elif case.checks and not case.real and not all(_PASSES.match(check.text) for check in case.checks):
            message = f"the new test {case.name} cannot fail: what it asserts is {case.checks[0].kind}"
            yield Finding("warning", message, located.path, case.line)


_PASSES = re.compile(
    r"\w+\.pass\("
)  # that nothing is thrown, in the words of a runner that asks for an assertion
_ASKING = re.compile(
    r" if |^its condition|importorskip|^@(?:En|Dis)abled(?:On|If|For)|^@requires|Requires[A-Z]|^the build constraint (?!.*\b(?:ignore|never|none|disabled)\b)|^#\[cfg\(feature|^#\[ignore = |^```"
)


def _may_run(skip: Skip) -> bool:
    """Return True if a skip asks for something first, or sets the test apart by a tag, a feature or a reason."""
    return _ASKING.search(skip.text) is not None


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
