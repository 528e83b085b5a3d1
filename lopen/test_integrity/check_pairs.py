"""The assertions of one test before and after: which belong together, and which of them are said elsewhere now."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lopen.test_integrity.suite import (
    CLOSE,
    COMMON,
    EXACT,
    LITERAL,
    LOOSE,
    NO_ERROR,
    PARTIAL,
    REACHED,
    Case,
    Check,
    tokens,
    words,
)

SOUGHT = re.compile(
    r"\b(?:get|find)(?:All)?By(?:(?:Text|LabelText|AltText|Title|DisplayValue|PlaceholderText|Label)\(|Role\([^,]*, \{)"
)
STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_MOCK_CHECK = re.compile(r"\.assert_(?:not_|any_|has_)?(?:call|await)\w*\(")
_BUILT_IN = words("len str repr list tuple set dict sorted sum min max type bool any all keys values Object")
_TELLING = 4  # characters of a literal with its quotes that two assertions have hardly by chance
_CALL_LIST = re.compile(r"\.(?:call_args_list|mock_calls|method_calls|await_args_list)\b")


def paired(lost: Sequence[Check], gained: Sequence[Check]) -> tuple[list[tuple[Check, Check]], list[Check]]:
    """Assertions about the same subject belong together; of the rest, the strictest are paired first."""
    pairs: list[tuple[Check, Check]] = []
    left, right = list(lost), list(gained)
    for same_rank in (True, False):
        for old in list(left):
            about = [n for n in right if n.subject == old.subject and (n.rank == old.rank or not same_rank)]
            if new := max(about, key=lambda n: n.rank, default=None):
                pairs.append((old, new))
                left.remove(old)
                right.remove(new)
    right.sort(key=lambda check: -check.rank)
    left.sort(key=lambda check: -check.rank)
    pairs += zip(left, right, strict=False)
    return pairs, left[len(right) :]


def said_elsewhere(check: Check, gained: Sequence[Check], old: Case, new: Case) -> bool:
    """Return True if what a dropped assertion said stands in the new ones, or in the rows of a table that grew."""
    again = any(check.text == other.text for other in new.real)
    looped = new.body.count("for ") > old.body.count("for ")
    again = again and (looped or new.body.count(check.text) >= old.body.count(check.text))
    again = again and _given_up(check, new) <= _given_up(check, old)
    if again or any(check.text in other.behind for other in new.real):
        return True  # a helper's call stands for several, and there it still is
    if check.subject in {NO_ERROR, REACHED} and new.body.count("await ") > old.body.count("await "):
        return True
    if any(_takes_in(other, check) for other in gained):
        return True
    if any(len(text) > _TELLING for text in check.literals) and any(
        check.literals < other.literals and other.rank == EXACT for other in gained
    ):
        return True  # several values compared at once
    said = frozenset().union(*(other.tokens for other in gained))
    if _bare(check.tokens - COMMON) <= _bare(said):
        return True
    messages = [_plain(text) for o in gained if o.subject == "an exception" for text in o.literals]
    wanted = [_plain(text) for text in check.literals]
    if wanted and all(any(text in message for message in messages) for text in wanted):
        return True
    if check.text == "err != nil" and _set_up_apart(old, new):
        return True
    kind = re.match(r"isinstance\([^()]*\.exception, ([\w.]+)\)$", check.text)
    if kind and any(o.subject == "an exception" and kind[1] in o.text for o in gained):
        return True  # what a runner caught is expected of the call itself now
    if check.subject == "err" and "err" not in new.tokens and new.real:
        ignored = (len(re.findall(r"\b_ :?= |, _ :?= ", case.body)) for case in (old, new))
        if next(ignored) >= next(ignored):
            return True  # what returned the error is not called any more
    if _MOCK_CHECK.search(check.text) and any(_CALL_LIST.search(o.text) and o.rank == EXACT for o in gained):
        return True  # all calls are compared at once
    if re.match(r"(?:panic|unreachable)!", check.text) and any(other.rank == EXACT for other in gained):
        return True  # the other arm of a match that an equality stands for now
    if ".exceptions" in check.text and any("RaisesGroup(" in other.text for other in gained):
        return True  # what the group holds is said by what is expected of it
    if any(_expects_more(other, check) for other in gained):
        return True
    if _of_local(check, old, new, said) or _inlined(check, old, new) or _unwrapped(check, new):
        return True
    same = [o for o in gained if o.subject == check.subject and check.subject != "an exception"]
    if any(o.rank == EXACT or (o.rank >= check.rank and check.literals <= o.literals) for o in same):
        return True  # it is exact now about the same, or says as much in one
    return (new.rows or 0) > (old.rows or 0) and new.says(check.literals)


_OF_THE_SYSTEM = re.compile(
    r"\berr :?= (?:os|ioutil|io|filepath|net|exec|http|url|time|tls|user)\.[A-Z]\w*\("
)
_GIVING_UP = re.compile(r"\bif ([^{}\n]{1,200}?) ?\{\s*(?:return|continue)\b")


def _given_up(check: Check, case: Case) -> int:
    """How often a test ends without a word where a check would fail it (`if err != nil { return }`)."""
    found = (each.rpartition("; ")[2].strip() for each in _GIVING_UP.findall(case.body))
    return sum(each == check.text for each in found)


def _set_up_apart(old: Case, new: Case) -> bool:
    """Return True if a test asks its system for less, and asks for each error that is left."""
    before, after = (len(_OF_THE_SYSTEM.findall(case.body)) for case in (old, new))
    dropped = sum(c.text == "err != nil" for c in old.real) - sum(c.text == "err != nil" for c in new.real)
    return 0 < dropped <= before - after


def _expects_more(whole: Check, part: Check) -> bool:
    """Return True if an assertion expects what another one did and more, of the same object."""
    wanted, said = (c.tokens - tokens(c.subject) - COMMON for c in (part, whole))
    owners = {re.match(r"\w*", c.subject)[0] for c in (part, whole)}  # type: ignore[index]  # it matches nothing too
    return (
        whole.rank == part.rank == EXACT
        and len(owners) == 1
        and "" not in owners
        and bool(wanted)
        and wanted < said
    )


def _of_local(check: Check, old: Case, new: Case, said: frozenset[str]) -> bool:
    """Return True if all is said but for a name that the test gave to something: it may do without it now."""
    rest = _bare(check.tokens - COMMON) - _bare(said)
    path = re.fullmatch(r"(?P<owner>\w+)(?:\.\w+)*\.(?P<last>\w+)", check.subject)
    if path and path["last"] in _bare(said) and path["owner"] not in new.tokens:
        rest -= tokens(check.subject) - {path["owner"]} | {"not"}
        if re.search(rf"\bas {path['owner']}\b", old.body):
            rest -= {path["owner"]}
        return all(_is_local(name, old) for name in rest)
    return bool(check.literals) and bool(rest) and all(_is_local(name, old) for name in rest)


def _is_local(name: str, case: Case) -> bool:
    """Return True if a test gives a name to something."""
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}\s*(?::=|:[^=\n]{{1,60}}=|=)(?!=)", case.body))


_FAILS = re.compile(r"(?:t|tb|b|f)\.[A-Z]\w*\(")
_EITHER = re.compile(r"(?P<subject>.+)\.is_(?P<word>ok|err|some|none)\(\)$")


def _unwrapped(check: Check, new: Case) -> bool:
    """Return True if what was asked for of a result is what a pattern or an `unwrap` asks for now."""
    found = _EITHER.match(check.subject)
    if found is None:
        return False
    pattern = re.compile(
        rf"\b{found['word'].title()}\(.*(?:= |\(){re.escape(found['subject'])}\b|\(\s*{re.escape(found['subject'])}, *{found['word'].title()}\("
    )
    taken = {"ok": "", "some": "", "err": "_err"}.get(found["word"])
    return any(pattern.search(other.text) for other in new.real) or (
        taken is not None
        and any(f"{found['subject']}.{word}{taken}(" in new.body for word in ("unwrap", "expect"))
    )


def _inlined(check: Check, old: Case, new: Case) -> bool:
    """Return True for the call of a helper that the test calls no more, and whose values it still names."""
    called = re.match(r"(?:\w+\.)*(?!\w*_(?:call|await))(\w+)\([^=]*\)$", check.text)
    if called is None or check.subject == "an exception" or _FAILS.match(check.text) or not new.real:
        return False  # neither an expected exception nor a failure is the call of a helper
    if called[1] in new.tokens or called[1] not in old.tokens:
        return False
    said = [_plain(text) for text in tokens(new.body) if LITERAL.match(text)]
    values = [_plain(text) for text in check.literals]
    return bool(values) and all(any(value in text for text in said) for value in values)


def _plain(text: str) -> str:
    """A literal without quotes, and a pattern without what makes it one."""
    return re.sub(r"\\(?=[^\w\s])", "", text.replace("\\\\", "\\").strip("\"'")).strip("^$")


def _takes_in(whole: Check, part: Check) -> bool:
    """Return True if an assertion pins down a value of which another one checked a part: `user` and `user.name`."""
    inside = (f"{whole.subject}.", f"{whole.subject}[")
    places = re.findall(r"[A-Za-z_][\w.]*\[?", part.subject)
    named = [place for place in places if place not in _BUILT_IN]
    member = part.subject.startswith(inside) or (
        bool(named) and all(p == whole.subject or p.startswith(inside) for p in named)
    )
    wanted = {word for text in part.literals - tokens(part.subject) for word in re.findall(r"\w+", text)}
    rest = part.tokens - tokens(part.subject) - COMMON
    counted = part.subject.removeprefix(whole.subject) in {".length", ".size"} and "[" in whole.text
    told = (
        counted
        or part.rank <= (PARTIAL if whole.literals - tokens(whole.subject) else LOOSE)
        or rest <= whole.tokens
        or (part.subject.rpartition(".")[2] in whole.tokens and "{" in whole.text)
        or (bool(wanted) and wanted <= set(re.findall(r"\w+", whole.text)))
    )
    return whole.rank == EXACT and bool(whole.subject) and member and told


def _bare(said: frozenset[str]) -> frozenset[str]:
    """Tokens without quotes: an attribute may be a key elsewhere."""
    return frozenset(token.strip('"') for token in said)


def words_of(check: Check) -> list[str]:
    """The words of a check, however its strings are written and put together."""
    return re.findall(r"\w+", re.sub(r"\\.|%[sdrfi]|\bf(?=[\"'])|\.format\b|\bre\.escape\b", " ", check.text))


_EITHER_WAY = re.compile(r"^\(?(\w+) != nil\)? (?:!=|==) \w")


def both_ways(old: Check, gained: Sequence[Check]) -> bool:
    """Return True if `(err != nil) != wantErr` became two assertions, one for each answer."""
    found = _EITHER_WAY.match(old.text)
    about = [other.text for other in gained if found and re.search(rf"\b{found[1]}\b", other.text)]
    good = [text for text in about if re.search(r"\bNoErr|\bNil\(|!= nil|ToNot\(|NotTo\(|ErrorIsNil", text)]
    return bool(good) and len(good) < len(about)


def against_itself(old: Check, new: Check) -> bool:
    """Return True if what is expected was written out before, and is taken from the checked value itself now."""
    root = re.match(r"(?!self\b|this\b)([a-z_]\w*)(?=[.\[]|$)", new.subject)
    if root is None or old.subject != new.subject or not old.rank == new.rank == EXACT or not old.literals:
        return False
    own = re.compile(rf"(?<![\w.]){root[1]}\b")
    subject = re.compile(rf"(?<![\w.]){re.escape(new.subject)}(?!\w)")
    was, now = (subject.sub("", check.text, count=1) for check in (old, new))
    was, now = (f"{STRING.sub('', text)} {_INSERTED.findall(text)}" for text in (was, now))
    return bool(own.search(now)) and not own.search(was)


_INSERTED = re.compile(r"(?:\bformat!\(|\bf)\"[^\"\n]{0,200}?\{(\w+)")  # by a string that is no message


_THROWN = re.compile(r"\.(?:toThrow\w*|throws?(?:Async)?|rejects)\(")


def message_apart(old: Check, new: Check, gained: Sequence[Check]) -> bool:
    """Return True if an expected exception's message is what an assertion of its own says now."""
    if (
        not (old.subject == "an exception" or _THROWN.search(old.text))
        or old.rank < EXACT
        or new.rank < LOOSE
    ):
        return False
    wanted = {text.strip("\"'") for text in old.literals - tokens(old.subject)}
    said = {text.strip("\"'") for other in gained for text in other.literals}
    return bool(wanted) and wanted <= said and (new.rank == CLOSE or new.subject != old.subject)


def is_sought(old: Check, new: Check) -> bool:
    """Return True if an element is sought by the text that was expected of it; the query fails where there is none."""
    wanted = old.literals - tokens(old.subject)
    return bool(wanted) and wanted <= new.literals and SOUGHT.search(new.subject) is not None


def without(checks: Sequence[Check], others: Sequence[Check]) -> list[Check]:
    """`checks` less those whose text stands in `others` as often."""
    known = [check.text for check in others]
    rest = []
    for check in checks:
        if check.text in known:
            known.remove(check.text)
        else:
            rest.append(check)
    return rest
