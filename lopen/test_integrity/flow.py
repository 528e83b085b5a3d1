"""A walk through statements in the order in which they run, common to all languages: which checks can fail a test."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.bindings import bound_name, leaves_block, refers, rounds, row_count
from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, ENVIRONMENT, NEVER, OPEN, SKIP_WORD, truth
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import EXACT, Check, Skip, called, guard
from lopen.test_integrity.syntax import (
    BRANCHES,
    CALLS,
    FUNCTIONS,
    HANDLERS,
    LEAVING,
    LOOPS,
    TRIES,
    WORDS,
    Link,
    ParsedFile,
    ancestors,
    may_fail,
)

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

DEEPEST = 110  # levels of nesting that are followed: each costs a few Python frames
_COUNTED = re.compile(rb"ssertions\(|\bt\.plan\(")
AN_EXCEPTION = "an exception"

Helpers = Mapping[str, Sequence[Check]]  # what each helper checks, by its name


class Flow(ABC):
    """A walk. Subclasses say what a call means; `checks`, `skips` and `rows` are what was found."""

    guards = True  # an `if` around a check takes something away from it; in Go it is part of the check

    def __init__(self, source: ParsedFile, root: Node, helpers: Helpers) -> None:
        self.source = source
        self.root = root
        self.helpers = helpers
        self.checks: list[Check] = []
        self.skips: list[Skip] = []
        self.rows: int | None = None
        self._depth = 0
        self._local: dict[str, list[Check]] = {}  # what the functions in the root check, by name

    @abstractmethod
    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        """Take note of a call. Return True if its parts need no walk of their own."""

    def callback(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        """The place inside a function that is an argument of the link number `index`."""
        return place

    def other(self, node: Node, place: Place) -> bool:
        """Take note of a node of a kind that only this language has. Return True if it was walked."""
        return False

    def swallows(self, handler: Node) -> bool:
        """Return True if a failed assertion ends in this handler without failing the test."""
        return not may_fail(self.source, handler)

    def walk(self, node: Node | None, place: Place) -> None:
        """Follow one node, if there is one."""
        if node is None or node.type in WORDS or self._depth > DEEPEST:
            return
        self._depth += 1
        self._follow(node, node.type, place)
        self._depth -= 1

    def _follow(self, node: Node, kind: str, place: Place) -> None:
        if kind in CALLS:
            self._call(node, place)
        elif kind in FUNCTIONS:
            self._nested(node, place)
        elif kind in BRANCHES:
            self._branch(node, place)
        elif kind in LOOPS:
            self._loop(node, place)
        elif kind in TRIES:
            self._try(node, place)
        elif kind in {"throw_statement", "raise_statement"}:
            self._thrown(node, place)
        elif kind in {"binary_expression", "boolean_operator"}:
            self._binary(node, place)
        elif not self.other(node, place):
            self.block(node, place)

    def block(self, node: Node | None, place: Place) -> None:
        """Follow what a node consists of; behind a statement that leaves it nothing is reached."""
        for child in node.named_children if node is not None else ():
            self.walk(child, place)
            if child.type not in WORDS and self._leaves(child):
                place = place.worse("unreachable")

    def _leaves(self, node: Node) -> bool:
        kind = node.type
        if kind == "expression_statement" and node.named_child_count:
            kind = node.named_children[0].type
        if kind == "if_statement" and self._truth(node) == ALWAYS:
            inner = node.child_by_field_name("consequence")
            last = inner.named_children[-1:] if inner is not None else []
            return bool(inner is not None and (inner.type in LEAVING or (last and last[0].type in LEAVING)))
        return kind in LEAVING

    def _truth(self, branch: Node) -> int:
        return truth(self.condition(branch).rpartition(";")[2])

    def condition(self, branch: Node) -> str:
        """A branch's condition without the brackets around it."""
        node = branch.child_by_field_name("condition")
        if node is not None and node.type == "parenthesized_expression" and node.named_child_count == 1:
            node = node.named_children[0]
        return self.source.of(node)

    def _branch(self, node: Node, place: Place) -> None:
        condition, holds = self.condition(node), self._truth(node)
        for field in ("initializer", "condition"):
            self.walk(node.child_by_field_name(field), place)
        before = len(self.checks)
        consequence = node.child_by_field_name("consequence")
        if consequence is not None:
            inner = place.under(condition, holds)
            asked = ENVIRONMENT.search(condition) and not node.children_by_field_name("alternative")
            self.walk(consequence, inner.worse("conditional" if asked else "real"))
        idle = len(self.checks) == before and place.kind == "real"
        if holds == OPEN and self.guards and not node.children_by_field_name("alternative"):
            guard(self.checks, before, condition)
        if idle and (word := self._gives_up(consequence, condition)):
            certain = word == "return" or SKIP_WORD.search(condition)
            self.skip(word, node, place.under(condition, holds if certain else min(holds, ELSEWHERE)))
        for alternative in node.children_by_field_name("alternative"):
            self.walk(alternative, place.under(f"not ({condition})", ALWAYS - holds))

    def _gives_up(self, body: Node | None, condition: str) -> str:
        """The word by which a branch ends the test, or leaves a row of a table out, with nothing checked."""
        while body is not None and body.type in {"statement_block", "block", "statement_list"}:
            body = body.named_children[-1] if body.named_child_count else None
        if body is not None and body.type == "expression_statement" and body.named_child_count:
            body = body.named_children[0]
        word = body.type.partition("_")[0] if body is not None and body.type in LEAVING else ""
        if body is not None and word == "break" and leaves_block(self.source, body):
            return word
        if body is None or word not in {"return", "continue"}:
            return ""
        nothing = not body.named_child_count or self.source.of(body) == "return Ok(())"
        ends = word == "continue" or self.ends_test(body)
        return word if nothing and (ends or SKIP_WORD.search(condition)) else ""

    def ends_test(self, node: Node) -> bool:
        """Return True if a return leaves the walk's root, and not a function in it."""
        around = (parent for parent in ancestors(node) if parent == self.root or parent.type in FUNCTIONS)
        return next(around, None) == self.root

    def skip(self, name: str, node: Node, place: Place) -> None:
        """Note a skip, unless its condition never holds or it is not reached."""
        if place.kind == "unreachable":
            return
        asked = place.condition if place.truth not in {ALWAYS, NEVER} else ""
        text = f"{name} if {asked}" if asked else name
        certain = place.truth != ELSEWHERE and "process.version" not in place.condition
        self.skips.append(Skip(text, self.source.line(node), certain))

    def check(self, check: Check, place: Place) -> None:
        """Note a check."""
        self.checks.append(self.placed(check, place))

    def asserted(self, check: Check, links: Sequence[Link], place: Place) -> None:
        """Note a check that is a call, unless all that it expects is that an assertion in it fails."""
        before = len(self.checks)
        self.arguments(links, place)
        inner = self.checks[before:]
        if place.kind == "swallowed" or all(each.kind != "swallowed" for each in inner):
            self.checks.insert(before, self.placed(check, place))

    def placed(self, check: Check, place: Place) -> Check:
        """A check of the kind that its place gives it."""
        return check if place.kind == "real" or check.kind != "real" else replace(check, kind=place.kind)

    def helper(self, name: str, check: Check, place: Place) -> None:
        """Note the call of a helper as the checks that it stands for."""
        for each in called(check, self.helpers[name]):
            self.check(each, place)

    def _call(self, node: Node, place: Place) -> None:
        links = self.source.chain(node)
        if len(links) == 1 and links[0].name not in self.helpers:
            text = self.source.of(node)
            check = Check(text, text, EXACT, self.source.line(node))
            for each in called(check, self._local.get(links[0].name, ())):
                self.check(each, place)
        if not self.call(node, links, place):
            self.arguments(links, place)

    def arguments(self, links: Sequence[Link], place: Place) -> None:
        """Follow a call's arguments, and what is called where that is not a plain name."""
        root = links[0].node
        if links[0].name == "" and root.type not in CALLS and root.named_child_count:
            self.walk(root, self.callback(links, 0, root, place) if root.type in FUNCTIONS else place)
        for index, link in enumerate(links):
            for argument in link.arguments or ():
                if argument.type in FUNCTIONS:
                    self.walk(
                        argument.child_by_field_name("body"), self._repeated(links, index, argument, place)
                    )
                else:
                    self.walk(argument, place)

    def _repeated(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        """The place inside a callback, which a literal table's `forEach` calls once for each row."""
        place = self.callback(links, index, node, place)
        if links[index].name in {"forEach", "map", "for_each"} and index:
            owner = next((p.child_by_field_name("object") for p in ancestors(links[index].node)), None)
            table = owner or links[index - 1].node
            return self._counted(self.count(table), place)._replace(table=table)
        return place

    def _counted(self, rows: int | None, place: Place) -> Place:
        if rows is not None:
            self.rows = (self.rows or 0) + rows
        return place.worse("unreachable" if rows == 0 else "real")._replace(rows=rows or place.rows)

    def _nested(self, node: Node, place: Place) -> None:
        """A function that is not an argument: it is followed if something refers to it."""
        name = bound_name(self.source, node)
        used = not name or refers(self.source, self.root, name, node)
        before = len(self.checks)
        self.walk(node.child_by_field_name("body"), place.worse("real" if used else "unreachable"))
        self._local[name] = self.checks[before:]

    def _loop(self, node: Node, place: Place) -> None:
        table = node.child_by_field_name("right") or node.child_by_field_name("value")
        ranges = [child for child in node.named_children if child.type == "range_clause"]
        if ranges:
            table = ranges[0].child_by_field_name("right")
        rows = rounds(node, self.count(table) if table is not None else None)
        for child in node.named_children:
            if child != node.child_by_field_name("body"):
                self.walk(child, place)
        before = len(self.checks)
        never = node.type in {"while_statement", "while_expression"} and truth(self.condition(node)) == NEVER
        inner = place.worse("unreachable") if rows == 0 or never else place
        if (body := node.child_by_field_name("body")) is not None:
            self.walk(body, inner._replace(rows=rows or place.rows, table=table or place.table))
        if rows is not None and len(self.checks) > before:
            self.rows = (self.rows or 0) + rows

    def count(self, node: Node) -> int | None:
        """How many rows a literal table has, or a name that is bound to one; None where that is not known."""
        return row_count(self.source, node, self.tables())

    def tables(self) -> Mapping[str, Node]:
        """The literal tables that have names in the file."""
        return {}

    def _try(self, node: Node, place: Place) -> None:
        handlers = [child for child in node.named_children if child.type in HANDLERS]
        swallowed, body = any(map(self.swallows, handlers)), node.child_by_field_name("body")
        thrown = (body is not None and may_fail(self.source, body)) or self.counted()
        if body is not None:
            self.walk(body, place.worse("swallowed" if swallowed else "real"))
        for child in node.named_children:
            if child in handlers:
                caught = place._replace(condition=AN_EXCEPTION, truth=min(place.truth, OPEN))
                self.block(child, caught.worse("real" if thrown else "conditional"))
            elif child != body:
                self.walk(child, place)

    def counted(self) -> bool:
        """Return True if the test fails where fewer assertions are reached than it says."""
        return bool(_COUNTED.search(self.source.code, self.root.start_byte, self.root.end_byte))

    def _thrown(self, node: Node, place: Place) -> None:
        """`if (total !== 4) throw …` fails the test as an assertion of the opposite does."""
        self.block(node, place)
        if place.condition and place.condition != AN_EXCEPTION and place.truth != ALWAYS:
            text = f"throw if {place.condition}"
            self.check(Check(text, place.condition, EXACT, self.source.line(node)), place)

    def _binary(self, node: Node, place: Place) -> None:
        left, operator, right = (node.child_by_field_name(f) for f in ("left", "operator", "right"))
        if left is None or right is None:
            self.block(node, place)
            return
        self.walk(left, place)
        before, condition = len(self.checks), self.source.of(left)
        if operator is not None and operator.type in {"&&", "and"} and right.type in CALLS:
            place = place.under(condition, truth(condition))
        self.walk(right, place)
        if place.condition == condition and place.truth == OPEN and self.guards:
            guard(self.checks, before, condition)
