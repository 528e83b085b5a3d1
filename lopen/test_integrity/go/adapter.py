"""Go tests: functions of `_test.go` files, their subtests, testify, gomega; build constraints, `TestMain`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, HERE, NEVER, truth
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.go.checks import asserted, expected, failing, main_skips
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import EXACT, Case, Check, Language, Skip, Suite, numbered, support_cases
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, dotted, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TEST = re.compile(r"^(?:Test|Example|Fuzz)(?![a-z])")
_FAILING = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})
_SKIPS = frozenset({"Skip", "Skipf", "SkipNow"})
_ASSERTING = frozenset(
    {"assert", "require", "must", "qt", "td", "is", "c", "s", "suite", "Require", "Assert"}
)
_NAMED_CHECK = re.compile(r"assert|require|check|expect|equal|verify|compare", re.IGNORECASE)
_NO_HELPERS = frozenset({"Run", "append", "len", "panic", "print", "New", "require", "assert", "func"})
_OUTPUT = re.compile(r"//\s*(?:Unordered )?[Oo]utput:[^\n]*(?:\n\s*//[^\n]*)*")
_CONSTRAINT = re.compile(r"^//\s*(?P<kind>go:build|\+build)\s+(?P<tags>.+)$", re.MULTILINE)
_HERE = re.compile(r"^(?:linux|unix|amd64|arm64|cgo|gc|go1\.\d+)$")
_FOREIGN = (
    r"windows|darwin|freebsd|netbsd|openbsd|plan9|solaris|js|wasm|wasip1|aix|android|ios|dragonfly|illumos"
)
_FOREIGN_FILE = re.compile(
    rf"_(?:{_FOREIGN})(?:_\w+)?_test\.go$|_(?:386|arm|mips\w*|ppc64\w*|riscv64|s390x)_test\.go$"
)
_FUNCTIONS = """
(function_declaration name: (identifier) @name) @function
(method_declaration name: (field_identifier) @name) @function
"""
_TESTERS = "(parameter_declaration name: (identifier) @name type: (_) @type)"
_TABLES = """
(short_var_declaration left: (expression_list . (identifier) @name .) right: (expression_list . (composite_literal) @value .))
(var_spec name: (identifier) @name value: (expression_list . (composite_literal) @value .))
"""
_ASSERTERS = """
(short_var_declaration left: (expression_list . (identifier) @name .) right: (expression_list . (call_expression) @value .))
(import_spec name: (package_identifier) @name path: (_) @value)
"""
_ASSERTER = re.compile(r"(?:assert|require|is|qt)\.New\(|/(?:assert|require)\"$")


_PASSED_OVER = re.compile(r"(?:^|/)(?:testdata|vendor|[._][^/]*)/")


def collects(path: str) -> bool:
    """Return True if `go test` on Linux reads the file."""
    name = path.rpartition("/")[2]
    named = name.endswith("_test.go") and name[0] not in "_."
    return named and not _PASSED_OVER.search(path) and not _FOREIGN_FILE.search(path)


@dataclass(frozen=True, slots=True)
class _Names:
    """What a file's names stand for: testing's `t`, assertion libraries, tables."""

    testers: frozenset[str]
    asserters: frozenset[str]
    tables: Mapping[str, Node]


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; functions that take `t` and check count where they are called."""
    sources = {path: parsed_file(text, "go") for path, text in files.items()}
    names = {path: _names(source) for path, source in sources.items()}
    bodies = {path: list(_helpers(source, names[path])) for path, source in sources.items()}
    everywhere = [pair for found in bodies.values() for pair in found]
    helpers = {name: body.checks for name, body in everywhere}
    skipping = {name: body.skips for name, body in everywhere if body.skips}
    return {
        path: _suite(source, names[path], bodies[path], helpers, skipping) for path, source in sources.items()
    }


def _names(source: ParsedFile) -> _Names:
    testers = {
        source.name(found["name"])
        for found in source.matches(_TESTERS)
        if re.search(r"\*?testing\.(?:T|B|F|TB)$", source.of(found["type"]))
    }
    asserters = {
        source.name(found["name"])
        for found in source.matches(_ASSERTERS)
        if _ASSERTER.search(source.of(found["value"]))
    }
    tables = {source.name(found["name"]): found["value"] for found in source.matches(_TABLES)}
    return _Names(frozenset(testers | {"t", "b", "f", "tb"}), _ASSERTING | asserters, tables)


