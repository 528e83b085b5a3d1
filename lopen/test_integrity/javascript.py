"""JavaScript and TypeScript tests: jest, vitest, mocha, jasmine, playwright, QUnit, `node:test`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, NEVER, truth
from lopen.test_integrity.flow import Flow, Helpers, Place, functions
from lopen.test_integrity.javascript_checks import EXPECTING, Body, Names
from lopen.test_integrity.suite import Case, Check, Language, Skip, Suite, numbered, support_cases, words
from lopen.test_integrity.syntax import FUNCTIONS, Link, Source, unwrapped

if TYPE_CHECKING:
    from tree_sitter import Node

_SUFFIX = re.compile(r"\.[cm]?[jt]sx?$")
_COLLECTED = re.compile(
    r"(?:\.|[_-])(?:test|spec|cy|e2e)\.[cm]?[jt]sx?$|(?:^|/)(?:__tests__|tests?|spec|e2e)/.*\.[cm]?[jt]sx?$|(?:^|/)tests?\.[cm]?[jt]sx?$"
)
_WORD = re.compile(r"^(?P<mark>[xf]?)(?P<base>describe|context|suite|it|test|specify)$")
_GROUPS = frozenset({"describe", "context", "suite", "module"})
_HOOKS = frozenset({"before", "beforeEach", "beforeAll", "suiteSetup", "setup"})
_MARKS = {"x": ("skip",), "f": ("only",)}
_SKIPPING = frozenset({"skip", "todo", "fixme", "failing", "fails", "fail"})
_NAMESPACES = frozenset({"Deno", "QUnit", "ctx", "nodeTest", "vitest"})
_MEMBERS = frozenset({"test", "it", "describe", "suite"})
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
"""
_BOUND = """
(variable_declarator name: (identifier) @name value: (_) @value)
(assignment_expression left: [(identifier) (member_expression)] @name right: (_) @value)
(function_declaration name: (identifier) @name) @value
"""
_RENAMED = """
(import_specifier name: (identifier) @value alias: (identifier) @name)
(pair_pattern key: (property_identifier) @value value: (identifier) @name)
"""
_IMPORTED = """
(import_statement (import_clause (named_imports (import_specifier name: (identifier) @name))) source: (string) @module)
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name)
  value: (call_expression arguments: (arguments (string) @module)))
"""
_ARRAYS = "(variable_declarator name: (identifier) @name value: (_) @value)"
_GLOBALS = re.compile(r"^(?:globalThis|global|window|self)\.")
_CALLING = re.compile(rb"[\w$)\]]\s*\(")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word that declares tests, as resolved: `it`, or what `it` was bound to."""

    base: str
    dots: tuple[str, ...] = ()
    condition: str = ""  # the tests run where it holds
    note: Skip | None = None


@dataclass(slots=True)
class _Block:
    """A call that declares a group or a test, and what keeps what is in it from running."""

    word: _Word
    written: str
    node: Node
    arguments: tuple[Node, ...]
    table: Node | None
    place: Place
    groups: tuple[_Block, ...]
    skips: list[Skip] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        return self.word.base in _GROUPS or bool(_GROUPS & set(self.word.dots))

    @property
    def function(self) -> Node | None:
        """The function that is the block's body, be it wrapped in a call."""
        for argument in self.arguments[1:]:
            if argument.type in FUNCTIONS:
                return argument
            inner = argument.child_by_field_name("arguments") if argument.type == "call_expression" else None
            for child in inner.named_children if inner is not None else ():
                if child.type in FUNCTIONS:
                    return child
        return None


def covers(path: str) -> bool:
    """Whether a path holds tests: JavaScript has no rule of its own, so its file names decide."""
    return bool(_SUFFIX.search(path) and _COLLECTED.search(path)) and "node_modules/" not in path


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; functions that check, whichever of the files defines them, count where they are called."""
    sources = {path: Source(text, _grammar(path)) for path, text in files.items()}
    names = {path: _names(source) for path, source in sources.items()}
    own = {path: _helper_checks(source, names[path], {}) for path, source in sources.items()}
    shared = {name: checks for found in own.values() for name, checks in found.items()}
    return {
        path: _File(source, {**shared, **own[path]}, names[path]).suite(own[path])
        for path, source in sources.items()
    }


def _grammar(path: str) -> str:
    if re.search(r"\.[cm]?ts$", path):
        return "typescript"
    return "tsx" if path.endswith(".tsx") else "javascript"


def _names(source: Source) -> Names:
    """What the file's names stand for where that matters to checks."""
    tables = {source.name(found["name"]): found["value"] for found in source.matches(_ARRAYS)}
    asserting = {
        source.name(found["name"])
        for found in source.matches(_IMPORTED)
        if re.search(r"assert|chai", source.name(found["module"]))
    }
    renamed = {source.name(f["name"]): source.name(f["value"]) for f in source.matches(_RENAMED)}
    return Names(tables, frozenset(asserting), renamed)


