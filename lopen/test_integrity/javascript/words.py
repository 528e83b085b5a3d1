"""The words that declare JavaScript tests, under whatever names a file gives them: `it`, `xit as it`, `slow = it.skip`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lopen.test_integrity.suite import Skip
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

WORD = re.compile(r"^(?P<mark>[xf]?)(?P<base>describe|context|suite|it|test|specify)$")
SETUP = re.compile(
    r"(?:jest|vitest|vite|mocha|tests?|cypress|playwright|ava|global|env)[-_.]?[sS]etup|[sS]etup[-_.]?(?:[tT]est|[jJ]est|[vV]itest|[mM]ocha|[eE]nv|[fF]iles)"
    r"|(?:^|/)(?:cypress|test|tests|spec)/(?:.*/)?(?:support|helpers?|setup)\b"
)
_MARKS = {"x": ("skip",), "f": ("only",)}
SKIPPING = frozenset({"skip", "todo", "fixme", "failing", "fails", "fail", "ignore"})
_NAMESPACES = frozenset({"Deno", "QUnit", "ctx", "nodeTest", "vitest"})
_MEMBERS = frozenset({"test", "it", "describe", "suite"})
_BOUND = """
(variable_declarator name: (identifier) @name value: (_) @value)
(assignment_expression left: [(identifier) (member_expression)] @name right: (_) @value)
(function_declaration name: (identifier) @name) @value
"""
RENAMED = """
(import_specifier name: (identifier) @value alias: (identifier) @name)
(pair_pattern key: (property_identifier) @value value: (identifier) @name)
"""
_GLOBALS = re.compile(r"^(?:globalThis|global|window|self)\.")
_SAYING = re.compile(rb"\b(?:it|test|expect|assert|should)\b[.(]")
_CALLING = re.compile(rb"[\w$)\]]\s*\(")


GROUPS = frozenset({"describe", "context", "suite", "module"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word that declares tests, as resolved: `it`, or what `it` was bound to."""

    base: str
    dots: tuple[str, ...] = ()
    condition: str = ""  # the tests run where it holds
    note: Skip | None = None
    body: Node | None = None  # what a wrapper gives the word: the tests or the assertions are in there


class Words:
    """The words of one file."""

    def __init__(self, source: ParsedFile) -> None:
        self.source = source
        self.meanings: dict[str, Word] = {}
        self._bind()

    def _bind(self) -> None:
        """Find out which names stand for words of the test framework."""
        for match in self.source.matches(RENAMED):
            name, value = self.source.name(match["name"]), self.source.name(match["value"])
            if found := WORD.match(value):
                dots = _MARKS.get(found["mark"], ())
                note = Skip(f"{name} bound to {value}", self.source.line(match["value"]))
                self.meanings[name] = Word(found["base"], dots, "", note if "skip" in dots else None)
        for match in self.source.matches(_BOUND):
            name = _GLOBALS.sub("", self.source.of(match["name"]))
            own = bool(WORD.match(name)) or name == "expect"
            if not re.fullmatch(r"[\w$]+", name) or (own and not at_top(match["value"])):
                continue
            word = self._meaning(name, match["value"], own=own)
            if word is not None:
                self.meanings[name] = word

    def _meaning(self, name: str, value: Node, *, own: bool) -> Word | None:
        """The word that a name is bound to."""
        line = self.source.line(value)
        if value.type in FUNCTIONS:
            idle = own and self._does_nothing(value, name)
            note = Skip(f"a {name} of its own, which does nothing", line)
            return Word(_base(name), note=note) if idle else self._wrapped(value)
        if value.type == "ternary_expression":
            return self._chosen(value)
        word = self._bare_word(value)
        if word is None or not set(word.dots) & {*SKIPPING, "only"}:
            return word
        return Word(word.base, word.dots, "", Skip(f"{name} bound to {self.source.of(value)}", line))

    def _bare_word(self, node: Node) -> Word | None:
        """A word that is named and not called, such as `it.skip`."""
        links = self.source.chain(node)
        return self.resolve(links) if all(link.arguments is None for link in links) else None

    def _chosen(self, ternary: Node) -> Word | None:
        """`condition ? it : it.skip`."""
        words = [
            self._bare_word(part) if (part := ternary.child_by_field_name(f)) is not None else None
            for f in ("consequence", "alternative")
        ]
        if words[0] is None or words[1] is None:
            return None
        condition = self.source.of(ternary.child_by_field_name("condition"))
        skipped = [bool(set(word.dots) & SKIPPING) for word in words if word is not None]
        if skipped[0] == skipped[1]:
            return words[0]
        return Word(words[0].base, (), condition if skipped[1] else f"!({condition})")

    def _wrapped(self, function: Node) -> Word | None:
        """The word to which a function hands its title on."""
        body = function.child_by_field_name("body")
        given = self.source.of(function.child_by_field_name("parameters"))
        for call in self.source.find("(call_expression) @call", "call", body) if body is not None else []:
            links = self.source.chain(call)
            title = links[-1].arguments[:1] if links[-1].arguments else ()
            word = self.resolve(links) if title and title[0].type == "identifier" else None
            if word is not None and re.search(rf"\b{re.escape(self.source.of(title[0]))}\b", given):
                inner = next((each for each in links[-1].arguments or () if each.type in FUNCTIONS), None)
                says = inner and _SAYING.search(self.source.code, inner.start_byte, inner.end_byte)
                return replace(word, body=inner) if says else word
        return None

    def _does_nothing(self, function: Node, name: str) -> bool:
        """Return True if the function calls nothing; for `expect`, whether nothing in it can fail."""
        body = function.child_by_field_name("body")
        if body is None:
            return False
        if name == "expect":
            return not may_fail(self.source, body)
        return not _CALLING.search(self.source.code, body.start_byte, body.end_byte)

    def resolve(self, links: Sequence[Link]) -> Word | None:
        """The word that a chain starts with, and the dots behind it up to its first bracket."""
        first, *rest = links
        prefix = first.name
        if rest and prefix == "QUnit" and rest[0].name in SKIPPING | {"module", "only"}:
            return Word("module" if rest[0].name == "module" else "test", (rest[0].name,))
        namespace = len(prefix) <= 2 or prefix in _NAMESPACES
        if rest and rest[0].name in _MEMBERS and namespace and not WORD.match(prefix):
            first, *rest = rest
        word = self.meanings.get(first.name)
        if word is None and first.node.type == "ternary_expression":
            word = self._chosen(first.node)
        if word is None:
            found = WORD.match(first.name)
            if not found:
                return None
            word = Word(found["base"], _MARKS.get(found["mark"], ()))
        dots = [link.name for link in rest if link.name] if first.arguments is None else []
        return replace(word, dots=(*word.dots, *dots))


def _base(name: str) -> str:
    found = WORD.match(name)
    return found["base"] if found else name


def at_top(node: Node) -> bool:
    """Return True if no function and no block stands around a node."""
    parent = node.parent
    while parent is not None:
        if parent.type in FUNCTIONS or parent.type == "statement_block":
            return False
        parent = parent.parent
    return True
