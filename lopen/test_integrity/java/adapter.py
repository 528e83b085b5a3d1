"""Java tests: JUnit 3, 4 and 5, TestNG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.flow import Helpers
from lopen.test_integrity.java.annotations import Annotation, annotations_of
from lopen.test_integrity.java.checks import JavaBody
from lopen.test_integrity.java.extensions import (
    chosen,
    composed_annotations,
    conditions,
    extended_by,
    is_rule,
    stood_for,
    suite_case,
    swallowers,
    swallows_around,
)
from lopen.test_integrity.java.ranks import exception_rank
from lopen.test_integrity.java.rows import methods_of, row_provider, test_rows
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import Case, Check, Language, Skip, Suite, numbered, support_cases
from lopen.test_integrity.syntax import ParsedFile, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_PATH = re.compile(
    r"(?:^|/)(?:test|tests|it|integrationTest)/|(?:Test|Tests|TestCase|IT|Spec)\.java$|/Test\w+\.java$"
)
_CLASSES = frozenset({"class_declaration", "interface_declaration", "record_declaration", "enum_declaration"})
_TESTS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property"})
_OWN_TEST = re.compile(r"^(?!\w*(?:[rR]etry|[fF]laky|[dD]isabled|[sS]kip))\w+Test$")  # composed elsewhere
_SETTING_UP = frozenset(
    {"Before", "BeforeEach", "BeforeAll", "BeforeClass", "BeforeMethod", "BeforeTest", "BeforeSuite"}
)
_ELSEWHERE = re.compile(
    r"^(?!(?:.*/)?src/)(?:.*/)?(?:docs?|examples?|samples?|archive|attic|old|disabled)/|(?:^|/)src/(?!main/|\w*(?:[tT]est|[sS]pec|[iI]ntegration|[fF]unctional|e2e|IT)\w*/|it/)\w+/(?:java|kotlin)/"
)
_CONDITIONAL = re.compile(
    r"^(?:(?:Disabled|Enabled)(?:On|If|For)|IfProfileValue|DisableIf|DisabledUntil|RunIf|SkipIf)\w*$"
)
_TURNED = re.compile(
    r"\bexpected\s*=\s*(?:[\w.]+\.)?(?:AssertionError|ComparisonFailure|Throwable|Error)\.class"
)
_REPEATING = re.compile(
    r"\b(?:for|while|forEach|stream|dataProvider|dataProviderClass|range|all\w*Match|allSatisfy|invocationCount)\b"
)
_FOREIGN = re.compile(r"\b(?:WINDOWS|MAC|AIX|SOLARIS)\b|[Ww]indows|mac os")
_FIELDS = "(variable_declarator name: (identifier) @name value: (_) @value)"


def covers(path: str) -> bool:
    """Return True if a file holds tests: by folder or by name."""
    return path.endswith(".java") and bool(_PATH.search(path))


def collects(path: str) -> bool:
    """Return True unless a path lies in a source set that holds no tests."""
    return covers(path) and not _ELSEWHERE.search(path)


@dataclass(slots=True)
class _Class:
    """A class: its name and those of the classes around it, what it extends, and what keeps its tests from running.

    `alone` holds unless another class extends it. `given` are its fields and what it sets up, as text.
    `whole`: each public method is a test (TestNG). `swallowed`: an extension or a rule drops what its tests throw.
    """

    names: tuple[str, ...]
    parents: tuple[str, ...]
    skips: list[Skip] = field(default_factory=list)
    alone: list[Skip] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    swallowed: bool = False
    whole: bool = False
    methods: list[Node] = field(default_factory=list)


_EXPECTED = re.compile(r"\bexpected(?:Exceptions)?\s*=\s*\{?\s*([\w.]+)")


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; methods that assert, in whichever of the files, count where they are called."""
    parsed = {path: _File(parsed_file(text, "java")) for path, text in files.items()}
    helpers = {name: checks for file in parsed.values() for name, checks in file.helpers.items()}
    composed = {
        name: marks for file in parsed.values() for name, marks in composed_annotations(file.source).items()
    }
    named = {name: skip for file in parsed.values() for name, skip in conditions(file.source).items()}
    silent = frozenset(name for file in parsed.values() for name in swallowers(file.source))
    around = _Around(composed, named, silent)
    for file in parsed.values():
        file.take(around)
    classes = [owner for file in parsed.values() for owner in file.classes]
    extended = {parent for owner in classes for parent in owner.parents}
    for owner in classes:
        owner.skips += owner.alone if owner.names[-1] not in extended else ()
    marks = {owner.names[-1]: owner.skips for owner in classes}
    return {path: file.suite(helpers, marks) for path, file in parsed.items()}


@dataclass(frozen=True, slots=True)
class _Around:
    """What the files of a change declare around tests: annotations, conditions, and extensions that swallow."""

    composed: Mapping[str, Sequence[Annotation]]
    conditions: Mapping[str, Skip]
    swallowers: frozenset[str]


