"""The walk through a Rust test or a helper: assertions, panics, skips, calls of helpers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.bindings import ends_after_a_round
from lopen.test_integrity.conditions import ALWAYS, OPEN, split_arguments
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.place import Place
from lopen.test_integrity.rust.checks import asserted, cfg_truth, mocked, of_a_command
from lopen.test_integrity.suite import EXACT, PARTIAL, PRESENT, Check, Skip, tokens
from lopen.test_integrity.syntax import Link, ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASSERTION = re.compile(r"^(?:prop_|debug_)?assert\w*!?$")
_PANICS = frozenset({"panic!", "unreachable!", "unimplemented!", "todo!"})
_NAMED_HELPER = re.compile(r"^(?:assert|check|verify|expect)_\w+$")
_SPAWNS = frozenset({"spawn", "spawn_blocking", "spawn_local"})
_WAITS = re.compile(
    rb"\.join\(|recv\(|\.await\b|wait\w*\(|sleep|barrier|\.iter\(\)|collect|shutdown|run_until"
)
_FILTERED = re.compile(
    r"^&?(?:(?P<name>\w+)|(?P<list>\[.*\]))\.(?:(?:into_)?iter\(\)\.)?(?:filter|skip_while|take_while|step_by)\(",
    re.DOTALL,
)
_TABLES = "(let_declaration pattern: (identifier) @name value: (_) @value)"
_WRITTEN = re.compile(
    r"[\d\"'&\[-]|(?:Some|Ok|Err|None|true|false|vec!|[A-Z])"
)  # a value that no call returned
_TAKEN = re.compile(r"^(?:Ok|Some)\((\w+)\) => \1,?$")
_FAILED = re.compile(r"^(?:Err\(\w+\)|None) => \{? ?panic!?_?\W")
_RESULTS = "(let_declaration pattern: (identifier) @name value: (call_expression) @value)"


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
        self._waits: int | None = None  # the end of the last thing that waits
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

    def _loop(self, node: Node, place: Place) -> None:
        """A loop that ends behind its first round, or passes over rows of a literal table."""
        table = node.child_by_field_name("value")
        found = _FILTERED.match(self.source.of(table))
        if table is not None and found and (found["list"] or found["name"] in self.tables()):
            text = f"what `{self.source.of(table)[:80]}` leaves out of the table"
            self.skips.append(Skip(text, self.source.line(table), False))
        if ends_after_a_round(node):
            self.skips.append(Skip("a loop that ends behind its first round", self.source.line(node), False))
        super()._loop(node, place)

    def other(self, node: Node, place: Place) -> bool:
        """A `let … else` that ends the test, or an asynchronous block that nothing awaits."""
        otherwise = node.child_by_field_name("alternative") if node.type == "let_declaration" else None
        if otherwise is not None:
            pattern = self.source.of(node.child_by_field_name("pattern"))
            if word := self._gives_up(otherwise, pattern):
                self.skip(word, node, place.under(f"not {pattern}", OPEN))
            value = node.child_by_field_name("value")
            self.walk(value, place)
            self.block(otherwise, place.under(f"not (let {pattern} = {self.source.of(value)})", OPEN))
            return True
        if node.type == "match_expression" and (value := self._unwrapped(node)) is not None:
            self.walk(value, place)
            return True
        parent = node.parent
        if node.type != "async_block" or parent is None:
            return False
        if parent.type == "arguments" and parent.parent is not None:
            self.block(node, self._spawned(self.source.chain(parent.parent), node, place))
            return True
        lost = parent.type == "expression_statement"
        if parent.type == "let_declaration":
            lost = self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        self.block(node, place.worse("unawaited" if lost else "real"))
        return True

    def _unwrapped(self, node: Node) -> Node | None:
        """What a `match` takes the value of and panics else, as `unwrap` does by itself: that checks nothing."""
        body = node.child_by_field_name("body")
        arms = [each for each in body.named_children if each.type == "match_arm"] if body is not None else []
        texts = [self.source.of(each) for each in arms]
        taken = [text for text in texts if _TAKEN.match(text)]
        panics = [text for text in texts if _FAILED.match(text)]
        alone = len(taken) == len(panics) == 1 and len(arms) == 2
        return node.child_by_field_name("value") if alone and not self.helpers else None

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
        elif _ASSERTION.match(last.name) and last.name.rstrip("!") not in self.helpers:
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
        elif (name := last.name.rstrip("!")) in self.helpers or (
            _NAMED_HELPER.match(last.name) and len(links) == 1
        ):
            check = Check(text, given[0] if given else text, EXACT, line)
            if last.name in self.asynchronous and self._is_dropped(node):
                place = place.worse("unawaited")
            if name in self.helpers:
                self.helper(name, check, place)
            else:
                self.check(check, place)
        return False

    def _is_dropped(self, node: Node) -> bool:
        """Return True for a value that nothing takes: a statement, or `let _ = …`."""
        parent = node.parent
        if parent is not None and parent.type == "let_declaration":
            return self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        return parent is not None and parent.type == "expression_statement"

    def _spawned(self, links: Sequence[Link], node: Node, place: Place) -> Place:
        """The place inside what a task or a thread runs, which fails the test only if something waits for it."""
        if links[-1].name not in _SPAWNS or links[0].name in {"s", "scope"}:
            return place
        call = next((each for each in ancestors(node) if each.type == "call_expression"), node)
        if self._waits is None:
            found = _WAITS.finditer(self.source.code, self.root.start_byte, self.root.end_byte)
            self._waits = max((each.end() for each in found), default=0)
        lost = self._is_dropped(call) and self._waits <= node.end_byte
        return place.worse("unawaited") if lost else place

    def _compared(self, check: Check, given: Sequence[str]) -> Check:
        """A comparison of two names that are bound to the same call says nothing of its result."""
        if check.rank != EXACT or len(given) < 2 or any(map(_WRITTEN.match, given[:2])):
            return check
        left, right = (self._calls().get(each, each) for each in given[:2])
        return replace(check, text=f"{check.text} of one value", rank=PRESENT) if left == right else check

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
        if links[index].name in _SPAWNS:
            return self._spawned(links, node, place)
        if links[index].name != "catch_unwind":
            return place
        parent = links[index].node.parent
        while parent is not None and parent.type in {"scoped_identifier", "call_expression"}:
            parent = parent.parent
        ignored = parent is not None and parent.type == "expression_statement"
        if parent is not None and parent.type == "let_declaration":
            ignored = self.source.of(parent.child_by_field_name("pattern")).startswith("_")
        return place.worse("swallowed") if ignored else place
