"""How much a Go assertion pins down (`t.Error` under an `if`, testify, gomega), and how `TestMain` ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import always_equal, always_true, split_arguments
from lopen.test_integrity.flow import Flow
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, Skip, ranks
from lopen.test_integrity.syntax import Link, ParsedFile, dotted

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TESTIFY = ranks(
    exact="Equal Exactly EqualError EqualValues EqualExportedValues ErrorIs JSONEq YAMLEq Nil Empty Equals Zero "
    "DeepEqual Same PanicsWithValue PanicsWithError Cmp",
    close="Len InDelta InDeltaSlice InDeltaMapValues InEpsilon ElementsMatch WithinDuration ErrorContains ErrorAs",
    partial="Contains Subset Regexp Greater GreaterOrEqual Less LessOrEqual Positive Negative HTTPStatusCode",
    loose="NoError Error True False NotEqual NotEqualValues NotContains NotEmpty NotZero NotSame NotErrorIs NotSubset "
    "IsType Implements Panics Condition Eventually Never NoErr Err",
    present="NotNil NotPanics",
)
_MATCHERS = ranks(  # of gomega, quicktest and gocheck
    exact="Equal BeEquivalentTo BeIdenticalTo MatchError BeNil BeEmpty BeZero MatchJSON MatchYAML MatchXML HaveExactElements "
    "HaveValue Equals DeepEquals CmpEquals ErrorIs ErrorMatches Matches JSONEquals CodecEquals ContentEquals IsNil "
    "PanicMatches",
    close="HaveLen ConsistOf BeNumerically BeTemporally HaveEach HasLen ErrorAs",
    partial="ContainElement ContainElements ContainSubstring HaveKey HaveKeyWithValue HavePrefix HaveSuffix HaveField "
    "MatchRegexp MatchFields SatisfyAll And Contains Satisfies Any All WithTransform Receive",
    loose="BeTrue BeFalse BeTrueBecause BeFalseBecause BeAssignableToTypeOf HaveOccurred Or SatisfyAny Panic PanicWith "
    "Succeed BeElementOf BeClosed IsTrue IsFalse Implements",
    present="IsNotNil NotNil",
)
_CONVEYED = ranks(
    exact="Equal Resemble BeNil BeEmpty BeBlank BeError PointTo EqualJSON EqualTrimSpace BeZeroValue PanicWith",
    close="HaveLength AlmostEqual HappenWithin",
    loose="BeTrue BeFalse Panic HaveSameTypeAs Implement",
)
_GOMEGA = re.compile(r"^(?:To|ToNot|NotTo|Should|ShouldNot)$")
_NEGATED = frozenset({"ToNot", "NotTo", "ShouldNot"})
_BOOLEAN = frozenset({"true", "false"})
_AN_ERROR = re.compile(r"(?:^|\.|\b)\w*[eE]rr(?:or)?\w*(?:\(\))?$")
_ANYTHING = re.compile(r"^(?:regexp\.MustCompile\()?[`\"](?:\(\?\w+\))?\^?\(?\.[*+]?\)?\$?[`\"]\)?$")
_CHECKER = re.compile(r"^(?:qt|td)\.(?P<name>[A-Z]\w*)\((?P<given>.*)\)$", re.DOTALL)
_BY_PATTERN = frozenset({"ErrorMatches", "Matches", "PanicMatches"})
_COUNTED = frozenset({"Times", "Once", "Twice", "MinTimes", "MaxTimes"})
_UNCOUNTED = frozenset({"AnyTimes", "Maybe"})


def is_assertion(name: str) -> bool:
    """Return True if an assertion library, or a checker of one, has a function of this name."""
    plain = name.removesuffix("f")
    return name in {"Assert", "Check", "That"} or name in _TESTIFY or plain in _TESTIFY


def failing(text: str, condition: str, line: int) -> Check:
    """A call that fails the test checks what the `if` around it asks."""
    asked = condition.rpartition(";")[2].strip()
    if not asked:
        return Check(text, "", PARTIAL, line)
    same = re.match(r"^(\w+) := (\w+); (\w+) != (\w+)$", condition)
    if same and {same[1], same[2]} == {same[3], same[4]}:
        return Check(condition, asked, 0, line, "vacuous")
    subject, rank = _subject_and_rank(asked)
    bounded = _split(asked)[1] in {"<", ">", "<=", ">="}
    return Check(f"not ({condition})" if bounded else condition, _bare(subject), rank, line)


def _subject_and_rank(condition: str) -> tuple[str, int]:
    parts = condition.split(" && ")
    if len(parts) > 1 and all(part.count("(") == part.count(")") for part in parts):
        subject, rank = max((_subject_and_rank(part) for part in parts), key=lambda found: found[1])
        return subject, max(rank - 1, PRESENT)  # it fails in fewer cases than each part alone
    turned = re.match(r"^not \((.*)\)$", condition, re.DOTALL)
    left, operator, right = _split(turned[1] if turned else condition)
    if turned and operator in {"==", "!="}:
        operator = "!=" if operator == "==" else "=="
    if operator in {"!=", "=="} and right == "nil":
        return left, LOOSE if operator == "!=" else PRESENT
    if operator == "!=":
        return left, CLOSE if left.startswith("len(") else EXACT
    if operator == "==":
        return left, LOOSE
    if operator:
        return left, PARTIAL
    called = re.match(r"!?\s*[\w.]*\.?(DeepEqual|Equal|Is)\(\s*([^,]+),", condition)
    return (called[2].strip(), EXACT) if called else (condition.lstrip("!"), LOOSE)


def _split(condition: str) -> tuple[str, str, str]:
    found = re.match(r"^(?P<left>.+?)\s*(?P<operator>!=|==|<=|>=|<|>)\s*(?P<right>.+)$", condition, re.DOTALL)
    return (found["left"], found["operator"], found["right"]) if found else (condition, "", "")


def asserted(source: ParsedFile, text: str, name: str, given: Sequence[Node], line: int) -> Check:
    """An assertion of testify or of a library like it; `given` are its arguments without `t`."""
    arguments = [source.of(argument) for argument in given]
    name = name if name in _TESTIFY else name.removesuffix("f")
    if name in {"Assert", "Check", "That"} and len(given) == 1 and (made := _CHECKER.match(arguments[0])):
        subject, *rest = split_arguments(made["given"]) or [""]  # a checker of go-quicktest
        idle = made["name"] in _BY_PATTERN and rest and _ANYTHING.match(rest[0])
        return Check(text, _bare(subject), PRESENT if idle else _matched(made["name"], subject), line)
    if name in {"Assert", "Check", "That"} and len(given) > 1:
        subject = arguments[0]
        if arguments[1].rpartition(".")[2] in _BY_PATTERN and arguments[2:] and _ANYTHING.match(arguments[2]):
            return Check(text, _bare(subject), PRESENT, line)
        return Check(text, _bare(subject), _matched(arguments[1], subject), line)
    equal = name in {"Equal", "Exactly", "EqualValues", "Equals"} and len(arguments) > 1
    same = equal and always_equal(arguments[0], arguments[1])
    same = same or (name == "Regexp" and bool(arguments) and bool(_ANYTHING.match(arguments[0])))
    same = same or (name == "Contains" and arguments[1:2] == ['""'])
    same = same or (
        name in {"Eventually", "Condition"} and bool(arguments) and arguments[0].endswith("{return true}")
    )
    true = name == "True" and bool(arguments) and always_true(arguments[0])
    false = name == "False" and arguments[:1] == ["false"]
    if same or true or false:
        return Check(text, "", 0, line, "vacuous")
    if equal:
        return _equal(text, arguments, line)
    subject = arguments[0] if arguments else ""
    rank = _TESTIFY.get(name, PARTIAL)
    if name in {"True", "False"} and subject:
        asked = f"not ({subject})" if name == "True" else subject
        subject, rank = _subject_and_rank(asked)
        subject = subject.removeprefix("not (").removesuffix(")") if subject.startswith("not (") else subject
    if name == "Nil" and _AN_ERROR.search(subject):
        rank = LOOSE
    return Check(text, _bare(subject), rank, line)


def _equal(text: str, arguments: Sequence[str], line: int) -> Check:
    """An equality: with itself, with a boolean or with nil it says less than with another value."""
    wanted, subject = arguments[:2]
    if subject in {*_BOOLEAN, "nil"} or _is_plain(subject) > _is_plain(wanted):
        wanted, subject = subject, wanted
    if wanted == subject:
        return Check(text, subject, PRESENT, line)
    if wanted in _BOOLEAN or (wanted == "nil" and _AN_ERROR.search(subject)):
        return Check(text, _bare(subject), LOOSE, line)
    counts = re.search(r"^len\(|\.(?:Len|Size|Count)\(\)$", subject)
    return Check(text, _bare(subject), CLOSE if counts else EXACT, line)


def _is_plain(text: str) -> bool:
    return bool(re.match(r"[\d\"`'-]", text))


def _bare(subject: str) -> str:
    """A subject without what asks for its length."""
    found = re.match(r"^len\((.*)\)$", subject, re.DOTALL)
    return found[1] if found else subject


def _matched(matcher: str, subject: str) -> int:
    """How much a matcher pins down, by its name; one in `Not(…)` says little."""
    found = re.match(r"^(?:\w+\.)?(\w+)\b(?:\((.*)\))?", matcher, re.DOTALL)
    name, given = (found[1], found[2] or "") if found else ("", "")
    if name == "Not":
        return PRESENT if re.search(r"\b(?:BeNil|BeEmpty|BeZero|IsNil)\b", given) else LOOSE
    rank = _MATCHERS.get(name, PARTIAL)
    if given in _BOOLEAN or (name in {"BeNil", "IsNil"} and _AN_ERROR.search(subject)):
        return LOOSE
    return min(rank, CLOSE) if subject.startswith("len(") else rank


def expected(source: ParsedFile, text: str, links: Sequence[Link], line: int) -> Check:
    """An expectation of gomega; one without a matcher asserts nothing."""
    given = links[0].arguments or ()
    subject = source.of(given[0]) if given else ""
    asks = next((link for link in links[1:] if _GOMEGA.match(link.name) and link.arguments), None)
    if asks is None or not asks.arguments:
        return Check(text, subject, 0, line, "vacuous")
    matcher = source.of(asks.arguments[0])
    matcher = f"Not({matcher})" if asks.name in _NEGATED else matcher
    return Check(text, _bare(subject), _matched(matcher, subject), line)


def so(text: str, given: Sequence[str], line: int) -> Check:
    """An assertion of GoConvey."""
    name = given[1].rpartition(".")[2].removeprefix("Should")
    negated = name.startswith("Not")
    rank = _CONVEYED.get(name.removeprefix("Not"), PARTIAL)
    if negated:
        rank = PRESENT if name in {"NotBeNil", "NotBeEmpty", "NotBeBlank"} else LOOSE
    if name == "BeNil" and _AN_ERROR.search(given[0]):
        rank = LOOSE
    return Check(text, _bare(given[0]), rank, line)


def mocked(text: str, links: Sequence[Link], line: int) -> Check | None:
    """What a mock of gomock or testify expects to be called, where it says how often."""
    names = [link.name for link in links]
    at = names.index("EXPECT") + 1 if "EXPECT" in names[:-1] else names.index("On") if "On" in names else -1
    if at < 1 or at >= len(links):
        return None
    subject = (
        f"the calls of {text.partition('(')[0]} {links[at].name}" if "EXPECT" in names else text.split(",")[0]
    )
    if _UNCOUNTED & set(names) or "MinTimes(0)" in text:
        return Check(text, subject, PRESENT, line)
    return Check(text, subject, EXACT, line) if _COUNTED & set(names) else None


class _Main(Flow):
    """The walk through a `TestMain` or `init`: whether it runs the tests, and how it ends."""

    def __init__(self, source: ParsedFile, root: Node, name: str, parameter: str) -> None:
        super().__init__(source, root, {})
        self.name = name
        self.parameter = parameter
        self.runs = False

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        name = dotted(list(links))
        given = [self.source.of(argument) for argument in links[-1].arguments or ()]
        if place.kind == "real" and (name == f"{self.parameter}.Run" or self.parameter in given):
            self.runs = True
        line = self.source.line(node)
        if name in {"os.Exit", "syscall.Exit"} and given == ["0"] and place.kind in {"real", "conditional"}:
            text = f"{self.name}'s {name}(0)" + (f" if {place.condition}" if place.condition else "")
            self.skips.append(Skip(text, line, not place.condition))
        if name == "flag.Set" and given and given[0] in {'"test.run"', '"test.skip"', '"test.list"'}:
            self.skips.append(Skip(f"{self.name}'s flag.Set({given[0]}, …)", line))
        return False


def main_skips(source: ParsedFile, name: str, function: Node) -> Iterator[Skip]:
    """What keeps a package's tests from running, or from failing."""
    found = re.match(r"^\((\w+) \*testing\.M\)$", source.of(function.child_by_field_name("parameters")))
    walk = _Main(source, function, name, found[1] if found else "")
    walk.block(function.child_by_field_name("body"), Place())
    if found and not walk.runs:
        yield Skip(f"a TestMain that never calls {found[1]}.Run()", source.line(function))
    yield from (skip for skip in walk.skips if not skip.text.startswith("return"))
