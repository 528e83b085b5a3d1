"""The words that declare JavaScript tests, under whatever names a file gives them: `it`, `xit as it`, `slow = it.skip`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, NEVER, truth
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import Skip
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

WORD = re.compile(r"^(?P<mark>[xf]?)(?P<base>describe|context|suite|it|test|specify)$")
_MARKS = {"x": ("skip",), "f": ("only",)}
SKIPPING = frozenset({"skip", "todo", "fixme", "failing", "fails", "fail"})
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
_CALLING = re.compile(rb"[\w$)\]]\s*\(")


GROUPS = frozenset({"describe", "context", "suite", "module"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word that declares tests, as resolved: `it`, or what `it` was bound to."""

    base: str
    dots: tuple[str, ...] = ()
    condition: str = ""  # the tests run where it holds
    note: Skip | None = None


@dataclass(slots=True)
class Block:
    """A call that declares a group or a test, and what keeps what is in it from running."""

    word: Word
    written: str
    node: Node
    arguments: tuple[Node, ...]
    table: Node | None
    place: Place
    groups: tuple[Block, ...]
    skips: list[Skip] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        return self.word.base in GROUPS or bool(GROUPS & set(self.word.dots))

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


def marks(source: ParsedFile, block: Block) -> list[Skip]:
    """Note what the words and options of a block say about running it; return what narrows the run to it."""
    word, line = block.word, source.line(block.node)
    options = [a for a in block.arguments[1:] if a.type == "object"]
    only = "only" in word.dots
    for option in (pair for each in options for pair in each.named_children if pair.type == "pair"):
        key = source.name(option.child_by_field_name("key"))
        value = source.of(option.child_by_field_name("value"))
        holds = truth(value)
        if key == "only":
            only |= holds == ALWAYS
        elif key in {"skip", "todo", "fails"} and holds != NEVER:
            reason = "" if value[:1] in "\"'`" or holds == ALWAYS else f" if {value}"
            block.skips.append(Skip(f"{block.written} with {{ {key} }}{reason}", line, holds != ELSEWHERE))
    narrowing = [Skip(block.written, line)] if only else []
    if word.note is not None and not (only and "bound" in word.note.text):
        block.skips.append(word.note)
    elif set(word.dots) & SKIPPING:
        block.skips.append(Skip(block.written, line))
    if word.condition:
        _add_condition(block, word.condition, line)
    if len(block.arguments) == 1 and not block.is_group and not word.dots and not block.skips:
        block.skips.append(Skip(f"{block.written} without a body", line))
    return narrowing


def _add_condition(block: Block, condition: str, line: int) -> None:
    holds = truth(condition)
    if holds == NEVER:
        block.skips.append(Skip(block.written, line))
    elif holds != ALWAYS:
        block.skips.append(Skip(f"{block.written} if not {condition}", line, ALWAYS - holds != ELSEWHERE))


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
                return word
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
        return Word(word.base, (*word.dots, *dots), word.condition, word.note)


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


_ESCAPE = re.compile(
    r"\\(?:(?P<code>(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]+\}))|(?P<one>.))", re.DOTALL
)
_LONGEST_TITLE = 200  # characters


def title(source: ParsedFile, node: Node) -> str:
    """Return a title as a runner prints it, in one line; what only a run can tell stands as `${…}`."""
    text = source.name(node)
    if node.type not in {"string", "template_string"}:
        text = _unknown(text)
    for part in node.named_children:
        if part.type == "template_substitution":
            written = source.name(part)
            text = text.replace(written, _unknown(written[2:-1]), 1)
    text = _ESCAPE.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_TITLE else text[:_LONGEST_TITLE] + "${…}"


def _unknown(written: str) -> str:
    return f"${{{re.sub(r'[{}]', ' ', written)}}}"


def _unescaped(found: re.Match[str]) -> str:
    if code := found["code"]:
        number = int(code[1:].strip("{}"), 16)
        return chr(number) if number < 0x110000 else found[0]
    return " " if found["one"] in "nrtvfb\n" else found["one"]
