"""Specs of Ginkgo: `It` in containers, tables of entries, what is pending and what is focused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.flow import DEEPEST, Helpers
from lopen.test_integrity.go.body import GoBody, GoNames
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import Case, Skip
from lopen.test_integrity.syntax import CALLS, FUNCTIONS, ParsedFile, arguments

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_KIND = re.compile(
    r"^(?P<mark>[PXF]?)(?P<kind>Describe|Context|When|It|Specify|Entry|DescribeTable|DescribeTableSubtree|BeforeEach|BeforeAll"
    r"|JustBeforeEach)$"
)
_CONTAINERS = frozenset({"Describe", "Context", "When"})
_TITLES = frozenset({"interpreted_string_literal", "raw_string_literal"})


@dataclass(slots=True)
class Specs:
    """The specs of a file, and what keeps others than these from running."""

    source: ParsedFile
    names: GoNames
    helpers: Helpers
    skipping: Mapping[str, Sequence[Skip]]
    cases: list[Case] = field(default_factory=list)
    narrowing: list[Skip] = field(default_factory=list)

    def read(
        self, node: Node, above: tuple[str, ...] = (), skips: tuple[Skip, ...] = (), depth: int = 0
    ) -> None:
        """Note the specs in a node; `above` are the titles of the containers around it."""
        if depth > DEEPEST:
            return
        skips = (*skips, *(skip for each in self._set_up(node) for skip in self._body(each, "").skips))
        for child in node.named_children:
            found = self._call(child) if child.type in CALLS else None
            if found is None:
                self.read(child, above, skips, depth + 1)
            elif "Before" not in found["kind"]:
                self._spec(child, found, above, skips, depth)

    def _set_up(self, node: Node) -> Iterator[Node]:
        """Yield the calls that set up all specs of a container, which are statements of its body."""
        if node.type not in {"block", "statement_list"}:
            return
        for statement in node.named_children:
            call = statement.named_children[0] if statement.named_child_count else statement
            found = self._call(call) if call.type in CALLS else None
            if found is not None and "Before" in found["kind"]:
                yield call

    def _call(self, node: Node) -> re.Match[str] | None:
        called = node.child_by_field_name("function")
        name = self.source.of(called).removeprefix("ginkgo.") if called is not None else ""
        return _KIND.match(name)

    def _spec(
        self, node: Node, found: re.Match[str], above: tuple[str, ...], skips: tuple[Skip, ...], depth: int
    ) -> None:
        given, line = arguments(node), self.source.line(node)
        title = self.source.title(given[0]) if given and given[0].type in _TITLES else ""
        marks = {self.source.of(each).removeprefix("ginkgo.") for each in given[1:]}
        kind = found["kind"]
        if found["mark"] in {"P", "X"} or "Pending" in marks:
            skips = (*skips, Skip(f"{found[0]}{' Pending' * ('Pending' in marks)}", line))
        if found["mark"] == "F" or "Focus" in marks:
            self.narrowing.append(Skip(f"{found[0]}{' Focus' * ('Focus' in marks)}", line))
        if kind in _CONTAINERS:
            inner = next((each for each in given if each.type in FUNCTIONS), None)
            if inner is not None:
                self.read(inner, (*above, title), skips, depth + 1)
            return
        body = self._body(node, " > ".join((*above, title)))
        rows = sum(1 for each in self._entries(given)) if kind.startswith("DescribeTable") else body.rows
        text = self.source.of(node)
        case = Case(body.name, line, text, tuple(body.checks), (*skips, *body.skips), rows)
        self.cases.append(case)

    def _body(self, node: Node, name: str) -> GoBody:
        inner = next((each for each in arguments(node) if each.type in FUNCTIONS), None)
        body = GoBody(self.source, inner or node, self.helpers, self.names, name, self.skipping)
        body.block(inner.child_by_field_name("body") if inner is not None else None, Place())
        return body

    def _entries(self, given: Sequence[Node]) -> Iterator[Node]:
        """Yield the entries of a table that run."""
        for each in given:
            found = self._call(each) if each.type in CALLS else None
            marks = (
                {self.source.of(part).removeprefix("ginkgo.") for part in arguments(each)} if found else set()
            )
            if found and found["kind"] == "Entry":
                if found["mark"] == "F" or "Focus" in marks:
                    self.narrowing.append(Skip(found[0], self.source.line(each)))
                if found["mark"] not in {"P", "X"} and "Pending" not in marks:
                    yield each
