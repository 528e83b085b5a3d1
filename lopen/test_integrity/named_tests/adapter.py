"""Tests of C#, Kotlin, Ruby, PHP, C and C++ by name: which there are, and which are skipped. A table for each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.named_tests.blocks import block_cases, focused_blocks
from lopen.test_integrity.named_tests.macros import macro_cases, unread_result
from lopen.test_integrity.named_tests.rows import given_rows, row_count, runs_once
from lopen.test_integrity.named_tests.skips import calls, left_early, left_out, marks, under_condition
from lopen.test_integrity.named_tests.tables import TABLES, Table
from lopen.test_integrity.suite import Case, Language, Skip, Suite, numbered
from lopen.test_integrity.syntax import ParsedFile, ancestors, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node


_MAX_GROUPS = 8
_EXTENDED = re.compile(r"(?:[:<]|\bextends)\s*([A-Z]\w+)")
_SHARED = "shared_examples "  # before the name of RSpec's group of examples, in the names of cases
_USE = "behaves like "
_USES = r"(?:it_behaves_like|it_should_behave_like|include_examples)$"
_NOT_COLLECTED = re.compile(r"\b(?:private|protected)\s+(?:\w+\s+)*(?:function|fun|void|Task)\b")


def _language(name: str, table: Table) -> Language:
    paths = re.compile(table.paths)

    def read(files: Mapping[str, str]) -> dict[str, Suite]:
        sources = {path: parsed_file(text, table.grammar) for path, text in files.items()}
        extended = frozenset(name for text in files.values() for name in _EXTENDED.findall(text))
        cases = {path: _all_cases(source, table, extended) for path, source in sources.items()}
        shared = (
            _shared([case for each in cases.values() for case in each]) if table.grammar == "ruby" else {}
        )
        return {
            path: Suite(
                numbered([each for case in cases[path] for each in _expanded(case, shared)]),
                tuple(_focused(source, table)),
            )
            for path, source in sources.items()
        }

    def covers(path: str) -> bool:
        return bool(paths.search(path))

    def collects(path: str) -> bool:
        return covers(path) and bool(re.search(table.runs, path))

    return Language(name, covers, collects, read)


def _all_cases(source: ParsedFile, table: Table, extended: frozenset[str]) -> list[Case]:
    cases = list(macro_cases(source, table)) if table.grammar in {"c", "cpp"} else []
    set_up: dict[int, tuple[Skip, ...]] = {}  # by group, for its many tests
    for match in source.matches(table.declared) if table.declared else ():
        cases += _cases(source, table, match, extended, set_up)
    cases += block_cases(source, table) if table.blocks else ()
    return _called(source, cases) if table.grammar == "c" else cases


def _called(source: ParsedFile, cases: Sequence[Case]) -> list[Case]:
    """The tests of a C file; where its own main function calls them, one that is not called never runs."""
    words = Counter(re.findall(rb"\w+", source.code))
    if not words[b"main"] and not words[b"RUN_TEST"]:
        return list(cases)
    lone = Skip("no call of it", 0)
    return [
        replace(case, skips=(*case.skips, replace(lone, line=case.line)))
        if words[case.name.encode()] == 1
        else case
        for case in cases
    ]


def _shared(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """RSpec's shared examples by the name of their group."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        for part in case.name.split("::")[:-1]:
            if part.startswith(_SHARED):
                found.setdefault(part.removeprefix(_SHARED), []).append(case)
    return found


def _expanded(case: Case, shared: Mapping[str, Sequence[Case]]) -> Iterator[Case]:
    """A test; in place of shared examples' definition none, in place of their use those that they define."""
    *around, short = case.name.split("::")
    if any(part.startswith(_SHARED) for part in around):
        return
    examples = shared.get(short.removeprefix(_USE), ()) if short.startswith(_USE) else ()
    for example in examples:
        rest = example.name.partition(f"{_SHARED}{short.removeprefix(_USE)}::")[2]
        name = "::".join([*around, rest])
        yield replace(example, name=name, line=case.line, skips=(*case.skips, *example.skips))
    if not examples:
        yield case


