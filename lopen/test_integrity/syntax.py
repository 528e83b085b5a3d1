"""Syntax trees of source files, read with tree-sitter. A grammar is imported when the first file needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from lopen.test_integrity.rust.macros import readable_macros
from lopen.test_integrity.suite import words

if TYPE_CHECKING:
    from tree_sitter import Node as Node
    from tree_sitter import Parser, Query

_GRAMMARS = {
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "python": ("tree_sitter_python", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}
COMMENTS = frozenset({"comment", "line_comment", "block_comment", "multiline_comment"})
_STRINGS = words(
    "string_fragment string_content raw_string_literal_content escape_sequence regex_pattern "
    "interpreted_string_literal_content multiline_string_fragment character jsx_text heredoc_content "
    "raw_string_content string_literal_content verbatim_string_literal character_literal nowdoc_string"
)
FUNCTIONS = words(
    "arrow_function function_expression generator_function function_declaration "
    "generator_function_declaration method_definition func_literal method_declaration "
    "closure_expression function_item lambda_expression function_definition lambda "
    "constructor_declaration"
)
LEAVING = words(
    "return_statement throw_statement raise_statement break_statement continue_statement "
    "return_expression break_expression continue_expression"
)
WORDS = COMMENTS | words(  # names and literals: there is nothing in them to follow
    "identifier property_identifier field_identifier type_identifier package_identifier shorthand_property_identifier "
    "number int_literal float_literal integer_literal decimal_integer_literal decimal_floating_point_literal "
    "boolean_literal char_literal string string_literal interpreted_string_literal raw_string_literal"
)
BRANCHES = frozenset(
    {"if_statement", "if_expression", "elif_clause", "ternary_expression", "guard_statement"}
)
LOOPS = words(
    "for_statement for_in_statement enhanced_for_statement for_expression while_statement "
    "while_expression do_statement loop_expression"
)
TRIES = frozenset({"try_statement", "try_with_resources_statement"})
HANDLERS = frozenset({"catch_clause", "except_clause", "except_group_clause"})
BINDINGS = {
    "variable_declarator": "name",
    "assignment": "left",
    "assignment_expression": "left",
    "short_var_declaration": "left",
    "assignment_statement": "left",
    "var_spec": "name",
    "let_declaration": "pattern",
}
_CALLED = {"call_expression": "function", "call": "function", "new_expression": "constructor"}
_CALLED |= {"macro_invocation": "macro", "object_creation_expression": "type"}
CALLS = frozenset({*_CALLED, "method_invocation"})
_MEMBERS = {
    "member_expression": ("object", "property"),
    "subscript_expression": ("object", "index"),
    "selector_expression": ("operand", "field"),
    "field_expression": ("value", "field"),
    "scoped_identifier": ("path", "name"),
    "attribute": ("object", "attribute"),
    "field_access": ("object", "field"),
}
_WRAPPERS = words(
    "parenthesized_expression await_expression non_null_expression as_expression satisfies_expression "
    "generic_function try_expression instantiation_expression await"
)
_FAILS = re.compile(
    rb"\b(?:throw|raise|panic)\b|\bassert|\bexpect\s*\(|\bfail\w*\s*\(|\breject\w*\s*\(|\bdone\s*\("
    rb"|\.(?:Error|Fatal)f?\(|\b_?exit\s*\("
)
_INSIDE = re.compile(r"(?<=[(\[{.]) | (?=[)\]}.,;])")
_TRAILING = re.compile(r",(?=[)\]}])")
_QUOTED = re.compile(r"(\"(?:\\.|[^\"\\\n])*\")|'((?:\\[^'\"]|[^'\"\\\n])*)'")


_TYPED = frozenset({"typescript", "tsx"})


@cache
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser  # costs 20 ms: only where a file is parsed

    module, function = _GRAMMARS[language]
    return Parser(Language(getattr(import_module(module), function)()))


@cache
def _query(language: str, pattern: str) -> Query:
    from tree_sitter import Query

    parsed_by = _parser(language).language
    assert parsed_by is not None
    return Query(parsed_by, pattern)


@dataclass(frozen=True, slots=True)
class Link:
    """One part of a chain of calls. `arguments` is None where the part is not called; `node` is the part's name."""

    name: str
    arguments: tuple[Node, ...] | None
    node: Node


