"""One test before and after: does it still check what it checked?"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from lopen.test_integrity.check_pairs import (
    STRING,
    against_itself,
    both_ways,
    is_sought,
    message_apart,
    paired,
    said_elsewhere,
    without,
    words_of,
)
from lopen.test_integrity.conditions import split_arguments
from lopen.test_integrity.quiet_changes import quiet_finding
from lopen.test_integrity.suite import (
    EXACT,
    LITERAL,
    ROUNDING,
    Case,
    Check,
    Kind,
    tokens,
    tolerance,
    without_tolerance,
)
from lopen.verification.findings import Finding

_REPLACED = re.compile(
    r"(?<![\w.])([a-z_]\w*)\.(\w+)\s*=\s*(?:async\s*)?(?:lambda\b|function\b|\([\w\s,:]*\)\s*=>|(?:jest|vi|mock)\.fn\(|sinon\.|\w*Mock\()"
    r"|\b(?:setattr|patch\.object|spyOn|mock\.method|sinon\.stub)\(\s*([a-z_]\w*),\s*[\"'](\w+)[\"']"
    r"(?=(?:\)\s*\.(?:mock(?:Return|Impl|Resol|Rejec)|returns|resolves)|\s*,))"
    r"|\bwhen\(\s*([a-z_]\w*)\.(\w+)\(|\.when\(\s*([a-z_]\w*)\s*\)\s*\.(\w+)\("
)
_WILDCARD = re.compile(r"\bexpect\.(?:any|anything|\w+Containing|stringMatching)\(|\bmatch\.any\b")
_FILTERED = re.compile(r"\.(?:filter|takeWhile|dropWhile|skip)\(")
_WHOLE_ENUM = re.compile(r"@EnumSource\((?![^)]*\bnames\b)[^)]*\)")
_PASSED_LINES = re.compile(r"\bnumLinesToSkip = (\d{1,6})")
_RUNS = re.compile(r"\bnumRuns: (\d{1,6})")
_USUAL_RUNS = 100  # of a property of fast-check
_PART_OF_ENUM = re.compile(r"@EnumSource\([^)]*\bnames\b[^)]*\)")
_RETRIED = re.compile(
    r"@(?:[\w.]*\.)?(?:flaky|retry|rerun\w*|RetryingTest|RepeatedIfExceptionsTest)\b|\b(?:retries|retryTimes|FlakeAttempts)\(\s*[1-9]"
    r"|\bretryAnalyzer\s*=|\bsuccessPercentage\s*=\s*\d{1,2}\b"
    r"|[{,]\s*retr(?:y|ies):\s*[1-9]"
)
_WHY: dict[Kind, str] = {
    "real": "",
    "vacuous": "what it asserts is always true",
    "swallowed": "its failures are swallowed",
    "unreachable": "its assertions are never reached",
    "unawaited": "nothing waits for its assertions",
    "conditional": "its assertions run under a condition that may never hold",
}


def weakening_findings(old: Case, new: Case, path: str) -> Iterator[Finding]:
    """At most one finding about assertions and one about the rows of a table."""
    same = (old.body, old.checks, old.rows, old.given) == (new.body, new.checks, new.rows, new.given)
    if same:
        return
    rows = _fewer_rows(old, new, path)
    if rows is not None:
        yield rows
    retried = _RETRIED.search(new.body)
    if retried and not _RETRIED.search(old.body) and not any(retried[0] in c.text for c in new.real):
        message = f"test {new.name} passes if one of several tries does: {retried.group().strip('{, ')}"
        yield Finding("warning", message, path, new.line)
    finding = (
        _turned(old, new, path)
        or _without_checks(old, new, path)
        or _stood_in(old, new, path)
        or _hollowed(old, new, path)
        or _looser(old, new, path)
        or quiet_finding(old, new, path)
    )
    if finding is not None:
        yield finding


def _turned(old: Case, new: Case, path: str) -> Finding | None:
    """A test that passes now where what it said before fails. Rewritten to expect a failure, it is another test."""
    if not new.turned or old.turned:
        return None
    kept = {check.text for check in old.real} & {check.text for check in new.real}
    said = new.tokens - tokens(new.turned)
    if not kept and not (said and said == old.tokens):
        return None
    message = f"test {new.name} passes only if it fails now: {new.turned}"
    return Finding("error", message, path, new.line)


def _fewer_rows(old: Case, new: Case, path: str) -> Finding | None:
    if (narrowed := _PART_OF_ENUM.search(new.body)) and _WHOLE_ENUM.search(old.body):
        message = f"test {new.name} runs for a part of the constants: {narrowed[0]}"
        return Finding("warning", message, path, new.line)
    before, after = (int((_PASSED_LINES.findall(case.body) or ["0"])[0]) for case in (old, new))
    if after > before:
        message = f"test {new.name} passes over {after} lines of its table where it passed over {before}"
        return Finding("warning", message, path, new.line)
    rows = 1 if new.plain and new.rows is None else new.rows
    runs = [min(map(int, _RUNS.findall(case.body)), default=_USUAL_RUNS) for case in (old, new)]
    if runs[1] < min(runs[0], _USUAL_RUNS):
        return Finding(
            "warning", f"test {new.name} runs {runs[1]} times where it ran {runs[0]}", path, new.line
        )
    filtered = _FILTERED.search(new.body) if old.rows and rows is None and "Source(" in new.body else None
    if filtered and not _FILTERED.search(old.body):
        message = f"test {new.name} leaves out rows of its table: {filtered[0].strip('.(')}"
        return Finding("warning", message, path, new.line)
    if old.rows is None or rows is None or rows >= old.rows:
        return None
    if rows == 0:
        return Finding("error", f"test {new.name} has no rows left and runs for none", path, new.line)
    listed = {text for text in tokens(f"{old.body} {old.given}") if LITERAL.match(text)}
    if len(new.real) > len(old.real) or (new.plain and new.says(listed)):
        return None  # rows written out as assertions
    message = f"test {new.name} runs for {rows} rows where it ran for {old.rows}"
    return Finding("warning", message, path, new.line)


def _without_checks(old: Case, new: Case, path: str) -> Finding | None:
    if old.real and not new.real:
        kinds = [check.kind for check in new.checks]
        why = _WHY[kinds[0]] if kinds else "it asserts nothing any more"
        return Finding("error", f"test {new.name} checks nothing: {why}", path, new.line)
    if new.empty and not old.empty:
        return Finding("error", f"test {new.name} was emptied", path, new.line)
    return None


def _stood_in(old: Case, new: Case, path: str) -> Finding | None:
    """A method that the test replaces itself before it checks what that method returns."""
    if ("mock(" in new.given or "@Mock" in new.given) and (double := _double(old, new)):
        message = f"test {new.name} checks a double of what it is about: {double}"
        return Finding("error", message, path, new.line)
    known = {found[0] for found in _REPLACED.finditer(f"{old.body} {old.given}")}
    for found in _REPLACED.finditer(f"{new.body} {new.given}"):
        method = ".".join(word for word in found.groups() if word)
        called = re.compile(rf"(?<![\w.]){re.escape(method)}\(")
        check = next((c for c in new.real if called.search(c.subject)), None)
        if check is not None and found[0] not in known:
            message = f"test {new.name} checks what it replaces itself: {method} in {_short(check)}"
            return Finding("error", message, path, check.line)
    return None


def _double(old: Case, new: Case) -> str:
    """The new double of the class that a test class is named after."""
    subject = re.escape(re.sub(r"^Test|(?:Tests?|IT|TestCase)$", "", new.name.partition("::")[0]))
    double = re.compile(rf"\bmock\({subject}\.class|@Mock(?:itoBean|Bean)?\b[^;]{{0,80}}\b{subject} \w+;")
    found = double.search(new.given)
    return found[0] if found and not double.search(old.given) else ""


def _hollowed(old: Case, new: Case, path: str) -> Finding | None:
    """Real assertions that became idle ones while others stayed."""
    if len(new.real) >= len(old.real):
        return None
    for kind, why in _WHY.items():
        idle = [check for check in new.checks if check.kind == kind]
        if kind != "real" and len(idle) > sum(check.kind == kind for check in old.checks):
            message = f"test {new.name} checks less: in part {why}"
            return Finding("error", message, path, idle[-1].line)
    return None


def _looser(old: Case, new: Case, path: str) -> Finding | None:
    lost = without(old.real, new.real)
    gained = without(new.real, old.real)
    pairs, dropped = paired(lost, gained)
    loosened = [
        (o, n)
        for o, n in pairs
        if (
            n.rank < o.rank
            and not message_apart(o, n, gained)
            and not is_sought(o, n)
            and not both_ways(o, gained)
        )
        or (o.subject == n.subject and (_opened(o, n) or _asks_for_less(o, n)))
        or (_NUMBER.sub("", o.text) == _NUMBER.sub("", n.text) and _is_wider(o, n))
        or _is_element(o, n, gained)
        or against_itself(o, n)
        or n.subject.startswith((f"{o.subject} || ", f"{o.subject} or "))
        or (
            n.text == n.subject
            and n.rank <= o.rank
            and o.subject.startswith((f"{n.subject}.", f"{n.subject}["))
        )
    ]
    if loosened:
        before, after = loosened[0]
        message = f"test {new.name} checks less strictly: {_short(before)} became {_short(after)}"
        return Finding("warning", message, path, after.line)
    wider = [
        (o, n) for o in old.real for n in new.real if o.text == n.text and (n.slack or 0) > (o.slack or 1e99)
    ]
    if wider:
        before, after = wider[0]
        message = f"test {new.name} tolerates more: {_short(before)} became {_short(after)}"
        return Finding("warning", message, path, after.line)
    dropped = [check for check in dropped if not said_elsewhere(check, gained, old, new)]
    if dropped and len(new.real) < len(old.real):
        count = len(dropped)
        message = (
            f"test {new.name} has {count} assertion{'s'[: count > 1]} less, such as {_short(dropped[0])}"
        )
        return Finding("warning", message, path, new.line)
    expected = [(o, n) for o, n in pairs if o.subject == n.subject and o.rank == n.rank == EXACT]
    changed = [(o, n) for o, n in expected if (was := _expected(o)) - (now := _expected(n)) and now - was]
    changed = [(o, n) for o, n in changed if words_of(o) != words_of(n) and not _asks_for_more(o, n)]
    if changed:
        before, after = changed[0]
        message = f"test {new.name} expects another result: {_short(before)} became {_short(after)}"
        return Finding("info", message, path, after.line)
    return None


def _opened(old: Check, new: Check) -> bool:
    """Return True if an assertion leaves open what it said before: a part of the value, or by how much it may differ."""
    if new.rank > old.rank:
        return False
    if len(_WILDCARD.findall(new.text)) > len(_WILDCARD.findall(old.text)):
        return True
    before, after = old.slack, new.slack
    return (before is not None and after is not None and after > before) or _is_wider(old, new)


_ANY_TEXT = re.compile(r"(?:\.|\\[wWsSdD])[*+]")


def _asks_for_more(old: Check, new: Check) -> bool:
    """Return True if the expected message of an exception is longer, and holds all that it did."""
    was, now = (" ".join(text[1:-1] for text in STRING.findall(each.text)) for each in (old, new))
    return old.subject == "an exception" and bool(was) and was in now


def _is_element(old: Check, new: Check, gained: Sequence[Check]) -> bool:
    """Return True if one element alone of what was compared together is compared now."""
    if old.rank != EXACT or not old.subject.startswith("(") or not old.subject.endswith(")"):
        return False
    elements = split_arguments(old.subject[1:-1])
    return new.subject in elements and not {*elements} <= {check.subject for check in gained}


def _asks_for_less(old: Check, new: Check) -> bool:
    """Return True if a text or pattern that is looked for is a part of what it was, or leaves more open."""
    if old.subject == new.subject == "compile_fail":  # one file of those that a pattern finds
        return "*" in old.text and "*" not in new.text
    if old.rank != new.rank or (old.rank == EXACT and old.subject != "an exception"):
        return False
    was, now = (STRING.findall(each.text) for each in (old, new))
    if len(was) != len(now) or STRING.sub("", old.text) != STRING.sub("", new.text):
        return False
    for before, after in ((b[1:-1], a[1:-1]) for b, a in zip(was, now, strict=True) if b != a):
        opened = len(_ANY_TEXT.findall(after)) > len(_ANY_TEXT.findall(before))
        return (after in before and len(after) < len(before)) or (opened and len(after) <= len(before))
    return False


_BOUND = re.compile(
    r"(?:(?P<upper><=?|(?:[Ll]ess|[Bb]elow|[Mm]ost|[Nn]um_?[Qq]ueries)\w*\()|(?:>=?|(?:[Gg]reater|[Aa]bove|[Ll]east)\w*\())"
    r"(?:[^<>]{0,200},)?\s*(?P<value>-?\d[\d_.]*(?:e-?\d+)?)\)*$"
)
_NUMBER = re.compile(r"(?<![\w.])-?\d[\w.]*(?:-\d+)?")
_MESSAGE = re.compile(r", ?[fr]?\"[^\"]*\"[^<>\"]*\)$")  # what an assertion says where it fails


def _is_wider(old: Check, new: Check) -> bool:
    """Return True if the same comparison has a wider tolerance or a further bound than before."""
    was, now = tolerance(old.text), tolerance(new.text)
    if now is not None and now > (ROUNDING if was is None else was):
        return True
    one, other = (_BOUND.search(_MESSAGE.sub(")", text)) for text in (old.text, new.text))
    if not one or not other or bool(one["upper"]) is not bool(other["upper"]):
        return False
    up = bool(one["upper"]) is not new.text.startswith("not (")
    with contextlib.suppress(ValueError):
        return (float(other["value"]) - float(one["value"])) * (1 if up else -1) > 0
    return False


def _expected(check: Check) -> frozenset[str]:
    return frozenset(t for t in tokens(without_tolerance(check.text)) if LITERAL.match(t))


def _short(check: Check) -> str:
    text = " ".join(check.text.split())
    return f"`{text[:77]}…`" if len(text) > 80 else f"`{text}`"
