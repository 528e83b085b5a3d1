"""One JavaScript call as a check: `expect` chains, `assert` calls, the `t` of node and tap, supertest, `should`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import always_equal, always_true
from lopen.test_integrity.javascript.ranks import (
    asserted_rank,
    expected_rank,
    is_vacuous,
    response_rank,
    whole_rank,
)
from lopen.test_integrity.javascript.words import RENAMED
from lopen.test_integrity.suite import EXACT, PARTIAL, PRESENT, Check, words
from lopen.test_integrity.syntax import Link, ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_T_METHODS = words(
    "ok notOk equal notEqual deepEqual deepStrictEqual same strictSame is not true false truthy falsy throws "
    "doesNotThrow throwsAsync notThrows notThrowsAsync snapshot rejects match like regex pass fail is_deeply notStrictEqual strictEqual propEqual"
)
_CLOSE_TO = frozenset({"closeTo", "approximately", "inDelta"})
_BOOLEAN = frozenset({"ok", "true", "isTrue", "isOk", "truthy", "assert"})
_SETTINGS = frozenset({"assertions", "hasAssertions", "extend", "addSnapshotSerializer", "any", "anything"})
_IMPORTED = """
(import_statement (import_clause (named_imports (import_specifier name: (identifier) @name))) source: (string) @module)
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name)
  value: (call_expression arguments: (arguments (string) @module)))
"""
_ARRAYS = "(variable_declarator name: (identifier) @name value: (_) @value)"
_CALLED = re.compile(r"(?:await )?([\w$.]+)\(")


@dataclass(frozen=True, slots=True)
class JavaScriptNames:
    """What a file's names stand for: literal tables, functions of an assertion library, renamed imports."""

    tables: Mapping[str, Node]
    asserting: frozenset[str]
    renamed: Mapping[str, str]
    playwright: bool = False  # whose assertions about a page are promises


def names_of(source: ParsedFile) -> JavaScriptNames:
    """What the file's names stand for where that matters to checks."""
    tables = {source.name(found["name"]): found["value"] for found in source.matches(_ARRAYS)}
    asserting = {
        source.name(found["name"])
        for found in source.matches(_IMPORTED)
        if re.search(r"assert|chai", source.name(found["module"]))
    }
    renamed = {source.name(f["name"]): source.name(f["value"]) for f in source.matches(RENAMED)}
    playwright = b"@playwright/test" in source.text
    return JavaScriptNames(tables, frozenset(asserting), renamed, playwright)


def weighed(check: Check, table: str) -> Check:
    """Return a check, of less worth where the rows of its table are computed by what it checks."""
    called = _CALLED.match(check.subject)
    computed = called is not None and re.search(rf"(?<![\w.]){re.escape(called[1])}\(", table)
    if not computed:
        return check
    return replace(check, text=f"{check.text} over its own results", rank=min(check.rank, PARTIAL))