class ParsedFile:
    """A parsed file. Positions are offsets in bytes; `code` has neither comments nor the contents of strings."""

    def __init__(self, text: str, language: str) -> None:
        self.language = language
        self.text = text.encode("utf-8", "replace")
        parsed = readable_macros(self.text) if language == "rust" else self.text
        if language in _TYPED:
            parsed = parsed.replace(b"export type *", b"export      *")  # which the grammar does not know
        self.root = _parser(language).parse(parsed).root_node
        self._bare = self._code = b""
        self._spans: dict[tuple[int, int], str] = {}

    @property
    def code(self) -> bytes:
        """The file with blanks in place of comments and of what strings contain."""
        if not self._code:
            kinds = " ".join(f"({kind})" for kind in sorted(_STRINGS & self._kinds()))
            self._code = self._blanked(self.bare, f"[{kinds}]") if kinds else self.bare
        return self._code

    @property
    def bare(self) -> bytes:
        """The file with blanks in place of comments."""
        if not self._bare:
            kinds = " ".join(f"({kind})" for kind in sorted(COMMENTS & self._kinds()))
            self._bare = self._blanked(self.text, f"[{kinds}]") if kinds else self.text
        return self._bare

    def _kinds(self) -> frozenset[str]:
        return _node_kinds(self.language)

    def _blanked(self, text: bytes, pattern: str) -> bytes:
        result = bytearray(text)
        for node in self.find(f"{pattern} @found", "found"):
            start, end = node.start_byte, node.end_byte
            result[start:end] = b"".join(b"\n" if c == 10 else b" " for c in text[start:end])
        return bytes(result)

    def find(self, pattern: str, capture: str, node: Node | None = None) -> list[Node]:
        """The nodes that a query captures, in their order."""
        from tree_sitter import QueryCursor

        found = QueryCursor(_query(self.language, pattern)).captures(node or self.root)
        return sorted(found.get(capture, []), key=lambda each: each.start_byte)

    def matches(self, pattern: str, node: Node | None = None) -> list[dict[str, Node]]:
        """The matches of a query in a node (or the file): the node of each of its captures."""
        from tree_sitter import QueryCursor

        found = QueryCursor(_query(self.language, pattern)).matches(node or self.root)
        return [{name: nodes[0] for name, nodes in captures.items()} for _, captures in found]

    def functions(self, pattern: str) -> list[tuple[str, Node]]:
        """Functions by name: `pattern` captures each as `function` and its name as `name`."""
        return [(self.name(found["name"]), found["function"]) for found in self.matches(pattern)]

    def span(self, start: int, end: int) -> str:
        """Source text without comments and layout, so that a reformatted text is the same text."""
        known = self._spans.get((start, end))
        if known is None:
            text = " ".join(self.bare[start:end].decode("utf-8", "replace").split())
            if " " in text or "," in text:
                text = _TRAILING.sub("", _INSIDE.sub("", text))
            quoted = "'" in text and self.language in _QUOTING
            known = _QUOTED.sub(lambda m: m[1] or f'"{m[2]}"', text) if quoted else text
            self._spans[start, end] = known
        return known

    def of(self, node: Node | None) -> str:
        """A node's `span`; "" for none."""
        return self.span(node.start_byte, node.end_byte) if node is not None else ""

    def name(self, node: Node | None) -> str:
        """A name, or what a plain string says."""
        if node is None:
            return ""
        text = self.text[node.start_byte : node.end_byte].decode("utf-8", "replace")
        return text[1:-1] if text[:1] in {'"', "'", "`"} and len(text) > 1 else text

    def title(self, node: Node) -> str:
        """A test's title as one line."""
        return " ".join(self.name(node).split())[:200]

    def line(self, node: Node) -> int:
        """The line on which a node starts, from 1 on."""
        return int(node.start_point[0]) + 1

    def chain(self, node: Node) -> list[Link]:
        """A call as its parts from the left: `expect(a).not.toBe(b)` is `expect(a)`, `not`, `toBe(b)`."""
        links: list[Link] = []
        called: tuple[Node, ...] | None = None
        while True:
            kind = node.type
            inner: Node | None
            if kind in _CALLED:
                if called is not None:
                    links.append(Link("", called, node))
                called, inner = arguments(node), node.child_by_field_name(_CALLED[kind])
            elif kind == "method_invocation":
                name = node.child_by_field_name("name")
                links.append(Link(self.name(name), arguments(node), name or node))
                called, inner = None, node.child_by_field_name("object")
                if inner is None:
                    break
            elif kind in _MEMBERS:
                owner, member = _MEMBERS[kind]
                name = node.child_by_field_name(member)
                links.append(Link(self.name(name), called, name or node))
                called, inner = None, node.child_by_field_name(owner)
            elif kind in _WRAPPERS and node.named_child_count == 1:
                inner = node.named_children[0]
            else:
                simple = not node.named_child_count or kind in {"type_identifier", "scoped_type_identifier"}
                links.append(Link(self.name(node) if simple else "", called, node))
                break
            if inner is None:
                break
            node = inner
        return links[::-1]


@lru_cache(maxsize=128)
def parsed_file(text: str, language: str) -> ParsedFile:
    """Return a parsed file. Several rules read the same file: it is parsed once. Readers do not change it."""
    return ParsedFile(text, language)


_QUOTING = frozenset({"javascript", "typescript", "tsx", "python", "ruby", "php"})


@cache
def _node_kinds(language: str) -> frozenset[str]:
    grammar = _parser(language).language
    assert grammar is not None
    names = (grammar.node_kind_for_id(number) for number in range(grammar.node_kind_count))
    return frozenset(name for name in names if name)


def arguments(call: Node) -> tuple[Node, ...]:
    """A call's arguments; those of a Rust macro are its tokens."""
    listed = call.child_by_field_name("arguments")
    if listed is None:
        return ()
    if listed.type == "template_string":
        return (listed,)
    return tuple(child for child in listed.named_children if child.type not in COMMENTS)


def dotted(links: list[Link]) -> str:
    """The names of a chain with dots between them."""
    return ".".join(link.name for link in links if link.name)


def ancestors(node: Node) -> Iterator[Node]:
    """The nodes around a node, from the inside out."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def unwrapped(node: Node) -> Node:
    """A node without the brackets and type assertions around it."""
    while node.type in _WRAPPERS and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def may_fail(source: ParsedFile, node: Node) -> bool:
    """Return True if something in a function or a handler may fail the test."""
    return bool(_FAILS.search(source.code, node.start_byte, node.end_byte))
