"""Mutants of the functions that a change adds or rewrites: small faults that its tests are to notice.

Each mutant is one edit of one file: an operator, a constant, a returned value or a condition. The same change gives
the same mutants (docs/reference/completion.md).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Literal

from lopen.verification.syntax import (
    BRANCHES,
    COMMENTS,
    FUNCTIONS,
    GRAMMAR_OF,
    ParsedFile,
    parsed_file,
    unwrapped,
)
from lopen.verification.test_files import MAX_CHARS, FileChange, looks_like_test, words

if TYPE_CHECKING:
    from lopen.verification.syntax import Node

MOST = 12
MOST_OF_ONE = 6  # function
MOST_CONSIDERED = 2_000  # edits of one function
LONGEST_EDITED = 2_000  # bytes that one edit replaces
_SHOWN = 60  # characters of the text that was replaced

_MUTATED = words("python javascript typescript tsx go rust java")
_NOT_CODE = re.compile(
    r"(?:^|/)(?:setup|noxfile|conf)\.py$|(?:^|/)build\.rs$|\.config\.[cm]?[jt]s$|\.d\.[cm]?ts$|\.min\.js$"
    r"|(?:^|/)(?:node_modules|vendor|third_party|dist|migrations)/|_pb2(?:_grpc)?\.py$|\.pb\.go$"
    r"|(?:^|/)(?:bench(?:mark)?s?|examples?|docs?|scripts?)/|(?:^|/)(?:bench|benchmark)(?:_\w+)?\.\w+$"
)
_OPERATORS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*",
    "<": ">=", "<=": ">", ">": "<=", ">=": "<",
    "==": "!=", "!=": "==", "===": "!==", "!==": "===",
    "&&": "||", "||": "&&", "and": "or", "or": "and",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
    "&": "|", "|": "&", "^": "&", "<<": ">>", ">>": "<<",
    "+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "|=": "&=", "&=": "|=",
    "++": "--", "--": "++",
}  # fmt: skip
_COMPARISONS = words("< <= > >= == != === !== in not_in is is_not") | {"not in", "is not"}
_WITH_OPERATOR = words(
    "binary_operator comparison_operator boolean_operator augmented_assignment binary_expression "
    "augmented_assignment_expression update_expression inc_statement dec_statement assignment_statement "
    "compound_assignment_expr assignment_expression"
)
_NEGATIONS = words("not_operator unary_expression")
_NUMBERS = words(
    "integer float number int_literal float_literal integer_literal decimal_integer_literal "
    "decimal_floating_point_literal"
)
_BOOLEANS = words("true false boolean_literal")
_RETURNS = words("return_statement return_expression")
_FLIPPED = {"True": "False", "False": "True", "true": "false", "false": "true"}
_BLOCKS = words("block statement_block")
_LEFT_OUT = words(
    "type type_annotation type_arguments type_parameters array_type sized_type_specifier decorator attribute_item "
    "inner_attribute_item marker_annotation annotation assert_statement macro_invocation import_statement "
    "import_from_statement use_declaration array_declarator raise_statement throw_statement comment "
    "parameter_list type_identifier generic_type reference_type"
)
_CALLS = words("call call_expression method_invocation")
_LOGGING = re.compile(
    r"(?:self\.|this\.)?_?(?:log|logger|logging|console|slog|tracing|warnings)\b", re.IGNORECASE
)
_FOR_READERS = COMMENTS | words("type type_annotation")  # of Python and TypeScript
_SEPARATORS = frozenset({"", ":", "->", ",", ";"})
_EMPTY = re.compile(r"None|null|undefined|0|\"\"|''")
_NOTHING = {
    "python": "None",
    "javascript": "undefined",
    **dict.fromkeys(("typescript", "tsx"), "(undefined as never)"),
}

Kind = Literal["return", "condition", "operator", "constant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit: the bytes from `start` to `end` of the file at `path` become `now`. `was` is shortened for showing."""

    path: str
    line: int
    start: int
    end: int
    was: str
    now: str

    def applied(self, content: bytes) -> bytes:
        """Return the file's content with the edit."""
        return content[: self.start] + self.now.encode() + content[self.end :]


