"""Rust tests: functions with a test attribute, in any file; `#[ignore]`, `cfg`, modules that are not compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import (
    ALWAYS,
    ELSEWHERE,
    HERE,
    NEVER,
    split_arguments,
)
from lopen.test_integrity.flow import Helpers
from lopen.test_integrity.place import Place
from lopen.test_integrity.rust.body import RustBody
from lopen.test_integrity.rust.checks import cfg_truth
from lopen.test_integrity.rust.generated import asserting_macros, examples, tests_in_macros, written_by_macros
from lopen.test_integrity.rust.macros import closing
from lopen.test_integrity.suite import (
    CLOSE,
    EXACT,
    Case,
    Check,
    Language,
    Skip,
    Suite,
    numbered,
    support_cases,
)
from lopen.test_integrity.syntax import ParsedFile, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_OF_TESTS = re.compile(r"(?:^|/)tests?(?:/|\.rs$)|(?:^|[/_])test\w*\.rs$")
_TEST = re.compile(r"^(?:[\w:]*\btest|rstest|test_case|quickcheck|[\w:]+_test)(?:\(|$)")
_ENOUGH = 100
_IGNORED_ROW = re.compile(r"=>\s*(?:ignore|inconclusive)\b")
_EXPECTED_ROW = re.compile(r"test_case\b.*=>(?!\s*(?:ignore|inconclusive)\b)", re.DOTALL)
_SHOULD_PANIC = re.compile(r"should_panic\b|cfg_attr\(.*,\s*should_panic\b")
_ATTRIBUTES = re.compile(r"^#!?\[(.*)\]$", re.DOTALL)
_USUAL = re.compile(r'^(?:unix|target_os = "linux"|not\((?:windows|miri|loom|target_os = "(?!linux)\w+")\))$')
_CONSTANTS = "[(const_item name: (identifier) @name value: (_) @value) (static_item name: (identifier) @name value: (_) @value)]"


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites, be they a module's own tests or integration tests. Files without attributes have none."""
    return {
        path: _suite(path, parsed_file(text, "rust"))
        for path, text in files.items()
        if "#[" in text or _OF_TESTS.search(path) or ("//" in text and "```" in text)
    }


@dataclass(frozen=True, slots=True)
class _Function:
    """A function: its attributes, the modules around it, and what keeps these from being compiled."""

    node: Node
    attributes: tuple[str, ...]
    modules: tuple[str, ...]
    skips: tuple[Skip, ...]
    inputs: int | None  # that a property is tried with, where the file says so

    @property
    def is_test(self) -> bool:
        return any(_TEST.match(text) for text in self.attributes)


@dataclass(slots=True)
class _Items:
    """The functions of a file, and the modules of tests that it declares and does not compile."""

    source: ParsedFile
    functions: list[_Function] = field(default_factory=list)
    left_out: list[Skip] = field(default_factory=list)
    macros: Mapping[str, Node] = field(default_factory=dict)
    inputs: int | None = None
    written: list[Case] = field(default_factory=list)  # by macros

    def collect(self, body: Node, modules: tuple[str, ...], skips: tuple[Skip, ...]) -> None:
        """Note the functions of a module, and of the modules in it."""
        outer, self.inputs = self.inputs, _inputs(self.source, body)
        own = [*skips]
        attributes: list[Node] = []
        for item in body.named_children:
            if item.type == "inner_attribute_item":
                own += self._conditions(item)
            elif item.type == "attribute_item":
                attributes.append(item)
            elif item.type not in {"line_comment", "block_comment"}:
                self._item(item, attributes, modules, tuple(own))
                attributes = []
        self.inputs = outer

    def _item(
        self, item: Node, attributes: Sequence[Node], modules: tuple[str, ...], skips: tuple[Skip, ...]
    ) -> None:
        conditions = tuple(skip for each in attributes for skip in self._conditions(each))
        body = item.child_by_field_name("body")
        name = self.source.name(item.child_by_field_name("name"))
        if item.type == "function_item":
            texts = tuple(_text(self.source, each) for each in attributes)
            self.functions.append(_Function(item, texts, modules, (*skips, *conditions), self.inputs))
        elif item.type in {"macro_invocation", "expression_statement"}:
            self.written += [
                replace(case, name="::".join([*modules, case.name]), skips=(*skips, *conditions, *case.skips))
                for case in written_by_macros(self.source, item, self.macros)
            ]
        elif item.type == "mod_item" and body is None:
            self._declared(name, attributes)
        elif item.type in {"mod_item", "impl_item"} and body is not None and len(modules) < 20:
            inner = modules if item.type == "impl_item" or "!" in name else (*modules, name)
            self.collect(body, inner, (*skips, *conditions))

    def _declared(self, name: str, attributes: Sequence[Node]) -> None:
        """A file of tests that its module's declaration does not compile."""
        if not re.search(r"(?:^|_)tests?(?:_|$)", name):
            return
        for each in attributes:
            never = _condition(_text(self.source, each)) == NEVER
            for skip in self._conditions(each):
                self.left_out.append(Skip(f"{skip.text} on mod {name}", skip.line, never))

    def _conditions(self, attribute: Node) -> Iterator[Skip]:
        """What an attribute says about being compiled and run here."""
        text, line = _text(self.source, attribute), self.source.line(attribute)
        if re.match(r"ignore\b", text):
            yield Skip("#[ignore = …]" if "=" in text else "#[ignore]", line)
        elif text.startswith("cfg_attr("):
            condition, *others = split_arguments(text[9:-1]) or [""]
            holds = cfg_truth(condition)
            if holds != NEVER and any(re.match(r"ignore\b|cfg\(", other) for other in others):
                yield Skip(f"#[{text}]", line, holds != ELSEWHERE)
        elif text.startswith("cfg("):
            holds = _condition(text)
            if holds != ALWAYS and not _USUAL.match(text[4:-1].strip()):
                yield Skip(f"#[{text}]", line, holds != HERE)