def _cases(
    source: ParsedFile,
    table: Table,
    match: Mapping[str, Node],
    extended: frozenset[str],
    set_up: dict[int, tuple[Skip, ...]],
) -> Iterator[Case]:
    node = match["test"]
    body = _body(node)
    head = _head(source, node, body)
    if not re.search(table.test, head, re.IGNORECASE if table.grammar == "php" else 0):
        return
    if _NOT_COLLECTED.search(head):
        return
    if "title" in match and match["title"].type not in {"string", "binary", "identifier", "block"}:
        return
    groups = [each for each in ancestors(node) if each.type in table.groups][:_MAX_GROUPS]
    heads = [_head(source, each, _body(each)) for each in groups]
    names = [_name(source, each) for each in reversed(groups)]
    name = source.title(match.get("title") or match["name"])
    word = source.name(match.get("word"))
    if re.match(_USES, word):
        name = f"{_USE}{name}"
    line = source.line(match.get("name") or match.get("word") or node)
    lines = [source.line(each) for each in groups]
    skips = [Skip(mark, at) for each, at in zip(heads, lines, strict=True) for mark in marks(table, each)]
    skips += [Skip(mark, line) for mark in marks(table, head)]
    if re.match(r"(?:skip|pending)\b", head) and body is None:
        return  # a call in a test
    if table.grammar == "ruby" and body is None and "title" in match and not name.startswith(_USE):
        skips.append(Skip(f"{head.split(' ')[0]} without a body", line))
    skips += _not_found(source, groups, heads, extended)
    skips += [*left_out(source, node), *under_condition(source, node)]
    skips += calls(source, table, body)
    skips += left_early(source, body)
    for group in groups:
        if group.id not in set_up:
            set_up[group.id] = tuple(_set_up(source, table, [group]))
        skips += set_up[group.id]
    yield Case(
        "::".join([*filter(None, names), name]),
        line,
        source.of(body) if body is not None else head,
        (),
        tuple(skips),
        row_count(source, head, node),
        _empty(source.of(body)) if body else False,
        given=f"{head} {given_rows(source, head)}",
        plain=runs_once(source, head, node),
    )


def _not_found(
    source: ParsedFile, groups: Sequence[Node], heads: Sequence[str], extended: frozenset[str]
) -> Iterator[Skip]:
    """Yield why the runner finds no tests in the classes around one."""
    for group, head in zip(groups, heads, strict=True):
        name, line = source.name(group.child_by_field_name("name")), source.line(group)
        if group.type not in {"class", "class_declaration"} or name in extended:
            continue
        if re.search(r"\babstract\b", head):
            yield Skip(f"abstract class {name}", line, certain=False)
        elif source.language == "ruby" and group.child_by_field_name("superclass") is None:
            yield Skip(f"class {name} without a class of tests above it", line)
        elif b"VisualStudio.TestTools" in source.text and "[TestClass" not in head:
            yield Skip(f"class {name} without [TestClass]", line)


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
            and re.match(r"[xf]?(?:describe|context)|RSpec|shared_examples", word)
        )
        if titled and word.startswith("shared_examples"):
            return _SHARED + source.title(given.named_children[0]) if given is not None else ""
        return source.title(given.named_children[0]) if titled and given is not None else ""
    return source.name(group.child_by_field_name("name"))


_SET_UP = re.compile(
    r"\bsetUp\b|\bsetup\b|\[(?:SetUp|TestInitialize|OneTimeSetUp)|@Before\w*|^before\b|\bInitialize\b"
)


def _set_up(source: ParsedFile, table: Table, groups: Sequence[Node]) -> Iterator[Skip]:
    """Skips in what sets up for the tests of a group."""
    for group in groups:
        body = _body(group)
        while (
            body is not None
            and body.named_child_count == 1
            and body.named_children[0].type == "body_statement"
        ):
            body = body.named_children[0]
        for member in body.named_children if body is not None else ():
            inner = _body(member)
            if inner is not None and _SET_UP.search(_head(source, member, inner)):
                for skip in calls(source, table, inner):
                    yield Skip(f"the set-up's {skip.text}", skip.line, skip.certain)


def _focused(source: ParsedFile, table: Table) -> Iterator[Skip]:
    """Ruby's words that keep all other tests from running, and what does so in other languages."""
    if table.blocks:
        yield from focused_blocks(source, table)
    if table.grammar in {"c", "cpp"}:
        yield from unread_result(source)
    if table.grammar == "ruby":
        for each in source.root.named_children:
            if each.type in {"if_modifier", "unless_modifier"} and source.of(each).startswith("return "):
                yield Skip(source.of(each)[:80], source.line(each), "ENV" in source.of(each))
        for match in source.matches("(call method: (identifier) @word) @call"):
            head = _head(source, match["call"], _body(match["call"]))
            if re.match(r"^f(?:it|describe|context|specify)\b", head) or re.search(
                r",\s*(?::focus\b|focus: true)", head
            ):
                yield Skip(head[:60], source.line(match["word"]))


LANGUAGES = tuple(_language(name, table) for name, table in TABLES.items())
