"""The walk through a Go test, a subtest or a helper: assertions, skips, subtests, calls of helpers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lopen.test_integrity.bindings import ends_after_a_round
from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, NEVER, truth
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.go.checks import asserted, expected, failing, is_assertion, mocked, so
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import EXACT, PRESENT, Check, Skip, tokens
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, dotted

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_FAILING = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})
_SKIPS = frozenset({"Skip", "Skipf", "SkipNow"})
_USUAL_NAMES = frozenset({"must", "qt", "td", "is", "c", "s", "suite", "a", "r", "ts"})
_EXPECTING = frozenset({"Expect", "Ω", "Eventually", "Consistently"})
_WAITS = re.compile(rb"<-|\bselect\b|Wait|Sleep\(|Eventually|\.Join|Close\(|Stop\(|Shutdown\(")
_NAMED_CHECK = re.compile(r"assert|require|check|expect|equal|verify|compare", re.IGNORECASE)
_NO_HELPERS = frozenset({"Run", "append", "len", "panic", "print", "New", "require", "assert", "func"})
TABLES = """
(short_var_declaration left: (expression_list . (identifier) @name .) right: (expression_list . (composite_literal) @value .))
(var_spec name: (identifier) @name value: (expression_list . (composite_literal) @value .))
"""
_WRITTEN = re.compile(r"[\d\"'`&\[-]|(?:nil|true|false)$")  # a value that no call returned
_GIVEN = re.compile(r"\b(\w+) :?= (\w+)\s")
_COMPARED = re.compile(r"^!(?:\w+\.)?(?:DeepEqual|Equal)\((\w+), ?(\w+)\)$")
_CONVEY = frozenset({"Convey", "SkipConvey", "FocusConvey"})
_RESULTS = """
(short_var_declaration left: (expression_list . (identifier) @name) right: (expression_list . (call_expression) @value .))
"""


@dataclass(frozen=True, slots=True)
class GoNames:
    """What a file's names stand for: testing's `t`, assertion libraries, tables."""

    testers: frozenset[str]
    asserters: frozenset[str]
    tables: Mapping[str, Node]
    numbers: Mapping[str, str]  # the file's constants
    ginkgo: bool


class GoBody(Flow):
    """The walk through a test, a subtest or a helper."""

    guards = False

    def __init__(
        self,
        source: ParsedFile,
        root: Node,
        helpers: Helpers,
        names: GoNames,
        name: str,
        skipping: Mapping[str, Sequence[Skip]] | None = None,
    ) -> None:
        super().__init__(source, root, helpers)
        self.names = names
        self.name = name
        self.skipping = skipping or {}
        self._waits: int | None = None  # the end of the last thing that waits
        self._given: set[tuple[str, str]] = set()  # names, and those that they were given
        self._bound: dict[str, str] | None = None  # names, and the calls whose results they are
        self.outer: list[Skip] = []
        self.subtests: list[tuple[GoBody, Node]] = []
        self.convey = False  # it has only the parts of GoConvey in it

    def tables(self) -> Mapping[str, Node]:
        """The tables of the test itself come before those of other functions with the same name."""
        own = {
            self.source.name(found["name"]): found["value"]
            for found in self.source.matches(TABLES, self.root)
        }
        return {**self.names.tables, **own}

    def condition(self, branch: Node) -> str:
        initializer = self.source.of(branch.child_by_field_name("initializer"))
        condition = super().condition(branch)
        return f"{initializer}; {condition}" if initializer else condition

    def _loop(self, node: Node, place: Place) -> None:
        """A loop that ends behind its first round."""
        if ends_after_a_round(node):
            self.skips.append(Skip("a loop that ends behind its first round", self.source.line(node), False))
        super()._loop(node, place)

    def other(self, node: Node, place: Place) -> bool:
        """A case of a switch is a branch; a deferred function may end a panic without failing the test."""
        if node.type == "defer_statement":
            before = len(self.checks)
            self.block(node, place)
            code = self.source.code[node.start_byte : node.end_byte]
            if b"recover()" in code and len(self.checks) == before and place.kind == "real":
                self.skips.append(
                    Skip("a deferred recover() that fails nothing", self.source.line(node), False)
                )
            return True
        if node.type != "expression_case":
            return False
        value = self.source.of(node.child_by_field_name("value"))
        switched = node.parent.child_by_field_name("value") if node.parent is not None else None
        condition = f"{self.source.of(switched)} == {value}" if switched is not None else value
        self.block(node, place.under(condition, truth(condition)))
        return True

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        last, given = links[-1], links[-1].arguments
        if given is None:
            return False
        tester = len(links) > 1 and (links[-2].name in self.names.testers or links[-2].name == "T")
        if tester and last.name == "Run" and self._subtest(given, place):
            return True
        if last.name in _CONVEY and last.arguments and self._conveyed(last.name, given, place):
            return True
        line, text = self.source.line(node), self.source.of(node)
        alone = self.names.ginkgo and (links[0].name == "ginkgo" or len(links) == 1)
        if (tester or alone) and last.name in _SKIPS:
            self.skip(f"{dotted(list(links))}", node, place)
        elif (tester and last.name in _FAILING) or (last.name == "panic" and place.condition):
            equal = _COMPARED.match(place.condition.rpartition(";")[2].strip())
            compared = f"{equal[1]} != {equal[2]}" if equal else place.condition
            self.check(self._compared(failing(text, place.condition, line), compared), place)
        elif last.name in {"So", "SoMsg"} and len(given) > 1:
            given = given[1:] if last.name == "SoMsg" else given
            self.check(so(text, [self.source.of(each) for each in given], line), place)
        elif self._asserts(links):
            given = given[1:] if given and self._is_tester(given[0]) else given
            check = asserted(self.source, text, last.name, given, line)
            texts = [self.source.of(each) for each in given[:2]] if "Equal" in last.name else []
            self.check(self._compared(check, " != ".join(texts)), place)
        elif (
            at := next((i for i, each in enumerate(links[:2]) if each.name in _EXPECTING), None)
        ) is not None:
            if links[at].arguments:
                self.check(expected(self.source, text, links[at:], line), place)
        elif (calls := mocked(text, links, line)) is not None:
            self.check(calls, place)
        else:
            self._helped(links, text, line, place)
        return False

    def placed(self, check: Check, place: Place) -> Check:
        """A check whose text says the numbers that the file's constants stand for."""
        if self.names.numbers and (used := tokens(check.text) & self.names.numbers.keys()):
            named = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(used))})\b")
            check = replace(check, text=named.sub(lambda found: self.names.numbers[found[0]], check.text))
        return super().placed(check, place)

    def _compared(self, check: Check, comparison: str) -> Check:
        """A comparison of two names that are bound to the same call says nothing of its result."""
        left, _, right = comparison.rpartition(";")[2].strip().partition(" != ")
        if (
            not right
            or check.rank <= PRESENT
            or left == right
            or _WRITTEN.match(left)
            or _WRITTEN.match(right)
        ):
            return check
        if self._bound is None:
            code = self.source.code[self.root.start_byte : self.root.end_byte].decode("utf-8", "replace")
            self._given = set(_GIVEN.findall(code))
            found = self.source.matches(_RESULTS, self.root)
            self._bound = {self.source.name(each["name"]): self.source.of(each["value"]) for each in found}
        same = bool({(left, right), (right, left)} & self._given) or self._bound.get(
            left, left
        ) == self._bound.get(right, right)
        return replace(check, text=f"{check.text} of one value", rank=PRESENT) if same else check

    def callback(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        """`go func() {…}()`: its failures count only if something waits for it."""
        parent = node.parent.parent if node.parent is not None else None
        if index or parent is None or parent.type != "go_statement":
            return place
        if self._waits is None:
            found = _WAITS.finditer(self.source.code, self.root.start_byte, self.root.end_byte)
            self._waits = max((each.end() for each in found), default=0)
        return place if self._waits > node.end_byte else place.worse("unawaited")

    def _asserts(self, links: Sequence[Link]) -> bool:
        """Return True for a method of an assertion library, or of what is usually called like one."""
        if len(links) < 2 or not links[-1].name[:1].isupper() or not links[-1].arguments:
            return False
        owner, name = links[-2].name, links[-1].name
        return (owner in self.names.asserters and name != "New") or (
            owner in _USUAL_NAMES and is_assertion(name)
        )

    def _helped(self, links: Sequence[Link], text: str, line: int, place: Place) -> None:
        """The call of a helper, which takes `t`."""
        name, given = links[-1].name, links[-1].arguments or ()
        if not given or not self._is_tester(given[0]) or name in _NO_HELPERS:
            return
        for skip in self.skipping.get(name, ()):
            self.skip(f"{name}'s {skip.text}", links[-1].node, place)
        check = Check(text, self.source.of(given[1]) if len(given) > 1 else text, EXACT, line)
        if name.startswith("New") and name != "NewController" and "mock" in links[0].name.lower():
            self.check(check, place)  # such a mock asserts at the end what it expects
        elif name in self.helpers:
            self.helper(name, check, place)
        elif len(links) == 1 or _NAMED_CHECK.search(name):
            self.check(check, place)

    def _is_tester(self, argument: Node) -> bool:
        text = self.source.of(argument)
        return text in self.names.testers or text.endswith(".T()")

    def _conveyed(self, name: str, given: Sequence[Node], place: Place) -> bool:
        """A part of GoConvey is a test of its own."""
        before = len(self.subtests)
        if not self._subtest([given[0], given[-1]], place):
            return False
        for body, node in self.subtests[before:]:
            body.convey = True
            if name == "SkipConvey":
                body.outer.append(Skip(name, self.source.line(node)))
        self.convey = True
        return True

    def _subtest(self, given: Sequence[Node], place: Place) -> bool:
        """A subtest with a literal title is a test of its own."""
        literal = {"interpreted_string_literal", "raw_string_literal"}
        if len(given) != 2 or given[0].type not in literal or given[1].type not in FUNCTIONS:
            return False
        if place.kind != "unreachable":
            name = f"{self.name}/{self.source.title(given[0])}"
            body = GoBody(self.source, given[1], self.helpers, self.names, name, self.skipping)
            if place.condition and place.truth not in {ALWAYS, NEVER}:
                condition = f"its condition `{place.condition}`"
                body.outer.append(Skip(condition, self.source.line(given[0]), place.truth != ELSEWHERE))
            self.subtests.append((body, given[1]))
        return True
