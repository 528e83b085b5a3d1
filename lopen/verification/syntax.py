"""Syntax trees of source files, read with tree-sitter. A grammar is imported when the first file needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from lopen.verification.test_files import words

if TYPE_CHECKING:
    from tree_sitter import Node as Node
    from tree_sitter import Parser

_GRAMMARS = {
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "python": ("tree_sitter_python", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}
GRAMMAR_OF = {
    "py": "python",
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    "c": "c",
    **dict.fromkeys(("h", "hh", "hpp", "cc", "cpp", "cxx"), "cpp"),
}
COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
STRINGS = words(
    "string_fragment string_content raw_string_literal_content regex_pattern interpreted_string_literal_content "
    "multiline_string_fragment jsx_text raw_string_content"
)
FUNCTIONS = words(
    "arrow_function function_expression generator_function function_declaration "
    "generator_function_declaration method_definition func_literal method_declaration "
    "closure_expression function_item lambda_expression function_definition lambda constructor_declaration"
)
BRANCHES = words("if_statement if_expression elif_clause ternary_expression")
_WRAPPERS = words(
    "parenthesized_expression await_expression non_null_expression as_expression satisfies_expression "
    "generic_function try_expression instantiation_expression await"
)
# The grammar of Rust takes a macro's arguments for tokens: the usual macros are read as calls, every byte at its place
_MACRO_CALL = re.compile(
    rb"\b((?:prop_|debug_)?assert(?:_eq|_ne)?|panic|unreachable|unimplemented|todo)!(?=\s*\()"
)
_INSIDE = re.compile(r"(?<=[(\[{.]) | (?=[)\]}.,;])")
_TRAILING = re.compile(r",(?=[)\]}])")
_QUOTED = re.compile(r"(\"(?:\\.|[^\"\\\n])*\")|'((?:\\[^'\"]|[^'\"\\\n])*)'")
_QUOTING = frozenset({"javascript", "typescript", "tsx", "python"})


@cache
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser  # costs 20 ms: only where a file is parsed

    module, function = _GRAMMARS[language]
    return Parser(Language(getattr(import_module(module), function)()))


class ParsedFile:
    """A parsed file. Positions are offsets in bytes; `code` has neither comments nor the contents of strings."""

    def __init__(self, text: str, language: str) -> None:
        self.language = language
        self.text = text.encode("utf-8", "replace")
        parsed = self.text
        if language == "rust":
            parsed = _MACRO_CALL.sub(rb"\1_", parsed).replace(b"vec![", b"   &[")
        self.root = _parser(language).parse(parsed).root_node
        self._bare = self._code = b""

    @property
    def code(self) -> bytes:
        """The file with blanks in place of comments and of what strings contain."""
        if not self._code:
            self._code = self._blanked(COMMENTS | STRINGS)
        return self._code

    @property
    def bare(self) -> bytes:
        """The file with blanks in place of comments."""
        if not self._bare:
            self._bare = self._blanked(COMMENTS)
        return self._bare

    def _blanked(self, kinds: frozenset[str]) -> bytes:
        result = bytearray(self.text)
        for node in nodes_of(self.root, kinds):
            start, end = node.start_byte, node.end_byte
            result[start:end] = re.sub(rb"[^\n]", b" ", self.text[start:end])
        return bytes(result)

    def span(self, start: int, end: int) -> str:
        """Return source text without comments and layout, so that a reformatted text is the same text."""
        text = " ".join(self.bare[start:end].decode("utf-8", "replace").split())
        text = _TRAILING.sub("", _INSIDE.sub("", text))
        if "'" in text and self.language in _QUOTING:
            text = _QUOTED.sub(lambda m: m[1] or f'"{m[2]}"', text)
        return text

    def of(self, node: Node | None) -> str:
        """Return a node's `span`; "" for none."""
        return self.span(node.start_byte, node.end_byte) if node is not None else ""

    def line(self, node: Node) -> int:
        """Return the line on which a node starts, from 1 on."""
        return int(node.start_point[0]) + 1

    def source(self, start: int, end: int) -> str:
        """Return source text as it was written."""
        return self.text[start:end].decode("utf-8", "replace")

    def name(self, node: Node | None) -> str:
        """Return a name, or the text of a plain string."""
        if node is None:
            return ""
        text = self.source(node.start_byte, node.end_byte)
        return text[1:-1] if text[:1] in {'"', "'", "`"} and len(text) > 1 else text


@lru_cache(maxsize=128)
def parsed_file(text: str, language: str) -> ParsedFile:
    """Return a parsed file; the same text is parsed once. Readers do not change it."""
    return ParsedFile(text, language)


def nodes_of(root: Node, kinds: frozenset[str]) -> Iterator[Node]:
    """Yield the outermost nodes of these kinds, in their order. No recursion: code may be nested thousands of levels deep."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in kinds:
            yield node
        else:
            waiting += reversed(node.children)


def unwrapped(node: Node) -> Node:
    """Return a node without the brackets and type assertions around it."""
    while node.type in _WRAPPERS and node.named_child_count == 1:
        node = node.named_children[0]
    return node