def _helpers(source: ParsedFile, names: _Names) -> Iterator[tuple[str, _Body]]:
    """Functions that take `t` and are not tests."""
    for name, function in source.functions(_FUNCTIONS):
        if "testing." in _parameters(source, function) and not _TEST.match(name):
            body = _Body(source, function, {}, names, name)
            body.block(function.child_by_field_name("body"), Place())
            yield name, body


def _parameters(source: ParsedFile, function: Node) -> str:
    return source.of(function.child_by_field_name("parameters"))


def _suite(
    source: ParsedFile,
    names: _Names,
    own: Sequence[tuple[str, _Body]],
    helpers: Helpers,
    skipping: Mapping[str, Sequence[Skip]],
) -> Suite:
    constraints = tuple(_constraints(source))
    cases: list[Case] = []
    narrowing: list[Skip] = []
    for name, function in source.functions(_FUNCTIONS):
        if name in {"TestMain", "init"}:
            narrowing += main_skips(source, name, function)
        elif _is_test(name, source, function):
            full = f"{receiver}.{name}" if (receiver := _receiver(source, function)) else name
            cases += _cases(_Body(source, function, helpers, names, full, skipping), function, constraints)
    uncollected = {
        source.of(function.child_by_field_name("body")): name
        for name, function in source.functions(_FUNCTIONS)
        if not _is_test(name, source, function) and "testing." in _parameters(source, function)
    }
    support = support_cases({name: body.checks for name, body in own})
    return Suite(numbered([*cases, *support]), tuple(narrowing), uncollected)


def _is_test(name: str, source: ParsedFile, function: Node) -> bool:
    if not _TEST.match(name):
        return False
    parameters = _parameters(source, function)
    takes = re.match(r"^\((?:\w+ )?\*?\w*\.?[TFC]\)$", parameters)
    return (
        parameters == "()"
        if name.startswith("Example") or function.type == "method_declaration"
        else bool(takes)
    )


def _receiver(source: ParsedFile, function: Node) -> str:
    found = re.search(r"(\w+)\)$", source.of(function.child_by_field_name("receiver")))
    return found[1] if found else ""


def _constraints(source: ParsedFile) -> Iterator[Skip]:
    for comment in source.root.named_children:
        if comment.type != "comment":
            return
        if found := _CONSTRAINT.match(source.name(comment)):
            tags = found["tags"]
            if found["kind"] == "+build":
                tags = " || ".join(part.replace(",", " && ") for part in tags.split())
            included = truth(tags, _tag)
            if included != ALWAYS:
                text = f"the build constraint {' '.join(found['tags'].split())}"
                yield Skip(text, source.line(comment), included != HERE)


def _tag(name: str) -> int:
    """The truth of a build tag; one that the person has to name is not set."""
    if _HERE.match(name):
        return HERE
    return ELSEWHERE if re.fullmatch(_FOREIGN, name) else NEVER


def _cases(body: _Body, function: Node, constraints: tuple[Skip, ...]) -> list[Case]:
    """A test and its subtests."""
    source, inner = body.source, function.child_by_field_name("body")
    body.block(inner, Place())
    if body.name.startswith("Example") and inner is not None:
        commented = source.text[inner.start_byte : inner.end_byte].decode("utf-8", "replace")
        for found in _OUTPUT.finditer(commented):
            body.checks.append(Check(" ".join(found.group().split()), "output", EXACT, source.line(inner)))
    skips = (*constraints, *body.outer, *dict.fromkeys(body.skips))
    empty = inner is None or not source.of(inner).strip("{} ")
    text = _without(source, inner, [node for _, node in body.subtests])
    own = Case(body.name, source.line(function), text, tuple(body.checks), skips, body.rows, empty)
    return [own, *(case for each, node in body.subtests for case in _cases(each, node, constraints))]


def _without(source: ParsedFile, body: Node | None, parts: Sequence[Node]) -> str:
    """A body's text without the subtests in it."""
    if body is None:
        return ""
    edges = [
        body.start_byte,
        *(at for part in parts for at in (part.start_byte, part.end_byte)),
        body.end_byte,
    ]
    return " ".join(source.span(*pair) for pair in zip(edges[::2], edges[1::2], strict=True))


