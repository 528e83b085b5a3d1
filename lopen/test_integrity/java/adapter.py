"""Java tests: JUnit 3, 4 and 5, TestNG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.flow import Helpers
from lopen.test_integrity.java.checks import JavaBody, helper_checks
from lopen.test_integrity.java.ranks import exception_rank
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import Case, Check, Language, Skip, Suite, numbered, support_cases
from lopen.test_integrity.syntax import COMMENTS, ParsedFile, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_PATH = re.compile(
    r"(?:^|/)(?:test|tests|it|integrationTest)/|(?:Test|Tests|TestCase|IT|Spec)\.java$|/Test\w+\.java$"
)
_CLASSES = frozenset({"class_declaration", "interface_declaration", "record_declaration", "enum_declaration"})
_TESTS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property"})
_SETTING_UP = frozenset(
    {"Before", "BeforeEach", "BeforeAll", "BeforeClass", "BeforeMethod", "BeforeTest", "BeforeSuite"}
)
_TABLES = frozenset({"CsvSource", "ValueSource", "EnumSource"})
_FIXED_ROWS = {"NullSource": 1, "EmptySource": 1, "NullAndEmptySource": 2}
_SOURCE = re.compile(r"^\w+Source$")
_ELSEWHERE = re.compile(
    r"(?:^|/)src/(?!main/|\w*(?:[tT]est|[sS]pec|[iI]ntegration|[fF]unctional|e2e|IT)\w*/|it/)\w+/(?:java|kotlin)/"
)
_CONDITIONAL = re.compile(r"^(?:Disabled|Enabled)(?:On|If|For)\w*$")
_TURNED = re.compile(
    r"\bexpected\s*=\s*(?:[\w.]+\.)?(?:AssertionError|ComparisonFailure|Throwable|Error)\.class"
)
_FOREIGN = re.compile(r"\b(?:WINDOWS|MAC|AIX|SOLARIS)\b|[Ww]indows|mac os")
_FIELDS = "(variable_declarator name: (identifier) @name value: (_) @value)"
_LISTING = re.compile(r"(?:Stream|List|Set|Arrays)\.(?:of|asList)$")


def covers(path: str) -> bool:
    """Return True if a file holds tests: by folder or by name."""
    return path.endswith(".java") and bool(_PATH.search(path))


def collects(path: str) -> bool:
    """Return True unless a path lies in a source set that holds no tests."""
    return covers(path) and not _ELSEWHERE.search(path)


@dataclass(frozen=True, slots=True)
class _Annotation:
    """An annotation: its last name, its arguments as text, its node."""

    name: str
    arguments: str
    node: Node


@dataclass(slots=True)
class _Class:
    """A class: its name and those of the classes around it, what it extends, and what keeps its tests from running.

    `alone` holds unless another class extends it. `given` are its fields and what it sets up, as text.
    """

    names: tuple[str, ...]
    parents: tuple[str, ...]
    skips: list[Skip] = field(default_factory=list)
    alone: list[Skip] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    methods: list[Node] = field(default_factory=list)


_EXPECTED = re.compile(r"\bexpected(?:Exceptions)?\s*=\s*\{?\s*([\w.]+)")


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; methods that assert, in whichever of the files, count where they are called."""
    parsed = {path: _File(parsed_file(text, "java")) for path, text in files.items()}
    helpers = {name: checks for file in parsed.values() for name, checks in file.helpers.items()}
    classes = [owner for file in parsed.values() for owner in file.classes]
    extended = {parent for owner in classes for parent in owner.parents}
    for owner in classes:
        owner.skips += owner.alone if owner.names[-1] not in extended else ()
    marks = {owner.names[-1]: owner.skips for owner in classes}
    return {path: file.suite(helpers, marks) for path, file in parsed.items()}


