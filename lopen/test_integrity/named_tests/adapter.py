"""Tests of C#, Kotlin, Ruby, PHP, C and C++ by name: which there are, and which are skipped. A table for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, NEVER, truth
from lopen.test_integrity.named_tests.tables import TABLES, Table
from lopen.test_integrity.suite import Case, Language, Skip, Suite, numbered
from lopen.test_integrity.syntax import ParsedFile, ancestors, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node


_CPP = re.compile(
    rb"^[ \t]*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE|TEST_CASE_METHOD|START_TEST|Test)"
    rb"[ \t]*\((?P<title>[^{;]{0,400}?)\)\s*\{",
    re.MULTILINE,
)
_CONDITIONAL = frozenset(
    {"if_statement", "if", "unless", "if_modifier", "unless_modifier", "if_expression", "preproc_if"}
)
_MAX_GROUPS = 8
_NOT_COLLECTED = re.compile(r"\b(?:private|protected)\s+(?:\w+\s+)*(?:function|fun|void|Task)\b")
_LEAVING = frozenset(
    {"return_statement", "return_expression", "return", "jump_expression", "throw_statement"}
)
_INNER_BLOCKS = frozenset({"block", "statements", "body_statement", "function_body"})


def _language(name: str, table: Table) -> Language:
    paths = re.compile(table.paths)

    def read(files: Mapping[str, str]) -> dict[str, Suite]:
        return {path: _suite(parsed_file(text, table.grammar), table) for path, text in files.items()}

    def covers(path: str) -> bool:
        return bool(paths.search(path))

    return Language(name, covers, covers, read)


def _suite(source: ParsedFile, table: Table) -> Suite:
    found = _macros(source) if not table.declared or table.grammar == "c" else []
    cases = [_macro_case(source, table, *each) for each in found]
    for match in source.matches(table.declared) if table.declared else ():
        cases += _cases(source, table, match)
    return Suite(numbered([case for case in cases if case is not None]), tuple(_focused(source, table)))


def _cases(source: ParsedFile, table: Table, match: Mapping[str, Node]) -> Iterator[Case]:
    node = match["test"]
    body = _body(node)
    head = _head(source, node, body)
    if not re.search(table.test, head, re.IGNORECASE if table.grammar == "php" else 0):
        return
    if _NOT_COLLECTED.search(head):
        return
    if "title" in match and match["title"].type not in {"string", "binary", "identifier"}:
        return
    groups = [each for each in ancestors(node) if each.type in table.groups][:_MAX_GROUPS]
    heads = [_head(source, each, _body(each)) for each in groups]
    names = [_name(source, each) for each in reversed(groups)]
    name = source.title(match.get("title") or match["name"])
    line = source.line(match.get("name") or match.get("word") or node)
    lines = [source.line(each) for each in groups]
    skips = [Skip(mark, at) for each, at in zip(heads, lines, strict=True) for mark in _marks(table, each)]
    skips += [Skip(mark, line) for mark in _marks(table, head)]
    if re.match(r"(?:skip|pending)\b", head) and body is None:
        return  # a call in a test
    if table.grammar == "ruby" and body is None and "title" in match:
        skips.append(Skip(f"{head.split(' ')[0]} without a body", line))
    skips += _calls(source, table, body)
    skips += _left_early(source, body)
    skips += _set_up(source, table, groups)
    yield Case(
        "::".join([*filter(None, names), name]),
        line,
        source.of(body),
        (),
        tuple(skips),
        None,
        _empty(source.of(body)) if body else False,
    )


def _empty(text: str) -> bool:
    return not text.strip("{} ").removeprefix("do").removesuffix("end").strip()


def _body(node: Node) -> Node | None:
    body = node.child_by_field_name("body") or node.child_by_field_name("block")
    bodies = (child for child in node.named_children if child.type in {"class_body", "function_body"})
    return body or next(bodies, None)


def _head(source: ParsedFile, node: Node, body: Node | None) -> str:
    """What stands before a body; where there is none, all of it."""
    text = source.span(node.start_byte, body.start_byte if body is not None else node.end_byte)
    comment = node.prev_named_sibling
    if source.language == "php" and comment is not None and comment.type == "comment":
        text = f"{source.name(comment)} {text}"
    return text


def _name(source: ParsedFile, group: Node) -> str:
    """A group's name: of a class, or the title of a call."""
    if group.type == "call":
        given = group.child_by_field_name("arguments")
        word = source.name(group.child_by_field_name("method"))
        titled = (
            given is not None
            and given.named_child_count
            and re.match(r"[xf]?(?:describe|context)|RSpec", word)
        )
        return source.title(given.named_children[0]) if titled and given is not None else ""
    return source.name(group.child_by_field_name("name"))


def _marks(table: Table, head: str) -> list[str]:
    return [" ".join(found.group().strip(" ,[]").split())[:80] for found in re.finditer(table.skipped, head)]