def _text(source: ParsedFile, attribute: Node) -> str:
    found = _ATTRIBUTES.match(source.of(attribute))
    return found[1].strip() if found else ""


def _inputs(source: ParsedFile, module: Node) -> int | None:
    """With how many inputs the properties of a module are tried; more than enough are enough."""
    inner = (source.of(each) for each in module.named_children if each.type == "inner_attribute_item")
    found = next(
        (f for text in inner if (f := re.search(r"\b(?:with_cases\(|cases: )(\d{1,9})", text))), None
    )
    return min(int(found[1]), _ENOUGH) if found else None


def _condition(attribute: str) -> int:
    return cfg_truth(attribute[4:-1]) if attribute.startswith("cfg(") else ALWAYS


def _suite(path: str, source: ParsedFile) -> Suite:
    items = _Items(source, macros=tests_in_macros(source))
    items.collect(source.root, (), ())
    tables = {source.name(found["name"]): found["value"] for found in source.matches(_CONSTANTS)}
    of_tests = bool(_OF_TESTS.search(path))
    helpers: dict[str, list[Check]] = dict(asserting_macros(source)) if of_tests else {}
    for function in items.functions:
        if not function.is_test and (of_tests or any("test" in name for name in function.modules)):
            body = RustBody(source, function.node, {}, tables)
            body.block(function.node.child_by_field_name("body"), Place())
            helpers[source.name(function.node.child_by_field_name("name"))] = body.checks
    waited = frozenset(
        source.name(each.node.child_by_field_name("name"))
        for each in items.functions
        if re.match(r"(?:pub(?:\([^)]*\))? )?async ", source.of(each.node)[:60])
    )
    cases = [_case(source, each, helpers, tables, waited) for each in items.functions if each.is_test]
    cases += [*items.written, *examples(source)]
    return Suite(numbered([*cases, *support_cases(helpers)]), tuple(items.left_out))


def _case(
    source: ParsedFile,
    function: _Function,
    helpers: Helpers,
    tables: Mapping[str, Node],
    waited: frozenset[str],
) -> Case:
    node, texts = function.node, function.attributes
    inner = node.child_by_field_name("body")
    name, line = node.child_by_field_name("name"), source.line(node)
    body = RustBody(source, node, helpers, tables, waited)
    body.block(inner, Place())
    body.checks += _returned(source, inner, texts)
    panics = [
        Check(f"#[{text}]", "a panic", EXACT if "expected" in text else CLOSE, line)
        for text in texts
        if text.startswith("should_panic")
    ]
    rows = [text for text in texts if re.match(r"(?:[\w:]+::)?(?:test_)?case\b", text)]
    count = sum(1 for text in rows if not _IGNORED_ROW.search(text)) if rows else body.rows or function.inputs
    count = _tried(source, node, texts, count)
    return Case(
        "::".join([*function.modules, source.name(name)]),
        source.line(name or node),
        " ".join([*texts, source.of(inner)]),
        (*panics, *body.checks),
        (*function.skips, *dict.fromkeys(body.skips)),
        count,
        inner is None or not source.of(inner).strip("{} "),
        turned=next((f"#[{text}]" for text in texts if _SHOULD_PANIC.match(text)), ""),
    )


def _tried(source: ParsedFile, function: Node, attributes: Sequence[str], rows: int | None) -> int | None:
    """With how many inputs a test runs, by the values and the ranges of its parameters; more than enough are enough."""
    said = source.of(function.child_by_field_name("parameters"))
    text = said.encode()
    values = [
        len(split_arguments(text[found.end() : closing(text, found.end())].decode("utf-8", "replace")))
        for found in re.finditer(rb"#\[values\(", text)
    ]
    if values:
        return prod(values) * (rows or 1)
    if not re.search(r"\bin\b", said) or not any(each == "test" for each in attributes):
        return rows
    spans = [
        int(end) - int(start) + bool(closed) if start else _ENOUGH
        for start, closed, end in re.findall(r"\bin (?:(-?\d{1,9})\w*\.\.(=?)(-?\d{1,9})\w*(?=\W|$))?", said)
    ]
    return min(rows or _ENOUGH, _ENOUGH, max(prod(max(span, 1) for span in spans), 1))


def _returned(source: ParsedFile, body: Node | None, attributes: Sequence[str]) -> Iterator[Check]:
    """What a property or a row of `test_case` expects the function to return."""
    last = body.named_children[-1] if body is not None and body.named_child_count else None
    if last is None:
        return
    text, line = source.of(last), source.line(last)
    if any(re.match(r"(?:[\w:]+::)?quickcheck\b", each) for each in attributes):
        idle = text == "true" or re.search(r"TestResult::(?:passed|discard)\(\)$", text)
        yield Check(text, text, 0 if idle else EXACT, line, "vacuous" if idle else "real")
    elif any(_EXPECTED_ROW.match(each) for each in attributes):
        yield Check(text, text, EXACT, line)


LANGUAGE = Language("Rust", lambda path: path.endswith(".rs"), lambda path: path.endswith(".rs"), read)