@dataclass(frozen=True, slots=True)
class Reader:
    """What tells assertions from other calls in one function. `bound`: the values of its names, as far as it was read."""

    source: ParsedFile
    names: JavaScriptNames
    parameters: frozenset[str]
    bound: dict[str, Node] = field(default_factory=dict)

    def read(self, node: Node, links: Sequence[Link]) -> Check | None:
        """The check that a call is."""
        root = self.names.renamed.get(links[0].name, links[0].name)
        should = root == "should" and links[0].arguments is not None and len(links) > 1
        if should or (
            root == "expect"
            and not (len(links) > 1 and links[1].name in _SETTINGS and not links[0].arguments)
        ):
            return self._expected(node, links)
        if (asserted := self._assertion(root, links)) is not None:
            return self._asserted(node, *asserted)
        text, line = self.source.of(node), self.source.line(node)
        if root != "assert" and any(link.name == "expect" and link.arguments for link in links[1:]):
            return Check(text, "the response", response_rank(self.source, links), line)
        if any(link.name == "should" for link in links[1:]) and links[-1].name != "should":
            given = [self.source.of(argument) for argument in links[-1].arguments or ()]
            subject, negated = text.partition(".should")[0], any(link.name == "not" for link in links)
            return Check(text, subject, expected_rank(subject, links[-1].name, given, negated=negated), line)
        return None

    def _assertion(self, root: str, links: Sequence[Link]) -> tuple[str, tuple[Node, ...]] | None:
        """The name and arguments of an assertion that is a plain call."""
        last = links[-1]
        if last.arguments is None or any(link.arguments is not None for link in links[:-1]):
            return None
        names = [link.name for link in links[1:] if link.name != "strict"]
        if root in {"chai", "sinon"} and names[:1] == ["assert"]:
            root, names = "assert", names[1:]
        if names[-1:] in (["expect"], ["plan"], ["timeout"], ["step"]):
            return None  # how many assertions there are
        if names[:1] == ["assert"] and (root == "t" or root in self.parameters):
            root, names = "assert", names[1:]
        if root == "assert":
            return (names[-1] if names else "ok"), last.arguments
        if len(links) == 1 and links[0].name in self.names.asserting and root not in {"expect", "should"}:
            return root, last.arguments
        if len(names) == 1 and names[0] in _T_METHODS and (root == "t" or root in self.parameters):
            return names[0], last.arguments
        return None

    def _expected(self, node: Node, links: Sequence[Link]) -> Check:
        start = next((i for i, link in enumerate(links) if link.arguments is not None), len(links) - 1)
        given = links[start].arguments or ()
        subject = self.source.of(given[0]) if given else ""
        text, line = self.source.of(node), self.source.line(node)
        chain = [link for link in links[start + 1 :] if link.name not in {"then", "catch", "finally"}]
        if not chain or (chain[-1].arguments is None and re.match(r"to[A-Z]", chain[-1].name)):
            return Check(text, subject, 0, line, "vacuous")  # expect(x) alone asserts nothing
        names = [link.name for link in chain]
        matcher = names[-1]
        arguments = [self.source.of(argument) for argument in chain[-1].arguments or ()]
        if is_vacuous(subject, matcher, arguments, negated="not" in names):
            return Check(text, subject, 0, line, "vacuous")
        rank = expected_rank(subject, matcher, arguments, negated="not" in names)
        rank = whole_rank(rank, self.source.of(self.bound[subject]) if subject in self.bound else subject)
        return Check(text, subject, self._own_rank(rank, [subject, *arguments]), line)

    def _own_rank(self, rank: int, compared: Sequence[str]) -> int:
        """The rank, less where the code under test says itself what is expected of it."""
        if rank < EXACT or len(compared) < 2:
            return rank
        subject, expected = (
            self.source.of(self.bound[each]) if each in self.bound else each for each in compared[:2]
        )
        if (
            compared[0] in self.bound
            and _CALLED.match(subject)
            and re.search(rf"\b{re.escape(compared[0])}\b", expected)
        ):
            return PARTIAL  # taken from the result itself
        called, again = _CALLED.match(subject), _CALLED.match(expected)
        if called is None or again is None or called[1] != again[1]:
            return rank
        return PRESENT if subject == expected else PARTIAL

    def _asserted(self, node: Node, name: str, given: Sequence[Node]) -> Check:
        arguments = [self.source.of(argument) for argument in given]
        text, line = self.source.of(node), self.source.line(node)
        subject = arguments[0] if arguments else ""
        boolean = name in _BOOLEAN
        told = 1 if boolean else 3 if name in _CLOSE_TO else 2
        if arguments[told:] and arguments[told][:1] in "\"'`":  # what it says where it fails
            text = f"{text.partition('(')[0]}({', '.join(arguments[:told])})"
        same = len(arguments) > 1 and always_equal(arguments[0], arguments[1]) and "not" not in name.lower()
        if name == "pass" or (boolean and always_true(subject)) or (not boolean and same):
            return Check(text, subject, 0, line, "vacuous")
        if boolean and re.search(r"[^=!]==", subject) and "||" not in subject:
            return Check(text, subject.split("==")[0].strip(), EXACT, line)
        return Check(text, subject, self._own_rank(asserted_rank(name, arguments), arguments), line)
