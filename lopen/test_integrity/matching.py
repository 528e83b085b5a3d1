"""Tests of the two sides of a change, paired: the same test before and after, be it moved, renamed or rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from lopen.test_integrity.suite import COMMON, Case, tokens

_WORD = re.compile(r"\w+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z_\"']")
_CALL = re.compile(r"\b(?!assert|expect|should|(?:raises|approx|fails?)\b)([A-Za-z_]\w*)!?\s*\(")
_FRAMEWORK = re.compile(
    r"^(?:assert\w*|expect\w*|should\w*|must_\w+|to[A-Z]\w*|to|be\w*|eq|(?:ASSERT|EXPECT|REQUIRE|CHECK|TEST|SECTION)\w*"
    r"|[tT]hat|[iI]s|Be|Equal\w*|Are\w*|Throws\w*|Assert|True|False|this|self|static|function|fn|fun|fact|theory|Fact|Test|it"
    r"|void|def|do|end|public|async|await|Task|va[rl]|let|const|auto|new|return|not|raise\w*|size|count|described_class)$",
)
SIMILAR = 0.6  # of the two bodies' words in order, from which on one is taken for a rewriting of the other
_MAX_COMPARED = 2_000  # pairs compared word by word, so that a huge change stays quick


@dataclass(frozen=True, slots=True)
class Located:
    """A case and its file. `alone`: the file is on this side of the change only."""

    path: str
    case: Case
    collected: bool = True
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Matched:
    """`pairs` are the same test before and after, `lost` tests have no counterpart, `gained` are new."""

    pairs: tuple[tuple[Located, Located], ...]
    lost: tuple[Located, ...]
    gained: tuple[Located, ...]


class _Pairing:
    """What is still unmatched on either side, and what was matched."""

    def __init__(self, before: Sequence[Located], after: Sequence[Located], removed: frozenset[str]) -> None:
        self.removed = (
            removed  # names that the code under test no longer has: a test may call it otherwise now
        )
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
            found = next((c for c in candidates if not related or self._related(located, c)), None)
            if found is None:
                still_lost.append(located)
            else:
                candidates.remove(found)
                self.pairs.append((located, found))
        self.lost = still_lost
        self.gained = [located for group in waiting.values() for located in group]

    def _related(self, one: Located, other: Located) -> bool:
        """Return True if a test of the same name may be the same test: it calls the same, or a file of its own took it."""
        rewritten = one.alone and other.alone and " " in one.case.name
        return (rewritten and len(other.case.real) >= len(one.case.real) > 0) or _related(
            one, other, self.removed
        )

    def pair_renamed(self) -> None:
        """Pair each lost test with a new one that is the same but for the new names of what was removed."""
        for located in list(self.lost) if self.removed else ():
            found = next((new for new in self.gained if _same_but_for(self.removed, located, new)), None)
            if found is not None:
                self.lost.remove(located)
                self.gained.remove(found)
                self.pairs.append((located, found))

    def pair_similar(self) -> None:
        """Pair each lost test with the most similar new one, where that is similar enough."""
        if len(self.lost) * len(self.gained) > _MAX_COMPARED:
            return
        for located in list(self.lost):
            scored = [(_similarity(located, other), -i) for i, other in enumerate(self.gained)]
            score, index = max(scored, default=(0.0, 0))
            if score >= SIMILAR and _rewritten(located, self.gained[-index], self.removed):
                self.lost.remove(located)
                self.pairs.append((located, self.gained.pop(-index)))


def match_cases(
    before: Sequence[Located], after: Sequence[Located], removed: frozenset[str] = frozenset()
) -> Matched:
    """Match the surest way first: the place, then name and body, body alone, name alone, then similarity."""
    pairing = _Pairing(before, after, removed)
    pairing.pair_by("path", "name")
    pairing.pair_by("short", "body")
    pairing.pair_by("body")
    pairing.pair_by("name", related=True)
    pairing.pair_by("path", "short", related=True)
    pairing.pair_by("short", related=True)
    pairing.pair_by("path", "plain")
    pairing.pair_renamed()
    pairing.pair_similar()
    lost = [located for located in pairing.lost if not _taken_up(located, pairing)]
    return Matched(tuple(pairing.pairs), tuple(lost), tuple(pairing.gained))


def _key(located: Located, keys: Sequence[str]) -> tuple[str, ...]:
    case = located.case
    values = {"path": located.path, "name": case.name, "short": case.short, "body": case.body}
    if "plain" in keys:
        values["plain"] = re.sub(r"^test|[\W_]", "", case.short.lower()) or case.name
    return tuple(values[key] for key in keys)


def _similarity(one: Located, other: Located) -> float:
    a, b = _WORD.findall(one.case.body), _WORD.findall(other.case.body)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= SIMILAR else 0.0


def _same_but_for(removed: frozenset[str], one: Located, other: Located) -> bool:
    """Return True if only names differ, a removed one among them, and each always has the same new name."""
    a, b = _WORD.findall(one.case.body), _WORD.findall(other.case.body)
    if len(a) != len(b):
        return False
    named = {(old, new) for old, new in zip(a, b, strict=True) if old != new}
    olds, news = {old for old, _ in named}, {new for _, new in named}
    return bool(olds & removed) and len(olds) == len(news) == len(named) and all(map(_NAME.match, news))


def _rewritten(one: Located, other: Located, removed: frozenset[str]) -> bool:
    """Return True if `other` may be `one` in other words. Two short tests that call nothing look alike by chance."""
    wanted, said = ({text for check in x.case.real for text in check.literals} for x in (one, other))
    elsewhere = bool(_called(one) - removed) and (
        not wanted or bool(wanted & said)
    )  # else one of the same function
    return _related(one, other, removed) and (one.path == other.path or elsewhere)


def _related(one: Located, other: Located, removed: frozenset[str]) -> bool:
    """Return True if `other` calls what `one` calls. A test of something else under the same name is another test."""
    return not (called := _called(one) - removed) or 2 * len(
        called & set(_CALL.findall(other.case.body))
    ) > len(called)


def calls_same(one: Located, other: Located) -> bool:
    """Return True if two tests call the same function."""
    return bool(_called(one) & _called(other))


def replaces(old: Located, new: Located) -> bool:
    """Return True if a new test of the same file calls all that a lost one called, and checks as often."""
    called = _called(old)
    enough = len(new.case.real) >= len(old.case.real) > 0 and len(new.case.body) >= len(old.case.body)
    return bool(called) and old.path == new.path and enough and 2 * len(called & _called(new)) >= len(called)


def _called(located: Located) -> set[str]:
    return set(_CALL.findall(located.case.body)) - COMMON


_BOUND = re.compile(r"\b(?:let(?: mut)?|const|var|final) (\w+)|\b(\w+)(?=(?:, \w+){0,8} :?= )")


def _taken_up(located: Located, pairing: _Pairing) -> bool:
    """Return True if a new or grown test now says all that this one's assertions said (merged, parametrised)."""
    real = located.case.real
    wholes = [check.tokens - COMMON for check in real] or [_content(located.case)]
    wanted = frozenset().union(*wholes)
    same = (
        old
        for old, new in pairing.pairs
        if old.case.body == located.case.body
        and old.path == new.path
        and (old.path == located.path or new.case.body == old.case.body)
    )
    if any(old.path == located.path or old.case.name == located.case.name for old in same):
        return True  # it was there twice
    inner = located.case.body.strip("{} ")
    if (
        not located.case.checks
        and len(inner) > 8
        and any(inner in new.case.body and inner not in old.case.body for old, new in pairing.pairs)
    ):
        return True  # all of it stands in another test now
    if not any(_NAME.match(token) for token in wanted):
        return False  # numbers alone are found anywhere
    if all(any(new.case.says(whole) for new in pairing.gained) for whole in wholes):
        return True
    if any("${" in new.case.name and _is_alike(located, old, new) for old, new in pairing.pairs):
        return True
    local = frozenset(name for found in _BOUND.findall(located.case.body) for name in found if name)
    there = frozenset().union(*(new.case.tokens for new in pairing.gained)) if local else frozenset()
    if local and _called(located) <= there:  # split into several, which name their variables as they like
        split = [(whole - local) or whole for whole in wholes]
        if all(any(new.case.says(whole) for new in pairing.gained) for whole in split):
            return True
    return any(
        new.case.says(wanted)
        and not wanted <= old.case.tokens
        and (
            _is_grown(old.case, new.case)
            or (not located.case.checks and len(new.case.body) > len(old.case.body))
        )
        for old, new in pairing.pairs
    )


def _is_alike(one: Located, old: Located, new: Located) -> bool:
    """Return True if a test differs in nothing but literals from one that is now repeated for what a run finds."""
    if one.path != old.path or len(one.case.real) > len(new.case.real) or "${" in old.case.name:
        return False
    return _shape(one.case.body) == _shape(old.case.body)


def _shape(body: str) -> str:
    return re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\b\d[\w.]*", "_", body)


def _content(case: Case) -> frozenset[str]:
    """What a test without known assertions says, less the words of test frameworks."""
    return frozenset() if case.checks else frozenset(w for w in tokens(case.body) if not _FRAMEWORK.match(w))


def _is_grown(old: Case, new: Case) -> bool:
    return len(new.real) > len(old.real) or (new.rows or 0) > (old.rows or 0)