class _File:
    """A file's classes."""

    def __init__(self, source: ParsedFile) -> None:
        self.source = source
        self.named = {source.name(f["name"]): f["value"] for f in source.matches(_FIELDS)}
        self.helpers = dict(_helper_checks(source, self.named))
        self.classes: list[_Class] = []
        self.jupiter = b"org.junit.jupiter" in source.text
        self.methods = methods_of(source)
        self.narrowing: list[Skip] = []
        self.suites: list[Case] = []
        self._around = _Around({}, {}, frozenset())

    def take(self, around: _Around) -> None:
        """Read the classes, with what stands around them."""
        self._around = around
        self._collect(self.source.root, ())

    def _marks(self, node: Node) -> list[Annotation]:
        return stood_for(annotations_of(self.source, node), self._around.composed)

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
        marks = self._marks(node)
        owner.skips += [s for annotation in marks for s in self._skips(annotation)]
        owner.whole = any(each.name == "Test" for each in marks)
        extensions = extended_by(marks)
        owner.skips += [each for name in extensions if (each := self._around.conditions.get(name))]
        owner.swallowed = bool(self._around.swallowers.intersection(extensions))
        self.suites += suite_case(name, marks, source.line(node))
        self.narrowing += chosen(source, marks)
        owner.alone += self._not_discovered(node, name, names)
        for member in body.named_children:
            if member.type == "static_initializer":
                owner.skips += self._body(member, {}).skips
            elif member.type == "field_declaration":
                owner.given.append(source.of(member))
                if is_rule(source, member):
                    made = self._around.swallowers.intersection(re.findall(r"\w+", source.of(member)))
                    owner.swallowed |= bool(made) or swallows_around(source, member)
            elif member.type == "method_declaration":
                owner.methods.append(member)
                if any(each.name in _SETTING_UP for each in self._marks(member)):
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

    def _body(self, method: Node, helpers: Helpers, *, swallowed: bool = False) -> JavaBody:
        body = JavaBody(self.source, method, helpers, self.named)
        place = Place("swallowed" if swallowed else "real")
        body.block(method.child_by_field_name("body") or method.named_children[-1], place)
        return body

    def _skips(self, annotation: Annotation) -> Iterator[Skip]:
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
        found = numbered([*cases, *support_cases(support), *self.suites])
        return Suite(found, tuple(self.narrowing))

    def _is_test(self, method: Node, owner: _Class) -> bool:
        if any(each.name in _TESTS or _OWN_TEST.match(each.name) for each in self._marks(method)):
            return True
        name = self.source.name(method.child_by_field_name("name"))
        if owner.whole and "public" in self._modifiers(method) and not self._marks(method):
            return True
        return "TestCase" in "".join(owner.parents) and bool(re.match(r"test(?![a-z])", name))

    def _case(self, method: Node, owner: _Class, skips: Sequence[Skip], helpers: Helpers) -> Case:
        source, inner = self.source, method.child_by_field_name("body")
        name = method.child_by_field_name("name") or method
        line, run = source.line(name), self._marks(method)
        body = self._body(method, helpers, swallowed=owner.swallowed)
        provider = row_provider(source, run, source.name(name), self.methods)
        listing = source.of(provider.child_by_field_name("body")) if provider is not None else ""
        expected = [
            Check(f"@Test({each.arguments})", "an exception", exception_rank(found[1]), line)
            for each in run
            if each.name == "Test" and (found := _EXPECTED.search(each.arguments))
        ]
        own = [skip for each in run for skip in self._skips(each)]
        own += [Skip(f"{word} method", line) for word in sorted({"private"} & self._modifiers(method))]
        own += [each for name in extended_by(run) if (each := self._around.conditions.get(name))]
        rows = test_rows(source, run, provider)
        return Case(
            "::".join([*owner.names, source.name(name)]),
            line,
            f"{' '.join(f'@{a.name}({a.arguments})' for a in run)} {source.of(inner)} {listing}",
            (*expected, *body.checks),
            (*skips, *own, *dict.fromkeys(body.skips)),
            body.rows if rows is None else rows,
            inner is None or not source.of(inner).strip("{} "),
            turned=next(
                (f"@Test({a.arguments})" for a in run if a.name == "Test" and _TURNED.search(a.arguments)), ""
            ),
            given=" ".join(owner.given),
            plain=rows is None and body.rows is None and _is_plain(run, source.of(inner)),
        )


def _is_plain(run: Sequence[Annotation], body: str) -> bool:
    """Return True if a test runs once, and repeats nothing."""
    return [each.name for each in run if each.name in _TESTS] == ["Test"] and not _REPEATING.search(
        f"{body} {' '.join(each.arguments for each in run)}"
    )


def _is_foreign(annotation: Annotation) -> bool:
    """Return True if a condition on the platform leaves Linux in."""
    if annotation.name.startswith("Enabled"):
        return "LINUX" in annotation.arguments
    return bool(_FOREIGN.search(annotation.arguments)) and "LINUX" not in annotation.arguments


_CALLED = re.compile(rb"(?<!void )\b(\w+) ?\(|::(\w+)")  # `void name(` declares a test
_TEST = re.compile(rb"@\w*Test\b")


def _helper_checks(source: ParsedFile, tables: Mapping[str, Node]) -> Iterator[tuple[str, tuple[Check, ...]]]:
    """Methods by name, with what they check; a test that nothing calls is no helper."""
    called = {name for pair in _CALLED.findall(source.text) for name in pair}
    for name, method in source.functions("(method_declaration name: (identifier) @name) @function"):
        if name.encode() in called or not _TEST.match(source.text, method.start_byte):
            body = JavaBody(source, method, {}, tables)
            body.block(method.child_by_field_name("body"), Place())
            yield name, tuple(body.checks)


LANGUAGE = Language("Java", covers, collects, read)
