"""How much one JavaScript assertion pins down, and whether it can fail at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.check_pairs import SOUGHT
from lopen.test_integrity.conditions import ALWAYS, NEVER, always_equal, always_true, truth
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, ranks, words
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_RANKS = ranks(
    exact="toBe toEqual toStrictEqual toThrowErrorMatchingInlineSnapshot toHaveBeenCalledWith "
    "toHaveBeenNthCalledWith toHaveBeenLastCalledWith equal equals eql deepEqual eq "
    "strictEqual deepStrictEqual same strictSame is members calledWith calledOnceWith calledWithExactly calledOnceWithExactly "
    "toHaveBeenCalledExactlyOnceWith toHaveReturnedWith toHaveResolvedWith toHaveLastReturnedWith toBeCalledWith lastCalledWith nthCalledWith toReturnWith toBeNull toBeUndefined toBeNaN toHaveDisplayValue toHaveFormValues",
    close="toMatchInlineSnapshot toHaveText toHaveValue toBeCloseTo closeTo toMatchObject "
    "toHaveLength toHaveCount lengthOf toHaveBeenCalledTimes toBeCalledTimes throws throwsAsync rejects toThrow "
    "toHaveTextContent toHaveAccessibleName throw toThrowError toHaveBeenCalledOnce calledOnce calledTwice calledThrice callCount",
    loose="toBeVisible toBeHidden toBeDisabled toBeEnabled toBeChecked toBeTruthy toBeFalsy ok notOk true false truthy falsy exist isTrue isFalse "
    "toBeInstanceOf toHaveProperty toHaveAttribute toHaveBeenCalled toBeCalled called notEqual isOk a an fail",
    present="toBeInTheDocument toBeDefined exists isDefined isNotNull doesNotThrow notThrows notThrowsAsync pass",
)
_CHAINERS = ranks(
    exact="text html value eq equal eql members calledWith calledWithExactly keys",
    close="length lengthOf callCount calledOnce calledTwice",
    loose="visible hidden disabled enabled checked selected focused attr css prop class property called true false null empty a an",
    present="exist ok",
)
_WITH_VALUES = frozenset({"attr", "css", "prop", "property", "data"})
_ANYTHING = re.compile(
    r"^/\^?(?:\.|\\[wS])[*+]?\$?/\w*$|^expect\.anything\(\)$|^expect\.any\(Object\)$|^(?:sinon\.)?match\.any$"
)
_OF_A_TYPE = re.compile(r"^expect\.any\(\w+\)$|^(?:sinon\.)?match\.\w+$")
_IN_PART = re.compile(r"^expect\.(?:object|array|string)(?:Containing|Matching)\(")
_WITH_VALUE = frozenset({"toHaveProperty", "toHaveAttribute", "property"})
_THROWS = frozenset({"toThrow", "toThrowError", "throw", "throws", "Throw"})
_BOOLEANS = words("toBeTruthy toBeFalsy true false ok isTrue isFalse")
_CALLED = re.compile(r"\.((?:called|callCount)\w*)\b")
_COMPARED = re.compile(r"\s[<>]=?\s|\.(?:includes|test|startsWith|endsWith|match|has|every)\(")
_PART = re.compile(
    r"\.(?:sort|toSorted|toLowerCase|toUpperCase|replace|replaceAll|slice|filter|substring)\([^()]*\)$|^new Set\(|^Object\.keys\("
)
_SEEN = words("toBeInTheDocument toBeVisible toBeDefined toBeTruthy toBeAttached")
_CORE = words(
    "toBe toEqual toStrictEqual toBeTruthy toBeFalsy toBeNull toBeUndefined toBeDefined toBeNaN toContain toContainEqual toHaveLength "
    "toMatch toMatchObject toThrow toThrowError toBeGreaterThan toBeLessThan toBeCloseTo toBeInstanceOf toHaveProperty "
    "toHaveBeenCalled toHaveBeenCalledWith toHaveBeenCalledTimes toMatchSnapshot toMatchInlineSnapshot"
)
_OF_TEXT = words("toHaveText toHaveTextContent toHaveValue toHaveTitle toHaveURL toHaveAccessibleName")
_TEXT = re.compile(r"^[\"'`]")


def expected_rank(subject: str, matcher: str, arguments: Sequence[str], *, negated: bool) -> int:
    """Return how much an `expect` chain pins down."""
    rank = _RANKS.get(matcher, PARTIAL)
    if negated and matcher in _SEEN and "query" in subject:
        return LOOSE
    if negated:
        return PRESENT if matcher in {"toBeNull", "toBeUndefined"} else min(rank, LOOSE)
    if arguments == ["Error"] and matcher in {*_THROWS, "toBeInstanceOf", "instanceOf"}:
        return PRESENT
    if matcher in {"toBeNull", "toBeUndefined"} and "query" in subject:
        return LOOSE  # that there is no such element
    if matcher in _THROWS or matcher == "toBeInstanceOf":
        open_ = any(map(_ANYTHING.match, arguments))
        return EXACT if arguments and matcher in _THROWS and not open_ else CLOSE
    if matcher in _BOOLEANS or arguments in (["true"], ["false"]):
        rank = _condition_rank(subject) or rank
    if matcher in _SEEN and SOUGHT.search(subject):
        return PARTIAL
    if subject.startswith("typeof ") or re.search(r"\.some\(", subject):
        return min(rank, LOOSE)
    if subject.endswith(".length"):
        return min(rank, CLOSE)
    if matcher in _WITH_VALUE and len(arguments) > 1:
        rank = EXACT
    if matcher in _OF_TEXT and arguments:
        rank = PARTIAL if arguments[0].startswith("/") else EXACT
    if matcher == "toMatchInlineSnapshot" and not arguments:
        return PRESENT  # the run writes it
    if any(_ANYTHING.match(argument) for argument in arguments) or arguments == [subject]:
        return PRESENT
    if any(_OF_A_TYPE.match(argument) for argument in arguments):
        return min(rank, LOOSE)
    return min(rank, PARTIAL) if any(_IN_PART.match(argument) for argument in arguments) else rank


def _condition_rank(subject: str) -> int:
    """Return how much a condition pins down that is asserted to be true or false; 0 for a value."""
    if called := _CALLED.search(subject):
        return _RANKS.get(called[1], PARTIAL)
    if "||" in subject:
        return LOOSE
    return PARTIAL if _COMPARED.search(subject) else 0


def whole_rank(rank: int, subject: str) -> int:
    """Return the rank, less where only a part of a value is compared, or the value without its order or case."""
    return min(rank, CLOSE) if _PART.search(subject) else rank


def is_core_matcher(name: str) -> bool:
    """Return True if a matcher is one of jest's own, and not of its extension for the DOM."""
    return name in _CORE


