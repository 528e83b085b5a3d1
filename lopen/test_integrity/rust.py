"""Rust tests: functions with a test attribute, in any file; `#[ignore]`, `cfg`, modules that are not compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import (
    ALWAYS,
    ELSEWHERE,
    HERE,
    NEVER,
    OPEN,
    always_equal,
    always_true,
    split_arguments,
)
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import (
    CLOSE,
    EXACT,
    LOOSE,
    PARTIAL,
    PRESENT,
    Case,
    Check,
    Language,
    Skip,
    Suite,
    numbered,
    support_cases,
)
from lopen.test_integrity.syntax import Link, ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TEST = re.compile(r"^(?:[\w:]*\btest|rstest|test_case|quickcheck|[\w:]+_test)(?:\(|$)")
_ASSERTION = re.compile(r"^(?:prop_|debug_)?assert\w*!?$")
_PANICS = frozenset({"panic!", "unreachable!", "unimplemented!", "todo!"})
_NAMED_HELPER = re.compile(r"^(?:assert|check|verify|expect)_\w+$")
_SHOULD_PANIC = re.compile(r"should_panic\b|cfg_attr\(.*,\s*should_panic\b")
_ATTRIBUTES = re.compile(r"^#!?\[(.*)\]$", re.DOTALL)
_COMPOUND = re.compile(r"^(any|all|not)\((.*)\)$", re.DOTALL)
_LINUX = re.compile(
    r'^(?:unix|target_os = "linux"|target_family = "unix"|debug_assertions|target_arch = "(?:x86_64|aarch64)")$'
)
_OTHERS = re.compile(
    r"^(?:windows|miri|loom|target_os = .*|target_family = .*|target_arch = .*|target_env = .*)$"
)
_USUAL = re.compile(r'^(?:unix|target_os = "linux"|not\((?:windows|miri|loom|target_os = "\w+")\))$')
_FIELD = re.compile(r"[({,:]\s*-?(?:\d|\"|')")  # a literal in a pattern
_RANKS = {"assert_eq": EXACT, "assert_matches": CLOSE, "assert_ne": LOOSE, "assert": LOOSE}
_TABLES = "(let_declaration pattern: (identifier) @name value: (_) @value)"
_CONSTANTS = "[(const_item name: (identifier) @name value: (_) @value) (static_item name: (identifier) @name value: (_) @value)]"


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites, be they a module's own tests or integration tests. Files without attributes have none."""
    return {path: _suite(path, ParsedFile(text, "rust")) for path, text in files.items() if "#[" in text}


@dataclass(frozen=True, slots=True)
class _Function:
    """A function: its attributes, the modules around it, and what keeps these from being compiled."""

    node: Node
    attributes: tuple[str, ...]
    modules: tuple[str, ...]
    skips: tuple[Skip, ...]

    @property
    def is_test(self) -> bool:
        return any(_TEST.match(text) for text in self.attributes)


@dataclass(slots=True)
class _Items:
    """The functions of a file, and the modules of tests that it declares and does not compile."""

    source: ParsedFile
    functions: list[_Function] = field(default_factory=list)
    left_out: list[Skip] = field(default_factory=list)

    def collect(self, body: Node, modules: tuple[str, ...], skips: tuple[Skip, ...]) -> None:
        """Note the functions of a module, and of the modules in it."""
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

    def _item(
        self, item: Node, attributes: Sequence[Node], modules: tuple[str, ...], skips: tuple[Skip, ...]
    ) -> None:
        conditions = tuple(skip for each in attributes for skip in self._conditions(each))
        body = item.child_by_field_name("body")
        name = self.source.name(item.child_by_field_name("name"))
        if item.type == "function_item":
            texts = tuple(_text(self.source, each) for each in attributes)
            self.functions.append(_Function(item, texts, modules, (*skips, *conditions)))
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
            yield Skip("#[ignore]", line)
        elif text.startswith("cfg_attr("):
            condition, *others = split_arguments(text[9:-1])
            holds = _truth(condition)
            if holds != NEVER and any(re.match(r"ignore\b|cfg\(", other) for other in others):
                yield Skip(f"#[{text}]", line, holds != ELSEWHERE)
        elif text.startswith("cfg("):
            holds = _condition(text)
            if holds != ALWAYS and not _USUAL.match(text[4:-1].strip()):
                yield Skip(f"#[{text}]", line, holds != HERE)


def _text(source: ParsedFile, attribute: Node) -> str:
    found = _ATTRIBUTES.match(source.of(attribute))
    return found[1].strip() if found else ""


def _condition(attribute: str) -> int:
    return _truth(attribute[4:-1]) if attribute.startswith("cfg(") else ALWAYS


def _truth(condition: str, depth: int = 0) -> int:
    """The truth of a `cfg` condition while tests are built."""
    text = condition.strip()
    compound = _COMPOUND.match(text) if depth < 20 else None
    if compound:
        parts = [_truth(part, depth + 1) for part in split_arguments(compound[2])]
        if compound[1] == "not":
            return ALWAYS - (parts or [OPEN])[0]
        return max(parts, default=NEVER) if compound[1] == "any" else min(parts, default=ALWAYS)
    if text in {"test", "true"}:
        return ALWAYS
    if text.lower() == "false":
        return NEVER
    if _LINUX.match(text):
        return HERE
    return ELSEWHERE if _OTHERS.match(text) else OPEN