def _helper_checks(source: Source, names: Names, helpers: Helpers) -> dict[str, tuple[Check, ...]]:
    """Functions by name, with what they check. One level deep: a helper's helpers count by their names."""
    found: dict[str, tuple[Check, ...]] = {}
    for name, function in functions(source, _FUNCTIONS):
        body = Body(source, function, helpers, names)
        if EXPECTING.search(source.code, function.start_byte, function.end_byte):
            body.follow(function.child_by_field_name("body"))
        found[name] = tuple(body.checks)
    return found


class _File(Flow):
    """The walk through a file that finds its tests."""

    def __init__(self, source: Source, helpers: Helpers, names: Names) -> None:
        super().__init__(source, source.root, helpers)
        self.names = names
        self.groups: list[_Block] = []
        self.tests: list[_Block] = []
        self.everywhere: list[Skip] = []
        self.narrowing: list[Skip] = []
        self.words: dict[str, _Word] = {}
        self._bind()

    def tables(self) -> Mapping[str, Node]:
        return self.names.tables

    def suite(self, support: Helpers) -> Suite:
        """The file's tests and helpers."""
        self.block(self.root, Place())
        cases = [self._case(block) for block in self.tests]
        return Suite(numbered([*cases, *support_cases(support)]), tuple(self.narrowing))

    def _bind(self) -> None:
        """Find out which names stand for words of the test framework."""
        for match in self.source.matches(_RENAMED):
            name, value = self.source.name(match["name"]), self.source.name(match["value"])
            if found := _WORD.match(value):
                dots = _MARKS.get(found["mark"], ())
                note = Skip(f"{name} bound to {value}", self.source.line(match["value"]))
                self.words[name] = _Word(found["base"], dots, "", note if "skip" in dots else None)
        for match in self.source.matches(_BOUND):
            name = _GLOBALS.sub("", self.source.of(match["name"]))
            own = bool(_WORD.match(name)) or name == "expect"
            if not re.fullmatch(r"[\w$]+", name) or (own and not _at_top(match["value"])):
                continue
            word = self._meaning(name, match["value"], own=own)
            if word is not None:
                self.words[name] = word

    def _meaning(self, name: str, value: Node, *, own: bool) -> _Word | None:
        """The word that a name is bound to."""
        line = self.source.line(value)
        if value.type in FUNCTIONS:
            idle = own and self._does_nothing(value, name)
            note = Skip(f"a {name} of its own, which does nothing", line)
            return _Word(_base(name), note=note) if idle else self._wrapped(value)
        if value.type == "ternary_expression":
            return self._chosen(value)
        word = self._bare_word(value)
        if word is None or not set(word.dots) & {*_SKIPPING, "only"}:
            return word
        return _Word(word.base, word.dots, "", Skip(f"{name} bound to {self.source.of(value)}", line))

    def _bare_word(self, node: Node) -> _Word | None:
        """A word that is named and not called, such as `it.skip`."""
        links = self.source.chain(node)
        return self._resolve(links) if all(link.arguments is None for link in links) else None

    def _chosen(self, ternary: Node) -> _Word | None:
        """`condition ? it : it.skip`."""
        words = [
            self._bare_word(part) if (part := ternary.child_by_field_name(f)) is not None else None
            for f in ("consequence", "alternative")
        ]
        if words[0] is None or words[1] is None:
            return None
        condition = self.condition(ternary)
        skipped = [bool(set(word.dots) & _SKIPPING) for word in words if word is not None]
        if skipped[0] == skipped[1]:
            return words[0]
        return _Word(words[0].base, (), condition if skipped[1] else f"!({condition})")

    def _wrapped(self, function: Node) -> _Word | None:
        """The word to which a function hands its title on."""
        body = function.child_by_field_name("body")
        given = self.source.of(function.child_by_field_name("parameters"))
        for call in self.source.find("(call_expression) @call", "call", body) if body is not None else []:
            links = self.source.chain(call)
            title = links[-1].arguments[:1] if links[-1].arguments else ()
            word = self._resolve(links) if title and title[0].type == "identifier" else None
            if word is not None and re.search(rf"\b{re.escape(self.source.of(title[0]))}\b", given):
                return word
        return None

    def _does_nothing(self, function: Node, name: str) -> bool:
        """Whether the function calls nothing; for `expect`, whether nothing in it can fail."""
        body = function.child_by_field_name("body")
        if body is None:
            return False
        if name == "expect":
            return not self.fails(body)
        return not _CALLING.search(self.source.code, body.start_byte, body.end_byte)

    def _resolve(self, links: Sequence[Link]) -> _Word | None:
        """The word that a chain starts with, and the dots behind it up to its first bracket."""
        first, *rest = links
        prefix = first.name
        if rest and prefix == "QUnit" and rest[0].name in _SKIPPING | {"module", "only"}:
            return _Word("module" if rest[0].name == "module" else "test", (rest[0].name,))
        namespace = len(prefix) <= 2 or prefix in _NAMESPACES
        if rest and rest[0].name in _MEMBERS and namespace and not _WORD.match(prefix):
            first, *rest = rest
        word = self.words.get(first.name)
        if word is None and first.node.type == "ternary_expression":
            word = self._chosen(first.node)
        if word is None:
            found = _WORD.match(first.name)
            if not found:
                return None
            word = _Word(found["base"], _MARKS.get(found["mark"], ()))
        dots = [link.name for link in rest if link.name] if first.arguments is None else []
        return _Word(word.base, (*word.dots, *dots), word.condition, word.note)

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        name = links[-1].name
        if name in _HOOKS and links[-1].arguments is not None:
            self._hook(name, links[-1].arguments, place)
            return True
        word = self._resolve(links)
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
        if not self._titled(final.arguments or ()):
            self._skip_group(word, final, node, place)
            return True
        self._declare(_Word(word.base, word.dots, condition, word.note), links, final, table, node, place)
        return True

    def _titled(self, given: Sequence[Node]) -> bool:
        return bool(given) and (
            given[0].type in {"string", "template_string"}
            or any(argument.type in FUNCTIONS or argument.type == "identifier" for argument in given[1:])
        )

    def _declare(
        self,
        word: _Word,
        links: Sequence[Link],
        final: Link,
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
        block = _Block(word, written, node, final.arguments or (), table, place, tuple(self.groups))
        if place.condition and place.truth not in {ALWAYS, NEVER}:
            block.skips.append(
                Skip(f"its condition `{place.condition}`", self.source.line(node), place.truth != ELSEWHERE)
            )
        self._mark(block)
        if not block.is_group:
            self.tests.append(block)
        self.groups.append(block)
        function = block.function
        if function is not None and (
            block.is_group or b"test(" in self.source.code[function.start_byte : function.end_byte]
        ):
            rows = self.count(table) if table is not None else place.rows
            outer, self.root = self.root, function
            self.walk(function.child_by_field_name("body") or function, Place(depth=place.depth, rows=rows))
            self.root = outer
        self.groups.pop()

    def _mark(self, block: _Block) -> None:
        """Note what the words and options of a block say about running it."""
        word, line = block.word, self.source.line(block.node)
        options = [a for a in block.arguments[1:] if a.type == "object"]
        only = "only" in word.dots
        for option in (pair for each in options for pair in each.named_children if pair.type == "pair"):
            key = self.source.name(option.child_by_field_name("key"))
            value = self.source.of(option.child_by_field_name("value"))
            holds = truth(value)
            if key == "only":
                only |= holds == ALWAYS
            elif key in {"skip", "todo", "fails"} and holds != NEVER:
                reason = "" if value[:1] in "\"'`" or holds == ALWAYS else f" if {value}"
                block.skips.append(
                    Skip(f"{block.written} with {{ {key} }}{reason}", line, holds != ELSEWHERE)
                )
        if only:
            self.narrowing.append(Skip(block.written, line))
        if word.note is not None and not (only and "bound" in word.note.text):
            block.skips.append(word.note)
        elif set(word.dots) & _SKIPPING:
            block.skips.append(Skip(block.written, line))
        if word.condition:
            self._conditional(block, word.condition, line)
        if len(block.arguments) == 1 and not block.is_group and not word.dots and not block.skips:
            block.skips.append(Skip(f"{block.written} without a body", line))

    def _conditional(self, block: _Block, condition: str, line: int) -> None:
        holds = truth(condition)
        if holds == NEVER:
            block.skips.append(Skip(block.written, line))
        elif holds != ALWAYS:
            block.skips.append(Skip(f"{block.written} if not {condition}", line, ALWAYS - holds != ELSEWHERE))

    def _hook(self, name: str, given: Sequence[Node], place: Place) -> None:
        """A hook that skips what it sets up for."""
        for function in given:
            if function.type in FUNCTIONS and place.kind != "unreachable":
                body = Body(self.source, function, {}, self.names)
                body.follow(function.child_by_field_name("body"))
                for skip in body.skips:
                    if not skip.text.startswith("return"):
                        text = f"{name}'s {skip.text}"
                        self._around().append(Skip(text, skip.line, skip.certain))

    def _around(self) -> list[Skip]:
        """The skips of the group that is being read, or of the file."""
        return self.groups[-1].skips if self.groups else self.everywhere

    def skip(self, name: str, node: Node, place: Place) -> None:
        """A return from the function that declares a group leaves out what it would declare."""
        before = len(self.skips)
        super().skip(name, node, place)
        self._around().extend(self.skips[before:])

    def _skip_group(self, word: _Word, final: Link, node: Node, place: Place) -> None:
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
        exits = Body(self.source, self.root, {}, self.names).exit_name(links)
        if exits and not self.groups and not place.condition and _at_top(node):
            text = f"`{exits}` at the top of the file"
            self.narrowing.append(Skip(text, self.source.line(node)))
        return bool(exits)

    def other(self, node: Node, place: Place) -> bool:
        return node.type == "class_declaration"

    def _nested(self, node: Node, place: Place) -> None:
        """A function that declares tests does so where it is called; most are helpers."""
        name = self.bound_name(node)
        if name in self.words or (name and b"it(" not in self.source.code[node.start_byte : node.end_byte]):
            return
        super()._nested(node, place)

    def _case(self, block: _Block) -> Case:
        source = self.source
        around = [group for group in block.groups if group.arguments]
        skips = [*self.everywhere, *(s for each in [*around, block] for s in each.skips)]
        function = block.function
        body = Body(source, function or block.node, self.helpers, self.names)
        for argument in block.arguments[1:]:
            if function is not None and function.start_byte >= argument.start_byte:
                body.follow(function.child_by_field_name("body"))
                function = None
            elif argument.type == "identifier" and source.name(argument) in self.helpers:
                name = source.name(argument)
                body.helper(name, Check(name, name, 0, source.line(argument)), Place())
        stub = self.words.get("expect")
        if stub is not None and stub.note and any(c.text.startswith("expect") for c in body.checks):
            skips.append(stub.note)
        content = source.span(block.arguments[-1].start_byte, block.arguments[-1].end_byte)
        if len(block.arguments) < 2:
            content = ""
        if block.table is not None:
            content = f"{source.of(block.table)} {content}"
        rows = self._rows(block)
        names = [source.title(each.arguments[0]) for each in [*around, block]]
        own = [*dict.fromkeys([*skips, *body.skips])]
        return Case(
            " > ".join(names), source.line(block.node), content, tuple(body.checks), tuple(own),
            body.rows if rows is None else rows, self._is_empty(block),
        )  # fmt: skip

    def _is_empty(self, block: _Block) -> bool:
        function = block.function
        body = function.child_by_field_name("body") if function is not None else None
        return body is not None and not [c for c in body.named_children if c.type != "comment"]

    def _rows(self, block: _Block) -> int | None:
        """How many rows a test runs for: its own table's, that of a group, or of the loop around it."""
        rows = None
        for each in (*block.groups, block):
            count = each.place.rows
            if each.table is not None:
                count = self._table_rows(each.table)
            if count is not None:
                rows = count * (1 if rows is None else rows)
        return rows

    def _table_rows(self, table: Node) -> int | None:
        if table.type == "template_string":
            return len([line for line in self.source.name(table).splitlines() if "${" in line])
        return self.count(unwrapped(table))


def _base(name: str) -> str:
    found = _WORD.match(name)
    return found["base"] if found else name


def _at_top(node: Node) -> bool:
    """Whether no function and no block stands around a node."""
    parent = node.parent
    while parent is not None:
        if parent.type in FUNCTIONS or parent.type == "statement_block":
            return False
        parent = parent.parent
    return True


LANGUAGE = Language("JavaScript", covers, lambda path: bool(_COLLECTED.search(path)), read)
