"""What a Java test checks (JUnit, AssertJ, Hamcrest, Truth, Mockito, helpers), and what in its body skips it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, NEVER, always_equal, always_true, truth
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.java.ranks import (
    CHAINED,
    DESCRIBING,
    RANKS,
    exception_rank,
    is_vacuous,
    matched_rank,
    slack_of,
    slack_text,
    subject_of,
)
from lopen.test_integrity.java.responses import is_statement, only_listed, response_checks
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, words
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, dotted, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASSERT = re.compile(r"^(?:assert\w*|fail|expectThrows)$")
_MOCK = re.compile(r"^(?:verify\w*|expectMsg\w*)$")
_ASSUME = re.compile(r"^(?:assume(?:True|False|That|NotNull|NoException)|abort)$")
_SKIPPING = re.compile(
    r"^(?:SkipException|TestAbortedException|TestSkippedException|(?:Internal)?AssumptionViolatedException)$"
)
_SWALLOWING = re.compile(r"\b(?:Throwable|AssertionError|AssertionFailedError|Error)\b")
_EXITS = frozenset({"System.exit", "Runtime.getRuntime.exit", "Runtime.getRuntime.halt"})
_EXPECTING = frozenset({"expect", "expectMessage", "expectCause"})  # of JUnit 4's ExpectedException
_ABOUT = re.compile(r"\b(?:atLeast(?:Once)?|atMost(?:Once)?)\(")
_APART = words("Thread execute submit runAsync supplyAsync startVirtualThread schedule")
_NEVER_TOLD = words("Thread execute startVirtualThread")
_AWAITING = words("join get orTimeout resultNow")
_ANY = re.compile(
    r"\bany(?:String|Int|Long|Double|Boolean|List|Map|Collection|Set)?\(|\bargThat\(\(?\w+\)? -> true\)"
)
_GROUPING = frozenset({"assertAll", "assertSoftly"})
_MADE = re.compile(r"^new \w+(?:<\w*>)?\([^()]*\)$")
_LAZY = words("peek map filter flatMap mapToObj mapToInt mapToLong mapToDouble sorted onEach doOnNext")
_STREAMS = re.compile(r"^(?:stream|parallelStream|Stream|IntStream|LongStream|DoubleStream|lines)$")


class JavaBody(Flow):
    """The walk through the body of a test, a helper or a method that sets up."""

    def __init__(self, source: ParsedFile, root: Node, helpers: Helpers, tables: Mapping[str, Node]) -> None:
        super().__init__(source, root, helpers)
        self._tables = tables

    def tables(self) -> Mapping[str, Node]:
        return self._tables

    def condition(self, branch: Node) -> str:
        """A branch's condition; a name that is bound once, to true or false, is that."""
        text = super().condition(branch)
        name = text.removeprefix("!")
        value = self.source.of(self._tables.get(name))
        if value not in {"true", "false"}:
            return text
        bound = re.findall(rb"\b" + re.escape(name.encode()) + rb"\s*=(?!=)", self.source.code)
        return text.replace(name, value) if len(bound) == 1 else text

    def _try(self, node: Node, place: Place) -> None:
        """A `return` in what is done at last drops what was thrown before."""
        last = [child for child in node.named_children if child.type == "finally_clause"]
        leaves = any(self.source.find("(return_statement) @return", "return", each) for each in last)
        super()._try(node, place.worse("swallowed" if leaves else "real"))

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
            bdd = link.name.startswith("should") and links[0].name == "then"
            if link.arguments is None or (index and links[index - 1].arguments is not None and not bdd):
                continue
            if _ASSUME.match(link.name):
                self._assume(node, names, link, place)
                return True
            chained = link.name == "assertThat" and len(links) > index + 1
            if link.name in _GROUPING and any(each.type in FUNCTIONS for each in link.arguments):
                return False  # what is grouped is what is checked
            if _ASSERT.match(link.name) and (chained or link.name not in self.helpers):
                forgotten = index and self._collected_only(links[0].name)
                inner = place.worse("unawaited" if forgotten else "real")
                first, *more = self._asserted(node, link, links[index + 1 :])
                self.asserted(first, links, inner)
                self.checks += [self.placed(each, inner) for each in more]
                return True
            if bdd or _MOCK.match(link.name):
                self.check(self._mocked(node, link), place)
                return False
            if link.name in _EXPECTING and index:
                rank = EXACT if link.name == "expectMessage" else exception_rank(self._first(link))
                self.check(replace(self._plain(node, "an exception"), rank=rank), place)
                return True
        unread = links[0].name == "StepVerifier" and not re.match(r"verify", links[-1].name)
        for check in response_checks(self.source, node, links):
            self.check(check, place.worse("unawaited" if unread else "real"))
        last = links[-1]
        own = len(links) == 1 or (len(links) == 2 and links[0].arguments is None)
        if own and last.arguments is not None and last.name in self.helpers:
            text = self.source.of(node)
            self.helper(
                last.name, Check(text, self._first(last) or text, EXACT, self.source.line(node)), place
            )
        return False

    def _collected_only(self, name: str) -> bool:
        """Return True if what this object of soft assertions collects is never told."""
        code = self.source.span(self.root.start_byte, self.root.end_byte)
        return f"{name} = new SoftAssertions()" in code and f"{name}.assertAll(" not in code

    def _plain(self, node: Node, name: str) -> Check:
        return Check(self.source.of(node), name, PARTIAL, self.source.line(node))

    def _mocked(self, node: Node, link: Link) -> Check:
        """A call that Mockito looks for, with arguments that it matches in part or not at all."""
        check = self._plain(node, link.name)
        given = [self.source.of(argument) for argument in link.arguments or ()]
        alone = node.parent is not None and node.parent.type == "expression_statement"
        bare = alone and link.name == "verify" and b"org.mockito" in self.source.text and len(given) > 0
        if any(re.search(r"\batLeast\(0\)", each) for each in given) or (
            bare and self.source.chain(node)[-1].name == "verify"
        ):
            return replace(check, rank=0, kind="vacuous")
        less = bool(_ANY.search(check.text)) + any(_ABOUT.search(each) for each in given)
        return replace(check, rank=(PARTIAL, LOOSE, PRESENT)[less])

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
        if link.name in {"of", "asList"} and only_listed(self.source, self.root, node):
            return place.worse("unreachable")
        after = {each.name for each in links[index:]}
        told = link.name not in _NEVER_TOLD and (_AWAITING & after or not is_statement(links))
        if link.name in _APART and not told:
            return place.worse("unawaited")
        streamed = any(_STREAMS.match(each.name) for each in links)
        if streamed and {link.name, links[-1].name} <= _LAZY and is_statement(links):
            return place.worse("unawaited")
        if any(each.name == "empty" and each.arguments == () for each in links[:index]):
            return place.worse("unreachable")
        return place

    def _asserted(self, node: Node, link: Link, rest: Sequence[Link]) -> list[Check]:
        """The checks of an assertion: the first, and what a chain says besides of the same subject."""
        first = self._first_asserted(node, link, rest)
        caught = self.source.of(self._tables.get(first.subject))
        if first.kind == "real" and re.match(r"catchThrowable\w*\(|catchException\(", caught):
            return [replace(first, subject="an exception", rank=self._thrown_rank(link, rest))]
        if first.kind != "real" or first.subject == "an exception":
            return [first]
        first = replace(first, slack=self._slack(link, rest))
        saying = [
            each for each in rest if each.name not in DESCRIBING and CHAINED.get(each.name, PARTIAL) > PRESENT
        ]
        return [first] + [
            Check(f"{first.subject}.{self._call_text(each)}", first.subject, rank, first.line)
            for each in saying[:-1]
            if link.name == "assertThat" and (rank := self._chained_rank(each))
        ]

    def _chained_rank(self, link: Link) -> int:
        return CHAINED.get(link.name, EXACT if link.name in self.helpers else PARTIAL)

    def _call_text(self, link: Link) -> str:
        return f"{link.name}({', '.join(self.source.of(each) for each in link.arguments or ())})"

    def _slack(self, link: Link, rest: Sequence[Link]) -> float | None:
        given = [self.source.of(argument) for argument in link.arguments or ()]
        text = slack_text(link.name, given, [self._call_text(each) for each in rest])
        named = self._tables.get(text.rpartition(".")[2])
        return slack_of(self.source.of(named) if named is not None else text)

    def _first_asserted(self, node: Node, link: Link, rest: Sequence[Link]) -> Check:
        name, arguments = link.name, [self.source.of(argument) for argument in link.arguments or ()]
        text, line = self.source.of(node), self.source.line(node)
        if name == "assertThat" and len(arguments) == 1:
            return self._fluent(text, arguments[0], rest, line)
        if is_vacuous(name, arguments):
            return Check(text, "", 0, line, "vacuous")
        subject = subject_of(name, arguments)
        rank = RANKS.get(name, EXACT)  # a helper with a name of its own is given the benefit of the doubt
        if name == "assertThat" and len(arguments) > 1:
            rank = matched_rank(arguments[-1])
        if name == "assertTrue" and re.search(r"\.equals\(|[^=!<>]==[^=]", subject):
            rank = EXACT
        if name in {"assertThrows", "expectThrows", "assertThrowsExactly"} and arguments:
            rank = exception_rank(arguments[0])
        if (
            name == "assertEquals"
            and len(arguments) == 2
            and re.search(r"\.(?:size|length|count)\(\)$|\.length$", subject)
        ):
            rank = CLOSE
        if name == "assertThatCode" and rest and rest[-1].name == "doesNotThrowAnyException":
            return Check(text, "an exception", PRESENT, line)
        if subject == "an exception" and name.startswith("assertThat"):
            rank = self._thrown_rank(link, rest)
        if (
            text.startswith("JSONAssert.")
            and arguments
            and re.search(r"LENIENT|EXTENSIBLE|STRICT_ORDER|^false$", arguments[-1])
        ):
            rank = CLOSE
        if (
            rank == EXACT
            and name in {"assertEquals", "assertSame"}
            and len(arguments) > 1
            and arguments[0] == arguments[1]
            and not _MADE.match(arguments[0])
        ):
            rank = PRESENT
        elif name == "assertEquals" and arguments and arguments[0].startswith("Optional.of("):
            rank = PARTIAL  # as AssertJ's `contains` says it
        elif name == "assertTrue" and re.search(r"\.(?:allMatch|noneMatch)\(", subject):
            rank = PARTIAL
        return Check(text, subject, rank, line)

    def _thrown_rank(self, link: Link, rest: Sequence[Link]) -> int:
        """How much a chain of AssertJ says of an exception: its message, its type or that there is one."""
        names = {each.name for each in rest}
        if {"hasMessage", "withMessage"} & names:
            return EXACT + 1  # all of it, and not a part
        if any(re.match(r"(?:has|with)(?:Message|StackTrace|Cause|RootCause|Field)", name) for name in names):
            return EXACT
        typed = [each for each in (link, *rest) if re.search(r"InstanceOf|ExceptionOfType", each.name)]
        named = link.name.endswith("Exception")  # `assertThatIllegalArgumentException`
        return max((exception_rank(self._first(each)) for each in typed), default=CLOSE if named else PRESENT)

    def _fluent(self, text: str, subject: str, rest: Sequence[Link], line: int) -> Check:
        found = [self._chained_rank(each) for each in rest if each.name not in DESCRIBING]
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
