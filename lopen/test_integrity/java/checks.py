"""What a Java test checks (JUnit, AssertJ, Hamcrest, Truth, Mockito, helpers), and what in its body skips it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, NEVER, always_equal, always_true, is_literal, truth
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, ranks
from lopen.test_integrity.syntax import Link, ParsedFile, dotted, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASSERT = re.compile(r"^(?:assert\w*|fail|expectThrows)$")
_MOCK = re.compile(r"^(?:verify\w*|expectMsg\w*)$")
_ASKED = re.compile(r"^\w+\((?:\"[^\"]*\")?")
_THERE = re.compile(r"\.(?:exists|isNotEmpty|isArray|isMap)\(\)$|\b(?:notNullValue|anything)\(\)\)$")
_EXPECT = re.compile(r"^(?:andExpect(?:All)?|expectStatus|expectBody|expectNext\w*)$")
_ASSUME = re.compile(r"^(?:assume(?:True|False|That|NotNull|NoException)|abort)$")
_SKIPPING = re.compile(
    r"^(?:SkipException|TestAbortedException|TestSkippedException|(?:Internal)?AssumptionViolatedException)$"
)
_SWALLOWING = re.compile(r"\b(?:Throwable|AssertionError|AssertionFailedError|Error)\b")
_EXITS = frozenset({"System.exit", "Runtime.getRuntime.exit", "Runtime.getRuntime.halt"})
_RANKS = ranks(
    exact="assertEquals assertSame assertNull assertArrayEquals assertIterableEquals",
    close="fail assertLinesMatch assertThrowsExactly assertThrows expectThrows verifyNoMoreInteractions",
    loose="assertTrue assertFalse assertNotEquals assertNotSame assertInstanceOf",
    present="assertNotNull assertDoesNotThrow",
)
_CHAINED = ranks(
    exact="isEqualTo isSameAs containsExactly isNull isZero isOne hasMessage isEmpty isTrue isFalse",
    close="isCloseTo isWithin containsExactlyInAnyOrder hasSize isInstanceOf isExactlyInstanceOf",
    loose="anySatisfy anyMatch isNotEqualTo isNotEmpty isNotBlank isNotZero doesNotContain",
    present="isNotNull isPresent isNotSameAs",
)
_MATCHERS = ranks(
    exact="equalTo sameInstance nullValue contains arrayContaining",
    close="closeTo containsInAnyOrder hasSize arrayContainingInAnyOrder",
    partial="hasItem hasItems hasEntry hasKey containsString startsWith endsWith matchesPattern greaterThan lessThan",
    loose="not instanceOf isA any",
    present="notNullValue anything",
)
_EXPECTING = frozenset({"expect", "expectMessage", "expectCause"})  # of JUnit 4's ExpectedException
_ANY = re.compile(r"\bany(?:String|Int|Long|Double|Boolean|List|Map|Collection|Set)?\(")
_DESCRIBING = frozenset({"as", "describedAs", "extracting", "withFailMessage", "overridingErrorMessage"})


class JavaBody(Flow):
    """The walk through the body of a test, a helper or a method that sets up."""

    def __init__(self, source: ParsedFile, root: Node, helpers: Helpers, tables: Mapping[str, Node]) -> None:
        super().__init__(source, root, helpers)
        self._tables = tables

    def tables(self) -> Mapping[str, Node]:
        return self._tables

    def swallows(self, handler: Node) -> bool:
        caught = self.source.of(handler.named_children[0]) if handler.named_child_count else ""
        return bool(_SWALLOWING.search(caught)) and not may_fail(self.source, handler.named_children[-1])

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        names = dotted(list(links))
        if names in _EXITS:
            code = [self.source.of(argument) for argument in links[-1].arguments or ()]
            if code == ["0"] and not place.condition and self.ends_test(node):
                self.skip(f"{names.replace('getRuntime', 'getRuntime()')}(0)", node, place)
            return True
        for index, link in enumerate(links):
            bdd = link.name == "should" and links[0].name == "then"
            if link.arguments is None or (index and links[index - 1].arguments is not None and not bdd):
                continue
            if _ASSUME.match(link.name):
                self._assume(node, names, link, place)
                return True
            if _ASSERT.match(link.name) and link.name not in self.helpers:
                self.asserted(self._asserted(node, link, links[index + 1 :]), links, place)
                return True
            if bdd or _MOCK.match(link.name):
                self.check(self._mocked(node, link), place)
                return False
            if link.name in _EXPECTING and index:
                rank = EXACT if link.name == "expectMessage" else exception_rank(self._first(link))
                self.check(replace(self._plain(node, "an exception"), rank=rank), place)
                return True
        for link in links:
            if link.arguments is not None and _EXPECT.match(link.name):
                for check in self._responses(node, link):
                    self.check(check, place)
        last = links[-1]
        own = len(links) == 1 or (len(links) == 2 and links[0].arguments is None)
        if own and last.arguments is not None and last.name in self.helpers:
            text = self.source.of(node)
            self.helper(
                last.name, Check(text, self._first(last) or text, EXACT, self.source.line(node)), place
            )
        return False

    def _plain(self, node: Node, name: str) -> Check:
        return Check(self.source.of(node), name, PARTIAL, self.source.line(node))

    def _mocked(self, node: Node, link: Link) -> Check:
        """A call that Mockito looks for, with arguments that it matches in part or not at all."""
        check = self._plain(node, link.name)
        given = [self.source.of(argument) for argument in link.arguments or ()]
        if any(re.search(r"\batLeast\(0\)", each) for each in given):
            return replace(check, rank=0, kind="vacuous")
        return replace(check, rank=LOOSE if _ANY.search(check.text) else PARTIAL)

    def _responses(self, node: Node, link: Link) -> Iterator[Check]:
        """What a test of a web application expects of a response, each in words of its own."""
        for argument in link.arguments or ():
            text = self.source.of(argument)
            asked = _ASKED.match(text)
            rank = PRESENT if _THERE.search(text) else LOOSE if re.search(r"\.is\dxx", text) else PARTIAL
            yield Check(text, asked[0] if asked else text, rank, self.source.line(argument))
        if not link.arguments:
            yield self._plain(node, link.name)

    def _first(self, link: Link) -> str:
        return self.source.of(link.arguments[0]) if link.arguments else ""

    def _assume(self, node: Node, names: str, link: Link, place: Place) -> None:
        """An assumption skips where it does not hold; one that asks for a constant always does, or never."""
        asked = [t for a in link.arguments or () if not (t := self.source.of(a)).startswith('"')][:1]
        if asked and link.name != "abort":
            wanted = link.name != "assumeFalse"
            holds = truth(asked[0])
            if link.name == "assumeTrue" or link.name == "assumeFalse":
                skipped = ALWAYS - holds if wanted else holds
                condition = f"not ({asked[0]})" if wanted else asked[0]
            else:
                skipped, condition = 2, f"not ({asked[0]})"
            if place.condition:
                condition = f"{place.condition} and {condition}"
            if skipped == NEVER:
                return
            place = place.under(condition, skipped)
        self.skip(names, node, place)

    def _thrown(self, node: Node, place: Place) -> None:
        thrown = node.named_children[0] if node.named_child_count else None
        made = thrown.child_by_field_name("type") if thrown is not None else None
        if made is not None and _SKIPPING.match(self.source.of(made)):
            self.skip(f"throw new {self.source.of(made)}", node, place)
        else:
            super()._thrown(node, place)

    def callback(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        link = links[index]
        if link.name == "assumingThat":
            condition = self._first(link)
            return place.under(condition, truth(condition))
        if link.name in {"assertThrows", "expectThrows", "assertThatThrownBy", "catchThrowable"}:
            expected = self._first(link) if link.name.endswith("Throws") else "Throwable"
            broad = re.search(r"\b(?:Throwable|AssertionError|Error)(?:\.class)?$", expected)
            return place.worse("swallowed" if broad else "real")
        return place

    def _asserted(self, node: Node, link: Link, rest: Sequence[Link]) -> Check:
        name, arguments = link.name, [self.source.of(argument) for argument in link.arguments or ()]
        text, line = self.source.of(node), self.source.line(node)
        if name == "assertThat" and len(arguments) == 1:
            return self._fluent(text, arguments[0], rest, line)
        if _is_vacuous(name, arguments):
            return Check(text, "", 0, line, "vacuous")
        subject = _subject(name, arguments)
        rank = _RANKS.get(name, EXACT)  # a helper with a name of its own is given the benefit of the doubt
        if name == "assertThat" and len(arguments) > 1:
            rank = _matched(arguments[-1])
        if name == "assertTrue" and re.search(r"\.equals\(|[^=!<>]==[^=]", subject):
            rank = EXACT
        if name in {"assertThrows", "expectThrows", "assertThrowsExactly"} and arguments:
            rank = exception_rank(arguments[0])
        if name == "assertEquals" and re.search(r"\.(?:size|length|count)\(\)$|\.length$", subject):
            rank = CLOSE
        if subject == "an exception" and name.startswith("assertThat"):
            rank = self._thrown_rank(link, rest)
        if rank == EXACT and name in {"assertEquals", "assertSame"} and arguments[:1] == arguments[1:2]:
            rank = PRESENT
        elif name == "assertEquals" and arguments and arguments[0].startswith("Optional.of("):
            rank = PARTIAL  # as AssertJ's `contains` says it
        elif name == "assertTrue" and re.search(r"\.(?:allMatch|noneMatch)\(", subject):
            rank = PARTIAL
        return Check(text, subject, rank, line)

    def _thrown_rank(self, link: Link, rest: Sequence[Link]) -> int:
        """How much a chain of AssertJ says of an exception: its message, its type or that there is one."""
        names = {each.name for each in rest}
        if any(re.match(r"(?:has|with)(?:Message|StackTrace|Cause|RootCause|Field)", name) for name in names):
            return EXACT
        typed = [each for each in (link, *rest) if re.search(r"InstanceOf|ExceptionOfType", each.name)]
        named = link.name.endswith("Exception")  # `assertThatIllegalArgumentException`
        return max((exception_rank(self._first(each)) for each in typed), default=CLOSE if named else PRESENT)

    def _fluent(self, text: str, subject: str, rest: Sequence[Link], line: int) -> Check:
        found = [_CHAINED.get(link.name, PARTIAL) for link in rest if link.name not in _DESCRIBING]
        if not found:
            return Check(text, subject, 0, line, "vacuous")  # assertThat(x) alone asserts nothing
        last = rest[-1]
        arguments = [self.source.of(argument) for argument in last.arguments or ()]
        same = (
            last.name in {"isEqualTo", "isSameAs"} and arguments[:1] and always_equal(subject, arguments[0])
        )
        if (
            same
            or (last.name == "isTrue" and always_true(subject))
            or (last.name == "isFalse" and subject == "false")
        ):
            return Check(text, subject, 0, line, "vacuous")
        return Check(text, subject, max(found), line)


def exception_rank(expected: str) -> int:
    """How much an expected type of exception pins down."""
    name = expected.removesuffix(".class").rpartition(".")[2]
    return {"Throwable": PRESENT, "Exception": PRESENT, "RuntimeException": LOOSE, "Error": LOOSE}.get(
        name, CLOSE
    )


def _matched(matcher: str) -> int:
    """How much a Hamcrest matcher pins down."""
    name, _, rest = matcher.partition("(")
    name = name.rpartition(".")[2]
    inner = rest.partition("(")[0].rpartition(".")[2]
    if name == "is" and inner in _MATCHERS:
        return _matched(rest.removesuffix(")"))
    return _MATCHERS.get(name, EXACT if name == "is" else PARTIAL)


def _subject(name: str, arguments: Sequence[str]) -> str:
    """What is checked: JUnit puts the expected value first."""
    if name in {"assertEquals", "assertNotEquals", "assertSame", "assertArrayEquals"} and len(arguments) > 1:
        return arguments[0] if is_literal(arguments[1]) else arguments[1]
    if name in {"assertThrows", "expectThrows", "fail"} or re.match(
        r"assertThat\w*(?:Thrown|Exception)", name
    ):
        return "an exception"
    return arguments[0] if arguments else ""


def _is_vacuous(name: str, arguments: Sequence[str]) -> bool:
    if name == "assertTrue":
        return any(always_true(argument) for argument in arguments)
    if name == "assertFalse":
        return any(truth(argument) == NEVER for argument in arguments)
    if name in {"assertEquals", "assertSame"} and len(arguments) > 1:
        return always_equal(arguments[0], arguments[1])
    literal = len(arguments) == 1 and is_literal(arguments[0]) and arguments[0] != "null"
    return name == "assertNotNull" and literal


def helper_checks(source: ParsedFile, tables: Mapping[str, Node]) -> Iterator[tuple[str, tuple[Check, ...]]]:
    """Methods by name, with what they check."""
    for name, method in source.functions("(method_declaration name: (identifier) @name) @function"):
        body = JavaBody(source, method, {}, tables)
        body.block(method.child_by_field_name("body"), Place())
        yield name, tuple(body.checks)
