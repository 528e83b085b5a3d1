"""JavaScript and TypeScript tests: jest, vitest, mocha, jasmine, playwright, QUnit, `node:test`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.bindings import bound_name, is_filtered
from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, NEVER, truth
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.javascript.blocks import (
    Block,
    content,
    given,
    is_empty,
    is_titled,
    marks,
    row_count,
    rule_case,
    title,
)
from lopen.test_integrity.javascript.checks import EXPECTING, JavaScriptBody
from lopen.test_integrity.javascript.reading import JavaScriptNames, names_of, weighed
from lopen.test_integrity.javascript.words import SETUP, Word, Words, at_top
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import (
    HOOK,
    PRESENT,
    REACHED,
    Case,
    Check,
    Language,
    Skip,
    Suite,
    numbered,
    support_cases,
    words,
)
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_SUFFIX = re.compile(r"\.[cm]?[jt]sx?$")
_COLLECTED = re.compile(
    r"(?:\.|[_-])(?:test|spec|cy|e2e)\.[cm]?[jt]sx?$|(?:^|/)(?:__tests__|tests?|spec|e2e)/.*\.[cm]?[jt]sx?$|(?:^|/)tests?\.[cm]?[jt]sx?$"
)
_AFTER = frozenset({"after", "afterEach", "afterAll", "teardown", "suiteTeardown"})
_HOOKS = frozenset({"before", "beforeEach", "beforeAll", "suiteSetup", "setup"})
_CONDITIONAL = {"skipIf": False, "todoIf": False, "runIf": True, "if": True}  # True: it runs where that holds
_TABLES = frozenset({"each", "for", "cases"})
_NO_TESTS = words(
    "before beforeEach after afterEach beforeAll afterAll use extend step mock setTimeout info slow "
    "configure timeout retries"
)
_FUNCTIONS = """
(function_declaration name: (identifier) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)] @function)
(method_definition name: (property_identifier) @name) @function
(assignment_expression left: (member_expression property: (property_identifier) @name) right: [(arrow_function) (function_expression)] @function)
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)] @function)
(call_expression function: (member_expression property: (property_identifier) @added (#eq? @added "add")) arguments: (arguments . (string) @name [(arrow_function) (function_expression)] @function))
"""


def covers(path: str) -> bool:
    """Return True if a path holds tests: JavaScript has no rule of its own, so its file names decide."""
    found = _COLLECTED.search(path) or SETUP.search(path)
    return bool(_SUFFIX.search(path) and found) and "node_modules/" not in path


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; functions that check, whichever of the files defines them, count where they are called."""
    sources = {path: parsed_file(text, grammar(path)) for path, text in files.items()}
    names = {path: names_of(source) for path, source in sources.items()}
    own = {path: _helper_checks(source, names[path], {}) for path, source in sources.items()}
    shared = {name: checks for found in own.values() for name, checks in found.items()}
    return {
        path: _File(source, {**shared, **own[path]}, names[path]).suite(own[path])
        for path, source in sources.items()
    }


def grammar(path: str) -> str:
    """Return the name of the grammar for a path."""
    if re.search(r"\.[cm]?ts$", path):
        return "typescript"
    return "tsx" if path.endswith(".tsx") else "javascript"


def _helper_checks(
    source: ParsedFile, names: JavaScriptNames, helpers: Helpers
) -> dict[str, tuple[Check, ...]]:
    """Functions by name, with what they check. One level deep: a helper's helpers count by their names."""
    found: dict[str, tuple[Check, ...]] = {}
    for name, function in source.functions(_FUNCTIONS):
        body = JavaScriptBody(source, function, helpers, names)
        if EXPECTING.search(source.code, function.start_byte, function.end_byte):
            body.follow(function.child_by_field_name("body"))
        found[name] = tuple(body.checks)
    return found


class _File(Flow):
    """The walk through a file that finds its tests."""

    def __init__(self, source: ParsedFile, helpers: Helpers, names: JavaScriptNames) -> None:
        super().__init__(source, source.root, helpers)
        self.names = names
        self.groups: list[Block] = []
        self.tests: list[Block] = []
        self.ruled: list[Case] = []
        self.everywhere: list[Skip] = []
        self.narrowing: list[Skip] = []
        self.hooks: dict[str, tuple[Check, ...]] = {}
        self.words = Words(source)

    def tables(self) -> Mapping[str, Node]:
        return self.names.tables

    def suite(self, support: Helpers) -> Suite:
        """The file's tests and helpers."""
        self.block(self.root, Place())
        cases = [*map(self._case, self.tests), *self.ruled]
        return Suite(numbered([*cases, *support_cases({**support, **self.hooks})]), tuple(self.narrowing))

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        name = links[-1].name
        if name in _AFTER and len(links) == 1 and links[0].arguments is not None:
            self._checking_hook(name, links[0].arguments)
            return True
        if name in _HOOKS and links[-1].arguments is not None:
            self._hook(name, links[-1].arguments, place)
            return True
        word = self.words.resolve(links)
        if word is None and (case := rule_case(self.source, node, links)):
            self.ruled.append(case)
        if word is None:
            return self._ends(links, node, place)
        table, final = None, None
        condition = word.condition
        for link in links:
            if link.name in _TABLES and link.arguments:
                table = link.arguments[0]
            elif link.name in _CONDITIONAL and link.arguments:
                asked = self.source.of(link.arguments[0])
                condition = asked if _CONDITIONAL[link.name] else f"!({asked})"
            elif link.arguments is not None:
                final = link
                break
        if final is None or set(word.dots) & _NO_TESTS:
            return False
        arguments = given(self.source, final.arguments or ())
        if not is_titled(arguments):
            self._skip_group(word, final, node, place)
        elif word.body is None or all(group.word.body != word.body for group in self.groups):
            word = replace(word, condition=condition)
            self._declare(word, links, arguments, table, node, place)
        return True

    def _declare(
        self,
        word: Word,
        links: Sequence[Link],
        arguments: tuple[Node, ...],
        table: Node | None,
        node: Node,
        place: Place,
    ) -> None:
        """Note a group or a test, and follow what is in it."""
        if place.kind == "unreachable":
            return
        written = ".".join(
            [link.name for link in links if link.name and link.name not in _TABLES] or [word.base]
        )
        block = Block(word, written, node, arguments, table, place, tuple(self.groups))
        if place.condition and place.truth not in {ALWAYS, NEVER}:
            block.skips.append(
                Skip(f"its condition `{place.condition}`", self.source.line(node), place.truth != ELSEWHERE)
            )
        for listed in (table, place.table):
            if listed is not None and is_filtered(self.source, listed):
                text = f"what `{self.source.of(listed)[:80]}` leaves out of the table"
                block.skips.append(Skip(text, self.source.line(listed), certain=False))
        self.narrowing += marks(self.source, block)
        if not block.is_group:
            self.tests.append(block)
        self.groups.append(block)
        function = block.function
        if function is not None and (
            block.is_group or b"test(" in self.source.code[function.start_byte : function.end_byte]
        ):
            rows = self.count(table) if table is not None else place.rows
            outer, self.root = self.root, function
            self.walk(function.child_by_field_name("body") or function, Place(rows=rows))
            self.root = outer
        self.groups.pop()

    def _hook(self, name: str, given: Sequence[Node], place: Place) -> None:
        """A hook that skips what it sets up for."""
        for function in given:
            if function.type in FUNCTIONS and place.kind != "unreachable":
                body = JavaScriptBody(self.source, function, {}, self.names)
                body.follow(function.child_by_field_name("body"))
                for skip in body.skips:
                    if not skip.text.startswith("return"):
                        text = f"{name}'s {skip.text}"
                        self._around().append(Skip(text, skip.line, skip.certain))

    def _checking_hook(self, name: str, given: Sequence[Node]) -> None:
        """A hook that checks something behind each test."""
        for function in given:
            if function.type in FUNCTIONS:
                body = JavaScriptBody(self.source, function, self.helpers, self.names)
                body.follow(function.child_by_field_name("body"))
                if body.checks:
                    self.hooks[HOOK + name] = tuple(body.checks)

    def _around(self) -> list[Skip]:
        """The skips of the group that is being read, or of the file."""
        return self.groups[-1].skips if self.groups else self.everywhere

    def skip(self, name: str, node: Node, place: Place) -> None:
        """A return from the function that declares a group leaves out what it would declare."""
        before = len(self.skips)
        super().skip(name, node, place)
        self._around().extend(self.skips[before:])

    def _skip_group(self, word: Word, final: Link, node: Node, place: Place) -> None:
        """`test.skip(condition)` among the tests of a group."""
        if not set(word.dots) & {"skip", "fixme"} or place.kind == "unreachable":
            return
        condition = self.source.of(final.arguments[0]) if final.arguments else ""
        holds = truth(condition) if condition else ALWAYS
        text = self.source.of(node) if condition else f"{word.base}.{word.dots[-1]}"
        if holds != NEVER:
            self._around().append(Skip(text, self.source.line(node), holds != ELSEWHERE))

    def _ends(self, links: Sequence[Link], node: Node, place: Place) -> bool:
        """An exit with success at the top of the file ends the whole run."""
        exits = JavaScriptBody(self.source, self.root, {}, self.names).exit_name(links)
        if exits and not self.groups and at_top(node) and place.truth not in {NEVER, ELSEWHERE}:
            text = f"`{exits}` at the top of the file" + (f" if {place.condition}" if place.condition else "")
            self.narrowing.append(Skip(text, self.source.line(node), not place.condition))
        return bool(exits)

    def other(self, node: Node, place: Place) -> bool:
        return node.type == "class_declaration"

    def _nested(self, node: Node, place: Place) -> None:
        """A function that declares tests does so where it is called; most are helpers."""
        name = bound_name(self.source, node)
        if name in self.words.meanings or (
            name and b"it(" not in self.source.code[node.start_byte : node.end_byte]
        ):
            return
        calls = len(re.findall(rb"\b%b\(" % re.escape(name).encode(), self.source.code)) if name else 0
        calls -= node.type == "function_declaration"
        super()._nested(node, place._replace(rows=calls) if calls > 0 else place)

    def _case(self, block: Block) -> Case:
        source = self.source
        around = [group for group in block.groups if group.arguments]
        skips = [*self.everywhere, *(s for each in [*around, block] for s in each.skips)]
        function = block.function
        body = JavaScriptBody(source, function or block.node, self.helpers, self.names)
        for argument in [*block.arguments[1:], *([block.word.body] if block.word.body else [])]:
            if function is not None and argument.start_byte <= function.start_byte < argument.end_byte:
                body.follow(function.child_by_field_name("body"))
                function = None
            elif argument.type == "identifier" and source.name(argument) in self.helpers:
                name = source.name(argument)
                body.helper(name, Check(name, name, 0, source.line(argument)), Place())
        if body.checks and not body.straight and body.counted():
            body.checks.append(Check(REACHED, REACHED, PRESENT, source.line(block.node)))
        rows = source.of(self.tables().get(source.name(block.table), block.table)) if block.table else ""
        body.checks = [weighed(check, rows) for check in body.checks]
        stub = self.words.meanings.get("expect")
        if stub is not None and stub.note and any(c.text.startswith("expect") for c in body.checks):
            skips.append(stub.note)
        own = [*dict.fromkeys([*skips, *body.skips])]
        return Case(
            " > ".join(title(source, each.arguments[0]) for each in [*around, block]), source.line(block.node), content(source, self.tables(), block), tuple(body.checks), tuple(own),
            body.rows if (count := row_count(source, block, self.count)) is None else count, is_empty(block),
        )  # fmt: skip


LANGUAGE = Language("JavaScript", covers, lambda path: bool(_COLLECTED.search(path)), read)