def _calls(source: ParsedFile, table: Table, body: Node | None) -> Iterator[Skip]:
    """The calls in a body that skip its test, each with the condition that it stands under."""
    if body is None:
        return
    pattern = re.compile(table.skips.encode(), re.MULTILINE)
    for found in pattern.finditer(source.code, body.start_byte, body.end_byte):
        at = found.start() + len(found.group()) - len(found.group().lstrip())
        node = source.root.descendant_for_byte_range(at, at + 1)
        if node is not None and node.start_byte >= body.start_byte:
            name = " ".join(found.group().decode("utf-8", "replace").rstrip("( )").split())
            yield from _conditional(source, name, node, body)


def _left_early(source: ParsedFile, body: Node | None) -> Iterator[Skip]:
    """A statement of the body itself that leaves it before its last one."""
    while body is not None and body.named_child_count == 1 and body.named_children[0].type in _INNER_BLOCKS:
        body = body.named_children[0]
    for statement in body.named_children[:-1] if body is not None else ():
        if statement.type in _LEAVING:
            yield Skip(source.of(statement)[:60].rstrip("; "), source.line(statement))
            return


def _conditional(source: ParsedFile, name: str, node: Node, body: Node) -> Iterator[Skip]:
    line = source.line(node)
    for parent in ancestors(node):
        if parent.start_byte < body.start_byte:
            break
        if parent.type in _CONDITIONAL:
            condition = source.of(parent.child_by_field_name("condition"))
            holds = truth(condition)
            if parent.type.startswith("unless"):
                holds, condition = ALWAYS - holds, f"not ({condition})"
            if holds != NEVER:
                yield Skip(f"{name} if {condition}" if holds != ALWAYS else name, line, holds != ELSEWHERE)
            return
    yield Skip(name, line)


_SET_UP = re.compile(
    r"\bsetUp\b|\bsetup\b|\[(?:SetUp|TestInitialize|OneTimeSetUp)|@Before\w*|^before\b|\bInitialize\b"
)


def _set_up(source: ParsedFile, table: Table, groups: Sequence[Node]) -> Iterator[Skip]:
    """Skips in what sets up for the tests of a group."""
    for group in groups:
        body = _body(group)
        for member in body.named_children if body is not None else ():
            inner = _body(member)
            if inner is not None and _SET_UP.search(_head(source, member, inner)):
                for skip in _calls(source, table, inner):
                    yield Skip(f"the set-up's {skip.text}", skip.line, skip.certain)


def _focused(source: ParsedFile, table: Table) -> Iterator[Skip]:
    """Ruby's words that keep all other tests from running."""
    if table.grammar == "ruby":
        for match in source.matches("(call method: (identifier) @word) @call"):
            head = _head(source, match["call"], _body(match["call"]))
            if re.match(r"^f(?:it|describe|context|specify)\b", head) or re.search(
                r",\s*(?::focus\b|focus: true)", head
            ):
                yield Skip(head[:60], source.line(match["word"]))


def _macros(source: ParsedFile) -> list[tuple[str, int, int, int]]:
    """Tests that are macros of C and C++: their heads, where they start, and where their bodies start and end."""
    return [
        (
            found.group().decode("utf-8", "replace"),
            found.start(),
            found.end() - 1,
            _closing(source.code, found.end() - 1),
        )
        for found in _CPP.finditer(source.bare)
    ]


def _closing(code: bytes, opening: int) -> int:
    """Behind the bracket that closes one."""
    depth = 0
    for found in re.compile(rb"[{}]").finditer(code, opening):
        depth += 1 if found.group() == b"{" else -1
        if depth == 0:
            return found.end()
    return len(code)


def _macro_case(
    source: ParsedFile, table: Table, head: str, start: int, opening: int, end: int
) -> Case | None:
    line = source.text.count(b"\n", 0, start) + 1
    word, _, given = head.strip().rstrip("{").strip().rstrip(")").partition("(")
    parts = [part.strip().strip('"') for part in given.split(",")]
    name = ".".join(parts[:2]) if word.strip() in _PAIRS else parts[0]
    node = source.root.descendant_for_byte_range(opening, end - 1)
    if node is None or _left_out(source, node):
        return None
    pattern = re.compile(table.skips.encode())
    skips = [Skip(mark, line) for mark in _marks(table, head)]
    for found in pattern.finditer(source.code, opening, end):
        inner = source.root.descendant_for_byte_range(found.start(), found.start() + 1)
        called = found.group().decode("utf-8", "replace").rstrip("( )")
        if inner is not None:
            skips += _conditional(source, called, inner, node)
    skips += _left_early(source, node)
    text = source.span(opening, end)
    return Case(name.replace("DISABLED_", ""), line, text, (), tuple(skips), None, not text.strip("{} "))


_PAIRS = frozenset({"TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "Test", "TEST_CASE_METHOD"})


def _left_out(source: ParsedFile, node: Node) -> bool:
    """Return True if code stands under a preprocessor condition that never holds."""
    return any(
        each.type == "preproc_if" and truth(source.of(each.child_by_field_name("condition"))) == NEVER
        for each in ancestors(node)
    )


LANGUAGES = tuple(_language(name, table) for name, table in TABLES.items())
