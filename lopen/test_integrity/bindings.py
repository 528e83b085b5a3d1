"""What names are bound to: functions, labelled blocks, and literal tables, whose rows are counted where the source spells them out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lopen.test_integrity.suite import words
from lopen.test_integrity.syntax import BINDINGS, COMMENTS, ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

LISTS = words(
    "array list tuple set dictionary literal_value array_expression array_initializer "
    "element_value_array_initializer tuple_expression"
)
_UNKNOWN = frozenset({"spread_element", "list_splat", "dictionary_splat", "ERROR"})
_HOLDERS = words(
    "composite_literal reference_expression as_expression satisfies_expression expression_list array_creation_expression"
)
_OF_MEMBERS = re.compile(
    r"(?P<object>Object\.(?:entries|keys|values)\()|new (?:Map|Set)\(|Array\.from\(|[\w$]+(?P<own>\.(?:entries|values)\(\))$"
)
_EACH = words("iter into_iter iter_mut enumerate copied cloned")
_PART = re.compile(
    r"^.*(?:\.slice\((?P<a>-?\d+)?(?:, (?P<b>-?\d+))?\)|\[(?P<c>-?\d*) ?: ?(?P<d>-?\d*)\]|\.take\((?P<e>\d+)\)|\.skip\((?P<f>\d+)\))$",
    re.DOTALL,
)


def row_count(source: ParsedFile, node: Node, named: Mapping[str, Node]) -> int | None:
    """How many rows a table has, literal or among the `named` ones; None where that is not known."""
    node = _iterated(source, node)
    literal = _members(source, node, named) or _literal(source, node, named)
    if literal is None:
        return _cut(source, node, named)
    rows = [child for child in literal.named_children if child.type not in COMMENTS]
    return None if any(row.type in _UNKNOWN for row in rows) else len(rows)


def _members(source: ParsedFile, node: Node, named: Mapping[str, Node]) -> Node | None:
    """The literal of whose members a list is made: `Object.entries(table)`, `new Map([…])`, `rows.entries()`."""
    found = _OF_MEMBERS.match(source.of(node)) if node.type in {"call_expression", "new_expression"} else None
    if found is None:
        return None
    given = node.child_by_field_name("arguments")
    if found["own"]:
        inner = node.named_children[0].named_children[0] if node.named_children[0].named_child_count else None
    else:
        inner = given.named_children[0] if given is not None and given.named_child_count == 1 else None
    if inner is not None and inner.type == "identifier":
        inner = named.get(source.name(inner), inner)
    while inner is not None and inner.type in _HOLDERS and inner.named_child_count:
        inner = inner.named_children[0]
    if inner is not None and inner.type == "object" and found["object"]:
        return inner
    return _literal(source, inner, named) if inner is not None else None


def _iterated(source: ParsedFile, node: Node) -> Node:
    """What an iterator of Rust goes over, each element once."""
    while node.type == "call_expression":
        member = node.child_by_field_name("function")
        if (
            member is None
            or member.type != "field_expression"
            or source.of(member).rpartition(".")[2] not in _EACH
        ):
            return node
        node = member.named_children[0]
    return node


def _cut(source: ParsedFile, node: Node, named: Mapping[str, Node]) -> int | None:
    """The rows of a table of which a part is taken: `rows.slice(0, 1)`, `rows[:1]`."""
    found = _PART.match(source.of(node))
    owner = node.named_children[0] if found and node.named_child_count else None
    if owner is not None and owner.type in {"member_expression", "field_expression"}:
        owner = owner.named_children[0]
    rows = row_count(source, owner, named) if owner is not None else None
    if found is None or rows is None:
        return None
    start, end = (
        int(text) if text else None
        for text in (found["a"] or found["c"] or found["f"], found["b"] or found["d"] or found["e"])
    )
    return len(range(rows)[start:end])


def _literal(source: ParsedFile, node: Node, named: Mapping[str, Node]) -> Node | None:
    """The literal table that an expression is or names."""
    if node.type in LISTS:
        return node
    if node.type in _HOLDERS:
        inner = node.child_by_field_name("body") or node.child_by_field_name("value")
        inner = inner or (node.named_children[0] if node.named_child_count else None)
        return _literal(source, inner, named) if inner is not None else None
    table = named.get(source.name(node)) if node.type == "identifier" else None
    return _literal(source, table, {}) if table is not None else None


def bound_name(source: ParsedFile, node: Node) -> str:
    """The name under which a function can be called; "" where it has none."""
    if (own := node.child_by_field_name("name")) is not None:
        return source.name(own)
    parent = node.parent
    while parent is not None and parent.type in {"parenthesized_expression", "expression_list"}:
        parent = parent.parent
    if parent is None or parent.type not in BINDINGS:
        return ""
    bound = source.of(parent.child_by_field_name(BINDINGS[parent.type]))
    return bound if re.fullmatch(r"[\w$]+", bound) else ""


def refers(source: ParsedFile, root: Node, name: str, node: Node) -> bool:
    """Return True if a root mentions a name outside the function that has it (and that function's declaration)."""
    if name == "_":
        return False
    pattern = re.compile(rb"(?<![\w$])" + re.escape(name.encode()) + rb"(?![\w$])")
    code = source.code
    before = len(pattern.findall(code, root.start_byte, node.start_byte))
    after = len(pattern.findall(code, node.end_byte, root.end_byte))
    ignored = re.compile(rb"(?<![\w$])_\w* = " + re.escape(name.encode()) + rb"\s*[;\n}]")  # `_ = check`
    after -= len(ignored.findall(code, node.end_byte, root.end_byte))
    declared = 0 if node.child_by_field_name("name") is not None else 1
    decorated = node.parent is not None and node.parent.type == "decorated_definition"
    return decorated or before + after > declared


def leaves_block(source: ParsedFile, node: Node) -> bool:
    """Return True if a `break` names a block, and no loop: what follows in the block is left out."""
    label = source.of(node.named_children[0]) if node.named_child_count else ""
    return any(
        parent.type == "labeled_statement"
        and source.of(parent.child_by_field_name("label")) == label
        and (body := parent.child_by_field_name("body")) is not None
        and body.type == "statement_block"
        for parent in (ancestors(node) if label else ())
    )


def rounds(loop: Node, rows: int | None) -> int | None:
    """How often a loop over so many rows goes round: once where its body ends with what leaves it."""
    body = loop.child_by_field_name("body")
    last = body.named_children[-1].type if body is not None and body.named_child_count else ""
    once = last in {"break_statement", "return_statement"}
    return min(rows, 1) if rows is not None and once else rows


def is_filtered(source: ParsedFile, table: Node) -> bool:
    """Return True if only some rows of a table are taken by `filter`, and nothing else takes the others."""
    found = re.match(r"([\w$]+)\.filter\(", source.of(table))
    taken = re.compile(rb"\b" + found[1].encode() + rb"\.filter\(") if found else None
    return taken is not None and len(taken.findall(source.code)) == 1


def ends_after_a_round(loop: Node) -> bool:
    """Return True if the last statement of a loop's body leaves the loop, whatever was found."""
    body = loop.child_by_field_name("body")
    while body is not None and body.type in {
        "block",
        "statement_list",
        "expression_statement",
        "labeled_statement",
    }:
        body = body.named_children[-1] if body.named_child_count else None
    return body is not None and body.type in {"break_statement", "break_expression"}


def is_constant(value: Node) -> bool:
    """Return True if a value of JavaScript is bound by `const`."""
    declaration = value.parent.parent if value.parent is not None else None
    return declaration is not None and declaration.children[0].type == "const"
