"""Ways in which a test says less although its assertions stand: what is compared, ignored or called has changed."""

from __future__ import annotations

import re
from itertools import islice

from lopen.test_integrity.check_pairs import without
from lopen.test_integrity.suite import EXACT, Case
from lopen.verification.findings import Finding

# what lets any argument, any call or a part of a value pass; and the calls that say what a mock expects
_LENIENT = re.compile(
    r"\bmock\.Anything\w*|\bgomock\.Any\(|\bcmpopts\.Ignore\w+|\.(?:AnyTimes|Maybe)\(|\bpredicate::always\(|\bMinTimes\(0\)"
    r"|\"\.[\w.*\[\]]{1,80}\" => (?=\"\[|insta::)|\b(?:rapid\.Just|st\.just|fc\.constant|Arbitraries\.just)\("
)
_STUB = re.compile(
    r"\.On\(|\.EXPECT\(|\bexpect_\w+\(|\bcmp\.(?:Diff|Equal)\(|_snapshot!|\b(?:rapid|fc|st|Arbitraries)\.[A-Za-z]"
)
_IGNORED = re.compile(
    r"\blet _\w* = (?P<call>[^;{}]{1,300}?)(?:\.await)?(?:\.ok\(\))?;|\.unwrap_or(?:_default|_else)?\(|\.ok\(\);"
)
_HAD_TO_BE = re.compile(r"\s*(?:\.await)?\s*(?:\.(?:unwrap|expect)\(|\?)")
_SORTS = re.compile(
    r"\b(?:sort\.(?:Strings|Ints|Slice\w*|Sort|Float64s)|slices\.Sort\w*)\((\w+)|\b(\w+)\.sort(?:_unstable)?(?:_by\w*)?\("
)
_RETURNED = re.compile(r"^[ \t]*return \w", re.MULTILINE)
_STATUS = re.compile(r"\b(?:status(?:_?[cC]ode)?|exit_?[cC]ode|returncode|ok)$")
_TELLING = 4  # characters of a text that says something
_MOST = 30  # of one test that are looked at, so that a huge one stays quick
_REPEATED = re.compile(r"\b(?:for|while|each|forEach|loop|map|iter|range|Range|param\w*|given|where)\b")
_BOUND_TO_CALL = r"\b{}\b[^=\n;]{{0,60}}= (?:&|await )?[\w.:<>]+!?\("
_BOUND_TO_LITERAL = r"\b{}\b[^=\n;]{{0,60}}= &?(?:[\d\"'`\[{{]|(?:\[\]|map\[\w+\])?[\w.:]* ?\{{|vec!)"


def quiet_finding(old: Case, new: Case, path: str) -> Finding | None:
    """The first of these ways that the test before and after shows, as a warning."""
    return (
        _lenient(old, new, path)
        or _ignored(old, new, path)
        or _sorted(old, new, path)
        or _deferred(old, new, path)
        or _in_part(old, new, path)
        or _status_alone(old, new, path)
        or _without_rows(old, new, path)
        or _made_up(old, new, path)
    )


def _lenient(old: Case, new: Case, path: str) -> Finding | None:
    """A comparison or a mock that ignores more than it did, with no more of them than there were."""
    found = _LENIENT.findall(new.body)
    if not found or len(_STUB.findall(new.body)) > len(_STUB.findall(old.body)):
        return None
    known = _LENIENT.findall(old.body)
    for word in found:
        if word in known:
            known.remove(word)
        elif "=>" not in word or len(found) > len(_LENIENT.findall(old.body)):  # a field may have a new name
            return Finding("warning", f"test {new.name} accepts more: {word.strip('.(=> ')}", path, new.line)
    return None


def _ignored(old: Case, new: Case, path: str) -> Finding | None:
    """A result of Rust that had to be good, and that is passed over or replaced by a default now."""
    for found in islice(_IGNORED.finditer(new.body), _MOST):
        before = new.body[max(0, found.start() - 200) : found.start()]
        call = (found["call"] or re.split(r"[;={]\s*", before)[-1]).strip()
        known = old.body.find(call) if len(call) > 3 else -1
        if known >= 0 and _HAD_TO_BE.match(old.body, known + len(call)) and old.body.count(found[0]) == 0:
            message = f"test {new.name} no longer asks for the result of `{call[:80]}`"
            return Finding("warning", message, path, new.line)
    return None


