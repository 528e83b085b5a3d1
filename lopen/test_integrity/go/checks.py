"""How much a Go assertion pins down (`t.Error` under an `if`, testify, gomega), and how `TestMain` ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import always_equal, always_true
from lopen.test_integrity.flow import Flow
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, Skip, ranks
from lopen.test_integrity.syntax import Link, ParsedFile, dotted

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TESTIFY = ranks(
    exact="Equal Equalf Exactly EqualError EqualValues ErrorIs JSONEq Nil Empty Equals Zero DeepEqual",
    close="Len InDelta InEpsilon ElementsMatch WithinDuration ErrorContains ErrorAs",
    loose="NoError Error True False NotEqual NotContains NotEmpty NotZero IsType Panics",
    present="NotNil NotPanics",
)
_GOMEGA = re.compile(r"^(?:To|ToNot|NotTo|Should|ShouldNot)$")


def failing(text: str, condition: str, line: int) -> Check:
    """A call that fails the test checks what the `if` around it asks."""
    asked = condition.rpartition(";")[2].strip()
    if not asked:
        return Check(text, "", PARTIAL, line)
    same = re.match(r"^(\w+) := (\w+); (\w+) != (\w+)$", condition)
    if same and {same[1], same[2]} == {same[3], same[4]}:
        return Check(condition, asked, 0, line, "vacuous")
    subject, rank = _subject_and_rank(asked)
    return Check(condition, subject, rank, line)


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
    equal = name in {"Equal", "Equalf", "Exactly", "EqualValues"} and len(arguments) > 1
    same = equal and always_equal(arguments[0], arguments[1])
    true = name in {"True", "Truef"} and bool(arguments) and always_true(arguments[0])
    false = name == "False" and arguments[:1] == ["false"]
    if same or true or false:
        return Check(text, "", 0, line, "vacuous")
    subject = arguments[1] if equal else arguments[0] if arguments else ""
    rank = PRESENT if equal and arguments[0] == arguments[1] else _TESTIFY.get(name, PARTIAL)
    if equal and re.search(r"^len\(|\.(?:Len|Size|Count)\(\)$", subject):
        rank = min(rank, CLOSE)
    return Check(text, subject, rank, line)


def expected(source: ParsedFile, text: str, links: Sequence[Link], line: int) -> Check:
    """An expectation of gomega; one without a matcher asserts nothing."""
    given = links[0].arguments or ()
    subject = source.of(given[0]) if given else ""
    if not any(_GOMEGA.match(link.name) and link.arguments for link in links[1:]):
        return Check(text, subject, 0, line, "vacuous")
    return Check(text, subject, PARTIAL, line)


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