def mutants(
    changes: Sequence[FileChange], stated: str = "", most: int = MOST, most_of_one: int = MOST_OF_ONE
) -> tuple[Mutant, ...]:
    """Return at most `most` mutants of the functions that differ between the two sides, `most_of_one` of each function.

    The weightiest come first. Each function gets its turn, those that the `stated` criteria name first; in one, kinds take turns, and lines that
    the change added come first. Tests and their support, configuration, generated files and languages without a
    grammar have none.
    """
    spoken = set(re.findall(r"\w+", stated))
    per_function = [
        (
            name not in spoken,
            hashlib.sha256(f"{change.path}\0{function}".encode("utf-8", "replace")).digest(),
            edits,
        )
        for change in changes
        for name, function, edits in (_functions(change) if language_of(change.path) in _MUTATED else ())
    ]
    turns = zip_longest(*(edits[:most_of_one] for *_, edits in sorted(per_function, key=lambda row: row[:2])))
    return tuple([mutant for turn in turns for mutant in turn if mutant is not None][:most])


def language_of(path: str) -> str | None:
    """Return the grammar for a source file whose functions can be broken; None for tests and files without behaviour."""
    if _NOT_CODE.search(path) or looks_like_test(path):
        return None
    return GRAMMAR_OF.get(path.rpartition(".")[2])


def _functions(change: FileChange) -> Iterator[tuple[str, str, list[Mutant]]]:
    """Yield the changed functions of a file, as name and source text, with the mutants of each in the order of their worth."""
    old_lines = {line.strip() for line in (change.before or "").encode("utf-8", "replace").split(b"\n")}
    lines = (change.after or "").encode("utf-8", "replace").split(b"\n")
    for after, node in changed_functions(change):
        counts: Counter[tuple[bool, Kind]] = Counter()
        ranked = []
        for kind, mutant in _edits(after, node, change.path):
            stays = lines[mutant.line - 1].strip() in old_lines
            counts[stays, kind] += 1
            ranked.append((stays, counts[stays, kind], mutant.start, mutant))
        if ranked:
            name = after.name(node.child_by_field_name("name"))
            yield name, after.of(node), [mutant for *_, mutant in sorted(ranked, key=lambda row: row[:3])]


def changed_functions(change: FileChange) -> Iterator[tuple[ParsedFile, Node]]:
    """Yield the outermost functions that a change adds or rewrites; none of a file that cannot be read for certain."""
    language = language_of(change.path)
    after = _parsed(change.after, language)
    if after is None or after.root.has_error or "\ufffd" in (change.after or ""):
        return
    before = _parsed(change.before, language)
    known = {_behaviour(before, node) for node in _outermost(before, before.root)} if before else set()
    yield from (
        (after, node) for node in _outermost(after, after.root) if _behaviour(after, node) not in known
    )


def _behaviour(parsed: ParsedFile, function: Node) -> tuple[str, ...]:
    """Return the words of a function, less what says nothing to the machine: comments, documentation, noted types."""
    found: list[str] = []
    waiting = [function]
    while waiting:
        node = waiting.pop()
        if node.type in _FOR_READERS or _is_documentation(node):
            continue
        if node.child_count and node.type != "string":
            waiting += reversed(node.children)
        elif (word := parsed.of(node)) not in _SEPARATORS:
            found.append(word)
    return tuple(found)


def _is_documentation(node: Node) -> bool:
    return (
        node.type == "expression_statement"
        and node.prev_named_sibling is None
        and node.named_child_count == 1
        and node.named_children[0].type == "string"
    )


def _parsed(text: str | None, language: str | None) -> ParsedFile | None:
    if not text or language is None or len(text) > MAX_CHARS or "\0" in text:
        return None
    return parsed_file(text, language)


def _outermost(parsed: ParsedFile, root: Node) -> Iterator[Node]:
    """Yield the functions that are in no other function, without tests beside the code (Rust)."""
    waiting = [root]  # no recursion: an expression may be nested thousands of levels deep
    while waiting:
        node = waiting.pop()
        if node.type in FUNCTIONS:
            yield node
            continue
        test = False
        below = []
        for child in node.named_children:
            if child.type == "attribute_item":
                test = test or bool(re.search(r"\btest\b", parsed.of(child)))
                continue
            if not test:
                below.append(child)
            test = False
        waiting += reversed(below)