def _sorted(old: Case, new: Case, path: str) -> Finding | None:
    """A value that the test itself brings into order before it checks it."""
    known = {name for found in _SORTS.findall(old.body) for name in found}
    for found in islice(_SORTS.finditer(new.body), _MOST):
        name = found[1] or found[2]
        if name not in known and all(
            any(re.match(rf"&?{name}\b", check.subject) for check in case.real) for case in (old, new)
        ):
            message = f"test {new.name} sorts what it checks, so that the order counts no more: {name}"
            return Finding("warning", message, path, new.line)
    return None


def _in_part(old: Case, new: Case, path: str) -> Finding | None:
    """A value that was compared as a whole, and of which parts are compared now that say less."""
    gained = without(new.real, old.real)
    said = frozenset().union(*(each.literals for each in gained))
    for check in without(old.real, new.real)[:_MOST]:
        parts = [each for each in gained if each.subject.startswith(f"{check.subject}.")]
        if check.rank == EXACT and check.subject and parts and (rest := _unsaid(check.literals, said)):
            message = f"test {new.name} compares parts of {check.subject} alone: nothing says {', '.join(sorted(rest))}"
            return Finding("warning", message[:300], path, parts[0].line)
    return None


def _deferred(old: Case, new: Case, path: str) -> Finding | None:
    """A deferred of Twisted that the test handed to the runner, and hands over no more."""
    deferred = ".addCallback" in new.body and "await " not in new.body
    if deferred and _RETURNED.search(old.body) and not _RETURNED.search(new.body):
        message = f"test {new.name} checks nothing: nothing waits for its deferred"
        return Finding("warning", message, path, new.line)
    return None


def _status_alone(old: Case, new: Case, path: str) -> Finding | None:
    """A text that was looked for in an answer, and in whose place a code alone is checked now."""
    gained = [each for each in without(new.real, old.real) if _STATUS.search(each.subject)]
    for check in without(old.real, new.real)[:_MOST] if gained else ():
        texts = {text for text in check.literals if len(text) > _TELLING and not text[0].isdigit()}
        about = re.match(r"\w+", check.subject)
        same = about is not None and re.match(rf"{about[0]}\b", gained[0].subject)
        if (
            same
            and not _STATUS.search(check.subject)
            and texts
            and not any(new.says([text]) for text in texts)
        ):
            message = (
                f"test {new.name} checks {gained[0].subject} alone: nothing says {', '.join(sorted(texts))}"
            )
            return Finding("warning", message[:300], path, gained[0].line)
    return None


def _unsaid(literals: frozenset[str], said: frozenset[str]) -> set[str]:
    """Literals that are not said, be it without the end of the line."""
    known = {text.strip("\"'") for text in said}
    return {
        text for text in literals if text.strip("\"'").replace("\\n", "") not in known and text not in said
    }


def _without_rows(old: Case, new: Case, path: str) -> Finding | None:
    """A table that is written out as fewer assertions than it had rows."""
    if not old.rows or old.rows < 2 or new.rows is not None or len(new.real) >= old.rows:
        return None
    if "case" not in old.body or "case" in new.body or _REPEATED.search(new.body):
        return None
    message = f"test {new.name} has lost its table of {old.rows} rows"
    return Finding("warning", message, path, new.line)


def _made_up(old: Case, new: Case, path: str) -> Finding | None:
    """A checked value that a call returned, and that the test writes out itself now."""
    known = {check.text for check in old.real}
    for check in [check for check in new.real if check.text in known][:_MOST]:
        name = re.match(r"\w*", check.subject)[0]  # type: ignore[index]  # it matches nothing too
        word = rf"\b{name}\b"
        mentioned = sum(len(re.findall(word, each.text)) for each in new.real) + 1
        if (
            len(name) > 0
            and "(" not in check.subject  # else a method of the code tells the value
            and re.search(_BOUND_TO_CALL.format(name), old.body)
            and not re.search(_BOUND_TO_CALL.format(name), new.body)
            and re.search(_BOUND_TO_LITERAL.format(name), new.body)
            and len(re.findall(word, new.body)) == mentioned
        ):
            message = f"test {new.name} writes {name} out itself, which a call returned, and then checks it"
            return Finding("warning", message, path, check.line)
    return None
