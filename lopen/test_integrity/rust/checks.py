"""What a Rust test checks: assertion macros, panics, helpers by name; and the truth of `cfg` conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check
from lopen.test_integrity.syntax import Link, ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASSERTION = re.compile(r"^(?:prop_|debug_)?assert\w*!?$")
_PANICS = frozenset({"panic!", "unreachable!", "unimplemented!", "todo!"})
_NAMED_HELPER = re.compile(r"^(?:assert|check|verify|expect)_\w+$")
_FIELD = re.compile(r"[({,:]\s*-?(?:\d|\"|')")  # a literal in a pattern
_WILDCARD = re.compile(r"\.\.|\b_\b")
_ALL = re.compile(r"\.all\(")
_RANKS = {"assert_eq": EXACT, "assert_matches": CLOSE, "assert_ne": LOOSE, "assert": LOOSE}
_TABLES = "(let_declaration pattern: (identifier) @name value: (_) @value)"
_COMPOUND = re.compile(r"^(any|all|not)\((.*)\)$", re.DOTALL)
_LINUX = re.compile(
    r'^(?:unix|target_os = "linux"|target_family = "unix"|debug_assertions|target_arch = "(?:x86_64|aarch64)")$'
)
_OTHERS = re.compile(
    r"^(?:windows|miri|loom|target_os = .*|target_family = .*|target_arch = .*|target_env = .*)$"
)


def cfg_truth(condition: str, depth: int = 0) -> int:
    """The truth of a `cfg` condition while tests are built."""
    text = condition.strip()
    compound = _COMPOUND.match(text) if depth < 20 else None
    if compound:
        parts = [cfg_truth(part, depth + 1) for part in split_arguments(compound[2])]
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


class RustBody(Flow):
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
        return ALWAYS - cfg_truth(asked[2]) if asked[1] else cfg_truth(asked[2])

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
            pattern = subject.partition(",")[2]
            rank = CLOSE if _WILDCARD.search(pattern) else EXACT
            return Check(text, subject, rank if _FIELD.search(pattern) else PARTIAL, line)
        if _ALL.search(subject):
            return Check(text, subject, PARTIAL, line)
    rank = _RANKS.get(base, PARTIAL)
    return Check(
        text, subject.removesuffix(".len()"), min(rank, CLOSE) if subject.endswith(".len()") else rank, line
    )