def _suite(path: str, source: ParsedFile) -> Suite:
    items = _Items(source)
    items.collect(source.root, (), ())
    tables = {source.name(found["name"]): found["value"] for found in source.matches(_CONSTANTS)}
    of_tests = bool(re.search(r"(?:^|/)tests?(?:/|\.rs$)", path))
    helpers: dict[str, list[Check]] = {}
    for function in items.functions:
        if not function.is_test and (of_tests or any("test" in name for name in function.modules)):
            body = _Body(source, function.node, {}, tables)
            body.block(function.node.child_by_field_name("body"), Place())
            helpers[source.name(function.node.child_by_field_name("name"))] = body.checks
    cases = [_case(source, function, helpers, tables) for function in items.functions if function.is_test]
    return Suite(numbered([*cases, *support_cases(helpers)]), tuple(items.left_out))


def _case(source: ParsedFile, function: _Function, helpers: Helpers, tables: Mapping[str, Node]) -> Case:
    node, texts = function.node, function.attributes
    inner = node.child_by_field_name("body")
    name, line = node.child_by_field_name("name"), source.line(node)
    body = _Body(source, node, helpers, tables)
    body.block(inner, Place())
    panics = [
        Check(f"#[{text}]", "a panic", EXACT if "expected" in text else CLOSE, line)
        for text in texts
        if text.startswith("should_panic")
    ]
    rows = sum(1 for text in texts if re.match(r"(?:test_)?case\b", text)) or body.rows
    return Case(
        "::".join([*function.modules, source.name(name)]),
        source.line(name or node),
        " ".join([*texts, source.of(inner)]),
        (*panics, *body.checks),
        (*function.skips, *dict.fromkeys(body.skips)),
        rows,
        inner is None or not source.of(inner).strip("{} "),
        turned=next((f"#[{text}]" for text in texts if _SHOULD_PANIC.match(text)), ""),
    )


class _Body(Flow):
    """The walk through a test or a helper."""

    def __init__(self, source: ParsedFile, root: Node, helpers: Helpers, tables: Mapping[str, Node]) -> None:
        super().__init__(source, root, helpers)
        self._tables = tables

    def tables(self) -> Mapping[str, Node]:
        source = self.source
        own = {source.name(found["name"]): found["value"] for found in source.matches(_TABLES, self.root)}
        return {**self._tables, **own}

    def _truth(self, branch: Node) -> int:
        asked = re.match(r"^(!?)cfg!\((.*)\)$", self.condition(branch), re.DOTALL)
        if not asked:
            return super()._truth(branch)
        return ALWAYS - _truth(asked[2]) if asked[1] else _truth(asked[2])

    def other(self, node: Node, place: Place) -> bool:
        """A `let … else` that ends the test, or an asynchronous block that nothing awaits."""
        otherwise = node.child_by_field_name("alternative") if node.type == "let_declaration" else None
        if otherwise is not None:
            pattern = self.source.of(node.child_by_field_name("pattern"))
            if word := self._gives_up(otherwise, pattern):
                self.skip(word, node, place.under(f"not {pattern}", OPEN))
        parent = node.parent
        if node.type != "async_block" or parent is None:
            return False
        lost = parent.type == "expression_statement"
        if parent.type == "let_declaration":
            lost = self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        self.block(node, place.worse("unawaited" if lost else "real"))
        return True

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        last, text, line = links[-1], self.source.of(node), self.source.line(node)
        if last.arguments is None:
            return False
        given = [self.source.of(argument) for argument in last.arguments]
        if node.type == "macro_invocation":
            given = split_arguments(text.partition("!")[2].strip(" ([{}])"))
        if last.name == "exit" and len(links) > 1 and links[-2].name == "process":
            if given == ["0"] and not place.condition and self.ends_test(node):
                self.skip("process::exit(0)", node, place)
        elif _ASSERTION.match(last.name):
            self.check(_asserted(text, last.name, given, line), place)
        elif last.name in _PANICS:
            condition = place.condition
            found = Check(f"panic if {condition}", condition, EXACT, line) if condition else None
            self.check(found or Check(text, given[0] if given else "", PARTIAL, line), place)
        elif last.name in self.helpers or (_NAMED_HELPER.match(last.name) and len(links) == 1):
            check = Check(text, given[0] if given else text, EXACT, line)
            if last.name in self.helpers:
                self.helper(last.name, check, place)
            else:
                self.check(check, place)
        return False

    def callback(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        """`let _ = catch_unwind(…)`: a panic that nobody looks at."""
        if links[index].name != "catch_unwind":
            return place
        parent = links[index].node.parent
        while parent is not None and parent.type in {"scoped_identifier", "call_expression"}:
            parent = parent.parent
        ignored = parent is not None and parent.type == "expression_statement"
        if parent is not None and parent.type == "let_declaration":
            ignored = self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        return place.worse("swallowed") if ignored else place


def _asserted(text: str, name: str, given: Sequence[str], line: int) -> Check:
    base = re.sub(r"^(?:prop_|debug_)|!$", "", name)
    subject = given[0] if given else ""
    if base == "assert_eq" and len(given) > 1 and given[0] == given[1]:
        idle = always_equal(given[0], given[1])
        return Check(text, subject, 0 if idle else PRESENT, line, "vacuous" if idle else "real")
    if base == "assert" and given:
        if always_true(subject):
            return Check(text, subject, 0, line, "vacuous")
        if re.search(r"[^=!<>]==[^=]", subject) and "||" not in subject:
            return Check(text, subject.split("==")[0].strip(), EXACT, line)
        if re.match(r"(?:std::)?matches!", subject):
            return Check(text, subject, CLOSE if _FIELD.search(subject.partition(",")[2]) else PARTIAL, line)
    return Check(text, subject, _RANKS.get(base, PARTIAL), line)


LANGUAGE = Language("Rust", lambda path: path.endswith(".rs"), lambda path: path.endswith(".rs"), read)
