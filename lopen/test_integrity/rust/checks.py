"""What a Rust test checks: assertion macros, panics, helpers by name; and the truth of `cfg` conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, Skip, ranks, tokens
from lopen.test_integrity.syntax import Link, ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASSERTION = re.compile(r"^(?:prop_|debug_)?assert\w*!?$")
_PANICS = frozenset({"panic!", "unreachable!", "unimplemented!", "todo!"})
_NAMED_HELPER = re.compile(r"^(?:assert|check|verify|expect)_\w+$")
_FIELD = re.compile(r"[({,:]\s*-?(?:\d|\"|')")  # a literal in a pattern
_WILDCARD = re.compile(r"\.\.|\b_\b")
_ALL = re.compile(r"\.all\(")
_RANKS = ranks(
    exact="assert_eq assert_str_eq assert_snapshot assert_debug_snapshot assert_json_snapshot assert_yaml_snapshot "
    "assert_toml_snapshot assert_ron_snapshot assert_display_snapshot assert_compact_json_snapshot assert_json_eq",
    close="assert_relative_eq assert_abs_diff_eq assert_ulps_eq assert_approx_eq assert_float_eq",
    loose="assert_ne assert assert_relative_ne assert_ok assert_err",
)
_BOOLEAN = frozenset({"true", "false"})
_SPAWNS = frozenset({"spawn", "spawn_blocking", "spawn_local"})
_WAITS = re.compile(
    rb"\.join\(|recv\(|\.await\b|wait\w*\(|sleep|barrier|\.iter\(\)|collect|shutdown|run_until"
)
_COUNTED = frozenset({"times", "once", "never"})
_TABLES = "(let_declaration pattern: (identifier) @name value: (_) @value)"
_RESULTS = "(let_declaration pattern: (identifier) @name value: (call_expression) @value)"
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

    def __init__(
        self,
        source: ParsedFile,
        root: Node,
        helpers: Helpers,
        tables: Mapping[str, Node],
        asynchronous: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(source, root, helpers)
        self._tables = tables
        self.asynchronous = asynchronous
        self._bound: dict[str, str] | None = None
        literal = {"integer_literal", "float_literal"}
        self._numbers = {name: source.of(node) for name, node in tables.items() if node.type in literal}

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
        elif last.name.rstrip("!") == "prop_assume":
            self.skips.append(Skip(text, line, False))
        elif _ASSERTION.match(last.name):
            self.check(self._compared(asserted(text, last.name, given, line), given), place)
        elif last.name in {"compile_fail", "pass"} and len(links) > 1 and b"trybuild" in self.source.text:
            self.check(Check(text, last.name, EXACT, line), place)
        elif last.name in _PANICS:
            condition = place.condition
            found = Check(f"panic if {condition}", condition, EXACT, line) if condition else None
            self.check(found or Check(text, given[0] if given else "", PARTIAL, line), place)
        elif several := [*of_a_command(self.source, links, line), *mocked(text, links, line)]:
            for each in several:
                self.check(each, place)
        elif last.name in self.helpers or (_NAMED_HELPER.match(last.name) and len(links) == 1):
            check = Check(text, given[0] if given else text, EXACT, line)
            if last.name in self.asynchronous and self._is_dropped(node):
                place = place.worse("unawaited")
            if last.name in self.helpers:
                self.helper(last.name, check, place)
            else:
                self.check(check, place)
        return False

    def _is_dropped(self, node: Node) -> bool:
        """Return True for a value that nothing takes: a statement, or `let _ = …`."""
        parent = node.parent
        if parent is not None and parent.type == "let_declaration":
            return self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        return parent is not None and parent.type == "expression_statement"

    def _compared(self, check: Check, given: Sequence[str]) -> Check:
        """A comparison of two names that are bound to the same call says nothing of its result."""
        if check.rank != EXACT or len(given) < 2 or ("(" not in "".join(given[:2]) and not self._calls()):
            return check
        left, right = (self._calls().get(each, each) for each in given[:2])
        return replace(check, rank=PRESENT) if left == right else check

    def _calls(self) -> Mapping[str, str]:
        """The names in the test that are bound to what a call returns."""
        if self._bound is None:
            found = self.source.matches(_RESULTS, self.root)
            self._bound = {self.source.name(each["name"]): self.source.of(each["value"]) for each in found}
        return self._bound

    def placed(self, check: Check, place: Place) -> Check:
        """A check whose text says the numbers that the file's constants stand for."""
        if self._numbers and (used := tokens(check.text) & self._numbers.keys()):
            named = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(used))})\b")
            check = replace(check, text=named.sub(lambda found: self._numbers[found[0]], check.text))
        return super().placed(check, place)

    def callback(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        """`let _ = catch_unwind(…)`: a panic that nobody looks at. `spawn(…);`: one that nothing waits for."""
        if links[index].name in _SPAWNS and links[0].name not in {"s", "scope"}:
            call = next((each for each in ancestors(node) if each.type == "call_expression"), node)
            waits = _WAITS.search(self.source.code, node.end_byte, self.root.end_byte)
            return place.worse("unawaited") if self._is_dropped(call) and not waits else place
        if links[index].name != "catch_unwind":
            return place
        parent = links[index].node.parent
        while parent is not None and parent.type in {"scoped_identifier", "call_expression"}:
            parent = parent.parent
        ignored = parent is not None and parent.type == "expression_statement"
        if parent is not None and parent.type == "let_declaration":
            ignored = self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        return place.worse("swallowed") if ignored else place


def asserted(text: str, name: str, given: Sequence[str], line: int) -> Check:
    """An assertion macro as a check."""
    base = re.sub(r"^(?:prop_|debug_)|!$", "", name)
    subject = given[0] if given else ""
    if base == "assert_eq" and len(given) > 1:
        return _equal(text, given[0], given[1], name, line)
    if base == "assert" and given:
        if always_true(subject):
            return Check(text, subject, 0, line, "vacuous")
        if re.search(r"[^=!<>]==[^=]", subject) and "||" not in subject:
            left, _, right = subject.partition("==")
            return _equal(text, left.strip(), right.strip(), name, line)
        if re.match(r"(?:std::)?matches!", subject):
            parts = split_arguments(subject.partition("!")[2].strip()[1:-1])
            return Check(text, parts[0] if parts else "", _matching(parts[1:]), line)
        if _ALL.search(subject):
            return Check(text, subject, PARTIAL, line)
        if "|" not in subject:
            subject = re.split(r" [<>]=? ", subject)[0]
    if base == "assert_matches":
        return Check(text, subject, _matching(given[1:]), line)
    rank = _RANKS.get(base, PARTIAL)
    rank = min(rank, CLOSE) if subject.endswith(".len()") or name.startswith("debug_") else rank
    return Check(text, subject.removesuffix(".len()"), rank, line)


def _equal(text: str, left: str, right: str, name: str, line: int) -> Check:
    """An equality; with itself or with a boolean it says less than with another value."""
    if left == right:
        idle = always_equal(left, right)
        return Check(text, left, 0 if idle else PRESENT, line, "vacuous" if idle else "real")
    if {left, right} & _BOOLEAN:
        return Check(text, right if left in _BOOLEAN else left, LOOSE, line)
    wanted = re.match(r"^[\d\"&'-]|^(?:Some|Ok|Err|None|vec!|&\[|\[)", left)
    subject = right if wanted and not re.match(r"^[\d\"&'-]", right) else left
    close = subject.endswith(".len()") or name.startswith("debug_")
    return Check(text, subject.removesuffix(".len()"), CLOSE if close else EXACT, line)


def _matching(pattern: Sequence[str]) -> int:
    """How much a pattern pins down: a literal in it, a variant in a variant, or a variant alone."""
    text = pattern[0] if pattern else ""
    if _FIELD.search(text):
        return CLOSE if _WILDCARD.search(text) else EXACT
    return PARTIAL if re.search(r"[({]\s*&?\w+::\w|^\w+::\w| if ", text) else LOOSE


def mocked(text: str, links: Sequence[Link], line: int) -> Iterator[Check]:
    """What a mock of mockall expects to be called with, and how often."""
    at = next(
        (i for i, each in enumerate(links) if each.name.startswith("expect_") and each.arguments == ()), 0
    )
    named = {link.name: link for link in links[at:]} if at else {}
    subject = f"the calls of {links[at].name}"
    if _COUNTED & set(named):
        yield Check(f"{subject}: {'.'.join(named)}", subject, EXACT, line)
    if {"with", "withf"} & set(named):
        yield Check(
            f"the arguments of {text.partition('.returning')[0]}",
            f"the arguments of {links[at].name}",
            CLOSE,
            line,
        )


def of_a_command(source: ParsedFile, links: Sequence[Link], line: int) -> Iterator[Check]:
    """What assert_cmd asks of a command: what follows `.assert()`."""
    names = [link.name for link in links]
    at = names.index("assert") if "assert" in names else len(names)
    for link in links[at + 1 :]:
        given = [source.of(each) for each in link.arguments or ()]
        if link.name in {"stdout", "stderr"}:
            part = given and re.match(
                r"^(?:predicates?::)?(?:\w+::)*(?:contains|is_match|starts_with|ends_with|similar)\(",
                given[0],
            )
            yield Check(f"{link.name}({', '.join(given)})", link.name, PARTIAL if part else EXACT, line)
        elif link.name in {"success", "failure", "code", "interrupted"}:
            rank = EXACT if link.name == "code" else LOOSE
            yield Check(f"{link.name}({', '.join(given)})", "the exit code", rank, line)