def is_matcher(name: str) -> bool:
    """Return True if jest or vitest has a matcher of this name."""
    return name in _RANKS and name.startswith("to")


def asserted_rank(name: str, arguments: Sequence[str]) -> int:
    """Return how much an assertion that is a plain call pins down."""
    if name in _BOOLEANS and arguments and (rank := _condition_rank(arguments[0])):
        return rank
    if arguments[1:2] in (["true"], ["false"]):
        return min(_RANKS.get(name, PARTIAL), _condition_rank(arguments[0]) or LOOSE)
    if name in {"throws", "throwsAsync", "rejects"} and len(arguments) > 1 and not _TEXT.match(arguments[1]):
        return PARTIAL if arguments[1] == "Error" else EXACT
    if len(arguments) > 1 and arguments[0] == arguments[1]:
        return PRESENT
    return LOOSE if re.match(r"(?:is)?[nN]ot(?:[A-Z]|$)", name) else _RANKS.get(name, PARTIAL)


def _chained_rank(chainer: str, values: int) -> int:
    """Return how much Cypress's `should(chainer, …)` pins down with so many `values`."""
    *_, word = chainer.split(".")
    if chainer.startswith("not."):
        return LOOSE
    return EXACT if values > 1 and word in _WITH_VALUES else _CHAINERS.get(word, PARTIAL)


def is_vacuous(subject: str, matcher: str, arguments: Sequence[str], *, negated: bool) -> bool:
    """Return True if the expectation holds whatever the code under test does."""
    if negated:
        return matcher in {"toBe", "toEqual"} and {subject, *arguments} == {"true", "false"}
    if matcher in {"toBeTruthy", "toBeDefined", "ok", "true", "exist"}:
        return subject in {"true", "1", "{}", "[]"} or always_true(subject)
    if matcher in {"toBeFalsy", "false"}:
        return subject in {"false", "0"} or truth(subject) == NEVER
    constant = {ALWAYS: "true", NEVER: "false"}.get(truth(subject))
    return len(arguments) == 1 and (always_equal(subject, arguments[0]) or arguments[0] == constant)


def cypress_checks(source: ParsedFile, node: Node, links: Sequence[Link]) -> Iterator[Check]:
    """Yield what a Cypress command asserts; one that looks for a text fails where there is none."""
    chainers = [link.arguments for link in links if link.name in {"should", "and"} and link.arguments]
    text, line = source.of(node), source.line(node)
    subject = re.split(r"\.(?:should|and)\(", text)[0]
    for given in chainers:
        said = ", ".join(map(source.of, given))
        yield Check(
            f"{subject} should {said}", subject, _chained_rank(source.name(given[0]), len(given) - 1), line
        )
    if not chainers and links[-1].name in {"contains", "findByText"}:
        yield Check(text, text, PRESENT, line)


def response_rank(source: ParsedFile, links: Sequence[Link]) -> int:
    """Return how much supertest's `request(app).get("/").expect(200, body)` pins down."""
    given = [link.arguments for link in links if link.name == "expect" and link.arguments]
    said = [argument for arguments in given for argument in arguments]
    if any(each.type in FUNCTIONS or _ANYTHING.match(source.of(each)) for each in said):
        return PARTIAL
    return EXACT if sum(map(len, given)) > 1 else CLOSE