def _edits(parsed: ParsedFile, function: Node, path: str) -> Iterator[tuple[Kind, Mutant]]:
    seen: set[tuple[int, int]] = set()
    for kind, start, end, now in islice(_candidates(parsed, function), MOST_CONSIDERED):
        if end - start > LONGEST_EDITED:
            continue
        was = parsed.text[start:end].decode("utf-8", "replace")
        if (start, end) in seen or was == now:
            continue
        seen.add((start, end))
        line = parsed.text.count(b"\n", 0, start) + 1
        shown = " ".join(was.split())
        yield (
            kind,
            Mutant(path, line, start, end, shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…", now),
        )


_Candidate = tuple[Kind, int, int, str]


def _candidates(parsed: ParsedFile, function: Node) -> Iterator[_Candidate]:
    """Yield the edits in a function, each node's before its children's."""
    waiting = [function]
    while waiting:
        node = waiting.pop()
        if node.type in _LEFT_OUT or (node.type in _CALLS and _LOGGING.match(parsed.name(node))):
            continue
        yield from _of_node(parsed, node)
        if node.type not in _BOOLEANS:
            waiting += reversed(node.children)


def _of_node(parsed: ParsedFile, node: Node) -> Iterator[_Candidate]:
    kind = node.type
    if kind in _RETURNS or kind in FUNCTIONS:
        yield from _returned(parsed, node)
    if kind in BRANCHES and (condition := node.child_by_field_name("condition")) is not None:
        yield from _negated(parsed, condition)
    if kind in _WITH_OPERATOR:
        for child in node.children:
            if not child.is_named and (now := _OPERATORS.get(parsed.name(child))):
                yield "operator", child.start_byte, child.end_byte, now
    elif kind in _NEGATIONS and node.child_count == 2 and parsed.name(node.children[0]) in {"not", "!"}:
        yield "operator", node.start_byte, node.end_byte, f"({_text(parsed, node.children[1])})"
    elif kind in _NUMBERS and (number := re.fullmatch(r"(\d{1,9})((?:\.\d+)?)", parsed.name(node))):
        yield "constant", node.start_byte, node.end_byte, f"{int(number[1]) + 1}{number[2]}"
    elif kind in _BOOLEANS and (flipped := _FLIPPED.get(_text(parsed, node))):
        yield "constant", node.start_byte, node.end_byte, flipped


def _negated(parsed: ParsedFile, condition: Node) -> Iterator[_Candidate]:
    """Negate a condition; a comparison has its operator turned around, and a negation taken away, by themselves."""
    inner = unwrapped(condition)
    operators = {parsed.name(child) for child in inner.children if not child.is_named}
    alone = inner.type in _WITH_OPERATOR and bool(operators & _COMPARISONS)
    if alone or inner.type in _NEGATIONS or inner.type.startswith("let_"):
        return
    form = "not ({})" if parsed.language == "python" else "!({})"
    yield "condition", inner.start_byte, inner.end_byte, form.format(_text(parsed, inner))


def _returned(parsed: ParsedFile, node: Node) -> Iterator[_Candidate]:
    """Return nothing, where no type stands against it."""
    value, now = _value(node), _NOTHING.get(parsed.language)
    if value is None or now is None or value.type in _BOOLEANS or value.type in _NEGATIONS:
        return
    if not _EMPTY.fullmatch(_text(parsed, value)):
        yield "return", value.start_byte, value.end_byte, now


def _value(node: Node) -> Node | None:
    """The value that a return statement, or an arrow function without a block, gives."""
    if node.type in _RETURNS:
        return node.named_children[0] if node.named_child_count else None
    body = node.child_by_field_name("body")
    return body if node.type == "arrow_function" and body is not None and body.type not in _BLOCKS else None


def _text(parsed: ParsedFile, node: Node) -> str:
    return parsed.text[node.start_byte : node.end_byte].decode("utf-8", "replace")