class _Body(Flow):
    """The walk through a test, a subtest or a helper."""

    guards = False

    def __init__(
        self,
        source: ParsedFile,
        root: Node,
        helpers: Helpers,
        names: _Names,
        name: str,
        skipping: Mapping[str, Sequence[Skip]] | None = None,
    ) -> None:
        super().__init__(source, root, helpers)
        self.names = names
        self.name = name
        self.skipping = skipping or {}
        self.outer: list[Skip] = []
        self.subtests: list[tuple[_Body, Node]] = []

    def tables(self) -> Mapping[str, Node]:
        """The tables of the test itself come before those of other functions with the same name."""
        own = {
            self.source.name(found["name"]): found["value"]
            for found in self.source.matches(_TABLES, self.root)
        }
        return {**self.names.tables, **own}

    def condition(self, branch: Node) -> str:
        initializer = self.source.of(branch.child_by_field_name("initializer"))
        condition = super().condition(branch)
        return f"{initializer}; {condition}" if initializer else condition

    def other(self, node: Node, place: Place) -> bool:
        """A case of a switch is a branch."""
        if node.type != "expression_case":
            return False
        value = self.source.of(node.child_by_field_name("value"))
        switched = node.parent.child_by_field_name("value") if node.parent is not None else None
        condition = f"{self.source.of(switched)} == {value}" if switched is not None else value
        self.block(node, place.under(condition, truth(condition)))
        return True

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        last, given = links[-1], links[-1].arguments
        if given is None:
            return False
        tester = len(links) > 1 and (links[-2].name in self.names.testers or links[-2].name == "T")
        if tester and last.name == "Run" and self._subtest(given, place):
            return True
        line, text = self.source.line(node), self.source.of(node)
        if tester and last.name in _SKIPS:
            self.skip(f"{dotted(list(links))}", node, place)
        elif (tester and last.name in _FAILING) or (last.name == "panic" and place.condition):
            self.check(failing(text, place.condition, line), place)
        elif len(links) > 1 and links[-2].name in self.names.asserters and last.name[:1].isupper():
            given = given[1:] if given and self._is_tester(given[0]) else given
            self.check(asserted(self.source, text, last.name, given, line), place)
        elif links[0].name in {"Expect", "Ω", "Eventually", "Consistently"} and links[0].arguments:
            self.check(expected(self.source, text, links, line), place)
        else:
            self._helped(links, text, line, place)
        return False

    def _helped(self, links: Sequence[Link], text: str, line: int, place: Place) -> None:
        """The call of a helper, which takes `t`."""
        name, given = links[-1].name, links[-1].arguments or ()
        if not given or not self._is_tester(given[0]) or name in _NO_HELPERS:
            return
        for skip in self.skipping.get(name, ()):
            self.skip(f"{name}'s {skip.text}", links[-1].node, place)
        check = Check(text, self.source.of(given[1]) if len(given) > 1 else text, EXACT, line)
        if name in self.helpers:
            self.helper(name, check, place)
        elif len(links) == 1 or _NAMED_CHECK.search(name):
            self.check(check, place)

    def _is_tester(self, argument: Node) -> bool:
        text = self.source.of(argument)
        return text in self.names.testers or text.endswith(".T()")

    def _subtest(self, given: Sequence[Node], place: Place) -> bool:
        """A subtest with a literal title is a test of its own."""
        literal = {"interpreted_string_literal", "raw_string_literal"}
        if len(given) != 2 or given[0].type not in literal or given[1].type not in FUNCTIONS:
            return False
        if place.kind != "unreachable":
            name = f"{self.name}/{self.source.title(given[0])}"
            body = _Body(self.source, given[1], self.helpers, self.names, name, self.skipping)
            if place.condition and place.truth not in {ALWAYS, NEVER}:
                condition = f"its condition `{place.condition}`"
                body.outer.append(Skip(condition, self.source.line(given[0]), place.truth != ELSEWHERE))
            self.subtests.append((body, given[1]))
        return True


LANGUAGE = Language("Go", lambda path: path.endswith("_test.go"), collects, read)
