"""Rust tests that no function of the file is: rows of a macro that writes tests, and examples in documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import split_arguments
from lopen.test_integrity.rust.checks import asserted
from lopen.test_integrity.suite import Case, Check, Skip
from lopen.test_integrity.syntax import ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASSERTED = re.compile(r"\b((?:prop_|debug_)?assert\w*)!\s*[(\[{]")
_WRITES_TESTS = re.compile(r"#\[(?:[\w:$]*\btest\b|rstest)")
_NAMED_ROW = re.compile(r"^(?:#\[[^\]]*\]\s*)*(?:fn\s+)?([a-z_]\w*)\s*(?::|=|,|\(|\{|$)")
_IGNORED_ROW = re.compile(r"#\[ignore\b")
_DOCUMENTED = re.compile(r"^\s*//[/!] ?(.*)$")
_FENCE = re.compile(r"^\s*(?P<sign>```+|~~~+)(?P<said>[^`]*)$")
_ITEM = re.compile(
    r"\b(?:fn|struct|enum|union|trait|mod|macro_rules!|type|const|static|impl(?:<[^>]*>)?)\s+(\w+)"
)
_RUST = re.compile(
    r"^(?:rust|edition\d+|ignore[\w-]*|no_run|should_panic|compile_fail|standalone\w*|test_harness|E\d+)$"
)
_TURNING = frozenset({"should_panic", "compile_fail"})


def written_by_macros(source: ParsedFile, item: Node, macros: Mapping[str, Node]) -> Iterator[Case]:
    """Yield the tests that a call of one of these macros writes: a row is a test."""
    call = item.named_children[0] if item.type == "expression_statement" and item.named_children else item
    name = source.name(call.child_by_field_name("macro"))
    if name not in macros:
        return
    written = source.of(macros[name])
    checks = _checks(written, source.line(call))
    text = source.of(call).partition("!")[2].strip(" ;")
    inner = text[text.find(next((sign for sign in text if sign in "({["), "(")) + 1 : -1]
    rows = split_arguments(inner.replace(";", ",")) if text[:1] != "(" or "=>" in inner else [inner]
    for row in rows:
        found = _NAMED_ROW.match(row)
        skips = (Skip("#[ignore]", source.line(call)),) if _IGNORED_ROW.search(row) else ()
        own = tuple(
            Check(f"{row}: {each.text}", each.subject, each.rank, each.line, each.kind) for each in checks
        )
        body = f"{name}! {row}"
        yield Case(found[1] if found else name, source.line(call), body, own, skips, given=written)


def tests_in_macros(source: ParsedFile) -> dict[str, Node]:
    """Return the macros of a file that write tests, by name."""
    if b"macro_rules!" not in source.text:
        return {}
    found = source.matches("(macro_definition name: (_) @name) @macro")
    return {
        source.name(each["name"]): each["macro"]
        for each in found
        if _WRITES_TESTS.search(source.of(each["macro"]))
    }


def asserting_macros(source: ParsedFile) -> Iterator[tuple[str, list[Check]]]:
    """Yield the macros of a file that assert something and write no tests, with what they assert."""
    if b"macro_rules!" not in source.text:
        return
    for each in source.matches("(macro_definition name: (_) @name) @macro"):
        text = source.of(each["macro"])
        if not _WRITES_TESTS.search(text) and (checks := _checks(text, source.line(each["macro"]))):
            yield source.name(each["name"]), checks


def examples(source: ParsedFile) -> Iterator[Case]:
    """Yield the examples in documentation that `cargo test` compiles and runs."""
    if b"//" not in source.text or not re.search(rb"//[/!]\s*(?:```|~~~)", source.text):
        return
    waiting: list[tuple[int, str, list[str]]] = []
    block: tuple[int, str, list[str]] | None = None
    sign = ""
    for number, line in enumerate(source.text.decode("utf-8", "replace").splitlines(), 1):
        documented = _DOCUMENTED.match(line)
        if documented is None:
            block = None
            if waiting and (item := _ITEM.search(line)):
                yield from (_example(item[1], *each) for each in waiting)
                waiting = []
            continue
        fence = _FENCE.match(documented[1])
        if block is not None and fence and fence["sign"].startswith(sign) and not fence["said"].strip():
            waiting.append(block)
            block = None
        elif block is not None:
            block[2].append(documented[1])
        elif fence and all(_RUST.match(word) for word in re.split(r"[,\s]+", fence["said"].strip()) if word):
            block, sign = (number, fence["said"].strip(), []), fence["sign"]
        elif fence:
            block, sign = None, fence["sign"]
    yield from (_example("the file", *each) for each in waiting)


def _example(item: str, line: int, said: str, lines: list[str]) -> Case:
    text = " ".join(" ".join(each.removeprefix("# ") for each in lines).split())
    skips = tuple(
        Skip(f"```{word}", line) for word in re.split(r"[,\s]+", said) if word in {"ignore", "no_run"}
    )
    turned = next((f"```{word}" for word in re.split(r"[,\s]+", said) if word in _TURNING), "")
    return Case(f"example of {item}", line, text, tuple(_checks(text, line)), skips, turned=turned)


def _checks(text: str, line: int) -> list[Check]:
    """The assertions in a text that is not parsed."""
    found = []
    for start in _ASSERTED.finditer(text):
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += (text[end] in "([{") - (text[end] in ")]}")
            end += 1
        given = split_arguments(text[start.end() : end - 1])
        found.append(asserted(text[start.start() : end], f"{start[1]}!", given, line))
    return found