class _File:
    """A file's classes."""

    def __init__(self, source: ParsedFile) -> None:
        self.source = source
        self.named = {source.name(f["name"]): f["value"] for f in source.matches(_FIELDS)}
        self.helpers = dict(helper_checks(source, self.named))
        self.classes: list[_Class] = []
        self.jupiter = b"org.junit.jupiter" in source.text
        self._collect(source.root, ())

    def _collect(self, body: Node, names: tuple[str, ...]) -> None:
        for node in body.named_children:
            inner = node.child_by_field_name("body")
            if node.type in _CLASSES and inner is not None and len(names) < 10:
                owner = self._class(node, inner, names)
                self.classes.append(owner)
                self._collect(inner, owner.names)

    def _class(self, node: Node, body: Node, names: tuple[str, ...]) -> _Class:
        source = self.source
        heritage = source.of(node.child_by_field_name("superclass")).removeprefix("extends ")
        parent = re.sub(r"<.*", "", heritage).rpartition(".")[2]
        name = source.name(node.child_by_field_name("name"))
        owner = _Class((*names, name), (parent,) if parent else ())
        owner.skips += [s for annotation in self.annotations(node) for s in self._skips(annotation)]
        owner.alone += self._not_discovered(node, name, names)
        for member in body.named_children:
            if member.type == "static_initializer":
                owner.skips += self._body(member, {}).skips
            elif member.type == "field_declaration":
                owner.given.append(source.of(member))
            elif member.type == "method_declaration":
                owner.methods.append(member)
                if any(each.name in _SETTING_UP for each in self.annotations(member)):
                    owner.skips += self._set_up(member)
                    owner.given.append(source.of(member))
        return owner

    def _not_discovered(self, node: Node, name: str, around: Sequence[str]) -> Iterator[Skip]:
        """Yield why a class by itself is none of those that the runner makes."""
        if node.type != "class_declaration":
            return
        said, line = self._modifiers(node), self.source.line(node)
        if "abstract" in said:
            yield Skip(f"abstract class {name}", line, certain=False)
        elif around and self.jupiter and not {"static", "@Nested"} & said:
            yield Skip(f"class {name} without @Nested", line)

    def _modifiers(self, node: Node) -> set[str]:
        found = [child for child in node.named_children if child.type == "modifiers"]
        return set(self.source.of(found[0]).replace("(", " (").split()) if found else set()

    def _set_up(self, method: Node) -> Iterator[Skip]:
        name = self.source.name(method.child_by_field_name("name"))
        for skip in self._body(method, {}).skips:
            if not skip.text.startswith("return"):
                yield Skip(f"{name}'s {skip.text}", skip.line, skip.certain)

    def _body(self, method: Node, helpers: Helpers) -> JavaBody:
        body = JavaBody(self.source, method, helpers, self.named)
        body.block(method.child_by_field_name("body") or method.named_children[-1], Place())
        return body

    def annotations(self, node: Node) -> list[_Annotation]:
        """The annotations of a class or method."""
        modifiers = [child for child in node.named_children if child.type == "modifiers"]
        found = []
        for each in modifiers[0].named_children if modifiers else ():
            if each.type in {"annotation", "marker_annotation"}:
                name = self.source.of(each.child_by_field_name("name")).rpartition(".")[2]
                arguments = self.source.of(each.child_by_field_name("arguments"))
                found.append(_Annotation(name, arguments.removeprefix("(").removesuffix(")"), each))
        return found

    def _skips(self, annotation: _Annotation) -> Iterator[Skip]:
        line = self.source.line(annotation.node)
        if annotation.name in {"Disabled", "Ignore"}:
            yield Skip(f"@{annotation.name}", line)
        elif annotation.name == "Test" and re.search(r"\benabled\s*=\s*false", annotation.arguments):
            yield Skip("@Test(enabled = false)", line)
        elif _CONDITIONAL.match(annotation.name):
            yield Skip(f"@{annotation.name}({annotation.arguments})", line, not _is_foreign(annotation))

    def suite(self, helpers: Helpers, marks: Mapping[str, Sequence[Skip]]) -> Suite:
        """The file's tests and helpers."""
        own = {**marks, **{owner.names[-1]: owner.skips for owner in self.classes}}
        parents = {owner.names[-1]: owner.parents for owner in self.classes}
        cases = []
        for owner in self.classes:
            around = [name for each in owner.names for name in (each, *parents.get(each, ()))]
            skips = [skip for name in around for skip in own.get(name, ())]
            for method in owner.methods:
                if self._is_test(method, owner):
                    cases.append(self._case(method, owner, skips, helpers))
        tests = {case.short for case in cases}
        support = {name: checks for name, checks in self.helpers.items() if name not in tests}
        return Suite(numbered([*cases, *support_cases(support)]))

    def _is_test(self, method: Node, owner: _Class) -> bool:
        if any(each.name in _TESTS for each in self.annotations(method)):
            return True
        name = self.source.name(method.child_by_field_name("name"))
        return "TestCase" in "".join(owner.parents) and bool(re.match(r"test(?![a-z])", name))

    def _case(self, method: Node, owner: _Class, skips: Sequence[Skip], helpers: Helpers) -> Case:
        source, inner = self.source, method.child_by_field_name("body")
        name = method.child_by_field_name("name") or method
        line, run = source.line(name), self.annotations(method)
        body = self._body(method, helpers)
        expected = [
            Check(f"@Test({each.arguments})", "an exception", exception_rank(found[1]), line)
            for each in run
            if each.name == "Test" and (found := _EXPECTED.search(each.arguments))
        ]
        own = [skip for each in run for skip in self._skips(each)]
        own += [Skip(f"{word} method", line) for word in sorted({"private"} & self._modifiers(method))]
        rows = self._rows(run)
        return Case(
            "::".join([*owner.names, source.name(name)]),
            line,
            f"{' '.join(f'@{a.name}({a.arguments})' for a in run)} {source.of(inner)} {self._provider_text(run)}",
            (*expected, *body.checks),
            (*skips, *own, *dict.fromkeys(body.skips)),
            body.rows if rows is None else rows,
            inner is None or not source.of(inner).strip("{} "),
            turned=next(
                (f"@Test({a.arguments})" for a in run if a.name == "Test" and _TURNED.search(a.arguments)), ""
            ),
            given=" ".join(owner.given),
        )

    def _rows(self, run: Sequence[_Annotation]) -> int | None:
        """The rows that annotations spell out, or that the method which they name lists; None where one does not."""
        provider = self._provider(run)
        counts = [self._listed(provider)] if provider is not None else []
        for each in run:
            if each.name == "RepeatedTest" and (times := re.search(r"\d+", each.arguments)):
                counts.append(int(times[0]))
            elif _SOURCE.match(each.name) and (provider is None or each.name != "MethodSource"):
                counts.append(_FIXED_ROWS.get(each.name) or self._spelled_out(each))
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    def _spelled_out(self, each: _Annotation) -> int | None:
        """The rows in an annotation."""
        if each.name not in _TABLES or (each.name == "EnumSource" and "names" not in each.arguments):
            return None
        if "EXCLUDE" in each.arguments:
            return None
        if block := re.search(r'textBlock = """(.*)"""', self.source.name(each.node), re.DOTALL):
            lines = [line for line in block[1].splitlines() if line.strip() and line.strip()[0] != "#"]
            return len(lines) - bool(re.search(r"useHeadersInDisplayName = true", each.arguments))
        lists = self.source.find("(element_value_array_initializer) @list", "list", each.node)
        return len([c for c in lists[0].named_children if c.type not in COMMENTS]) if lists else 1

    def _provider_text(self, run: Sequence[_Annotation]) -> str:
        provider = self._provider(run)
        return self.source.of(provider.child_by_field_name("body")) if provider is not None else ""

    def _provider(self, run: Sequence[_Annotation]) -> Node | None:
        """The method that lists a test's rows."""
        for each in run:
            named = re.search(r'(?:dataProvider = )?"(\w+)"', each.arguments)
            if named and (each.name == "MethodSource" or "dataProvider" in each.arguments):
                return self._provided(named[1])
        return None

    def _provided(self, name: str) -> Node | None:
        """The method of that name, or the data provider."""
        for owner in self.classes:
            for method in owner.methods:
                own = self.source.name(method.child_by_field_name("name"))
                marked = any(
                    f'"{name}"' in a.arguments for a in self.annotations(method) if a.name == "DataProvider"
                )
                if own == name or marked:
                    return method
        return None

    def _listed(self, method: Node) -> int | None:
        for call in self.source.find("(method_invocation) @call", "call", method):
            links = self.source.chain(call)
            if _LISTING.search(".".join(link.name for link in links[:2])) and len(links) == 2:
                return len(links[1].arguments or ())
        tables = self.source.find("(array_initializer) @list", "list", method)
        return len([c for c in tables[0].named_children if c.type not in COMMENTS]) if tables else None


def _is_foreign(annotation: _Annotation) -> bool:
    """Return True if a condition on the platform leaves Linux in."""
    if annotation.name.startswith("Enabled"):
        return "LINUX" in annotation.arguments
    return bool(_FOREIGN.search(annotation.arguments)) and "LINUX" not in annotation.arguments


LANGUAGE = Language("Java", covers, collects, read)
