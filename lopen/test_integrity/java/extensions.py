"""What stands around Java tests: composed annotations, extensions and rules that skip or swallow, suites of classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.java.annotations import Annotation, annotations_of
from lopen.test_integrity.suite import Case, Skip
from lopen.test_integrity.syntax import ParsedFile, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_AROUND = re.compile(
    r"\b(?:TestExecutionExceptionHandler|LifecycleMethodExecutionExceptionHandler|InvocationInterceptor|TestRule|MethodRule"
    r"|IHookable|IInvokedMethodListener|BlockJUnit4ClassRunner|Statement)\b"
)
_BROAD = re.compile(r"\b(?:Throwable|AssertionError|AssertionFailedError|Error)\b")
_RULES = frozenset({"Rule", "ClassRule", "RegisterExtension"})
_EXTENDING = frozenset({"ExtendWith", "RunWith", "Listeners", "Extensions"})
_LISTING = frozenset({"SuiteClasses", "SelectClasses", "SelectPackages"})
_CHOOSING = re.compile(r"^(?:Exclude|Include)(?:Tags|Category|ClassNamePatterns|Packages|Engines)$")
_CLASS = re.compile(r"(\w+)\.class")


def composed_annotations(source: ParsedFile) -> dict[str, list[Annotation]]:
    """The annotations that a file declares, with those that they stand for."""
    if b"@interface" not in source.text:
        return {}
    found = source.matches("(annotation_type_declaration name: (identifier) @name) @declared")
    return {source.name(each["name"]): annotations_of(source, each["declared"]) for each in found}


def conditions(source: ParsedFile) -> dict[str, Skip]:
    """The extensions that decide whether tests run, each as a skip that is certain where it never lets one run."""
    found: dict[str, Skip] = {}
    for name, node in _classes(source) if b"ExecutionCondition" in source.text else ():
        text = source.of(node)
        if "ExecutionCondition" in text and ".disabled(" in text:
            found[name] = Skip(f"@ExtendWith({name}.class)", source.line(node), ".enabled(" not in text)
    return found


def swallowers(source: ParsedFile) -> frozenset[str]:
    """The extensions, rules and runners of a file that let a failed test pass."""
    if not _AROUND.search(source.text.decode("utf-8", "replace")):
        return frozenset()
    return frozenset(name for name, node in _classes(source) if swallows_around(source, node))


def swallows_around(source: ParsedFile, node: Node) -> bool:
    """Return True if a class or a field runs tests and drops what they throw."""
    text = source.of(node)
    if not _AROUND.search(text):
        return False
    for handler in source.find("(method_declaration) @method", "method", node):
        named = source.name(handler.child_by_field_name("name"))
        if re.match(r"handle\w*ExecutionException$", named) and not may_fail(source, handler):
            return True
    caught = source.find("(catch_clause) @caught", "caught", node)
    return any(
        _BROAD.search(source.of(each.named_children[0])) and not may_fail(source, each.named_children[-1])
        for each in caught
    )


def _classes(source: ParsedFile) -> Iterator[tuple[str, Node]]:
    for each in source.matches("(class_declaration name: (identifier) @name) @class"):
        yield source.name(each["name"]), each["class"]


def extended_by(marks: Sequence[Annotation]) -> list[str]:
    """The names of the extensions and runners that annotations name."""
    return [name for mark in marks if mark.name in _EXTENDING for name in _CLASS.findall(mark.arguments)]


def is_rule(source: ParsedFile, field: Node) -> bool:
    """Return True if a field holds a rule or an extension."""
    return any(mark.name in _RULES for mark in annotations_of(source, field))


def suite_case(name: str, marks: Sequence[Annotation], line: int) -> Iterator[Case]:
    """A class that lists other classes of tests, with how many it lists."""
    for mark in marks:
        listed = _CLASS.findall(mark.arguments) or re.findall(r'"[^"]+"', mark.arguments)
        if mark.name in _LISTING:
            yield Case(f"{name} (@{mark.name})", line, mark.arguments, rows=len(listed), support=True)


def chosen(source: ParsedFile, marks: Sequence[Annotation]) -> Iterator[Skip]:
    """What keeps tests of a suite from running: tags, categories and patterns."""
    for mark in marks:
        if _CHOOSING.match(mark.name):
            yield Skip(f"@{mark.name}({mark.arguments})", source.line(mark.node))


def stood_for(marks: Sequence[Annotation], composed: Mapping[str, Sequence[Annotation]]) -> list[Annotation]:
    """Annotations with those that composed ones among them stand for."""
    return [*marks, *(inner for mark in marks for inner in composed.get(mark.name, ()))]
