"""Python tests (pytest and unittest), read through their syntax tree; text that does not parse is read line by line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lopen.test_integrity.python.checks import read_body
from lopen.test_integrity.python.endings import endings
from lopen.test_integrity.python.names import Classes, Helpers, Names, module_name
from lopen.test_integrity.python.set_up import Fixtures, class_skips, fixture_rows, fixtures, module_skips
from lopen.test_integrity.python.skips import decorator_skips, foreign, rebinding_skips, row_count
from lopen.test_integrity.python.swallowing import telling
from lopen.test_integrity.python.tree import nodes, parsed, unparse
from lopen.test_integrity.suite import LOOSE, Case, Check, Language, Skip, Suite, numbered, support_cases

_DEFINITION = re.compile(r"^(?P<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+(?P<name>test\w*)[ \t]*\(")
_CLASS = re.compile(r"^class[ \t]+(?P<name>\w+)")
_ASSERTION = re.compile(
    r"^\s*(?:assert\b|(?:with\s+)?(?:self\.|pytest\.|\w+\.)?_?(?:assert|raises|fail|check|verify)\w*\()"
)
_VACUOUS = re.compile(
    r"^\s*(?:assert\s+(?:True|1|not False|.*\bor True)\s*(?:,.*|#.*)?$|self\.assertTrue\((?:True|1)\))"
)
_SKIP = re.compile(
    r"^\s*(?:@\S*(?:skip|xfail|expectedFailure)\w*|pytest\.(?:skip|xfail)\(|self\.skipTest\(|raise \S*SkipTest)"
)


def read_lines(text: str) -> Suite:
    """The suite, as far as lines tell."""
    lines = text.splitlines()
    cases = []
    owner = ""
    for number, line in enumerate(lines):
        if found := _CLASS.match(line):
            owner = found["name"]
        elif found := _DEFINITION.match(line):
            cases.append(_case(lines, number, found, f"{owner}::" if found["indent"] else ""))
    return Suite(numbered(cases), coarse=True)


def _case(lines: Sequence[str], start: int, found: re.Match[str], owner: str) -> Case:
    body = list(_body(lines, start, len(found["indent"])))
    decorators = list(_decorators(lines, start))
    skips = [Skip(line.strip(), number + 1) for number, line in [*decorators, *body] if _SKIP.match(line)]
    checks = [_check(line.strip(), number + 1) for number, line in body if _ASSERTION.match(line)]
    normalised = "\n".join(line.strip() for _, line in body if line.strip())
    empty = all(line.strip() in {"", "pass", "..."} for _, line in body)
    return Case(owner + found["name"], start + 1, normalised, tuple(checks), tuple(skips), None, empty)


def _body(lines: Sequence[str], start: int, indent: int) -> Iterator[tuple[int, str]]:
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if (
            line.strip()
            and len(line) - len(line.lstrip()) <= indent
            and not line.lstrip().startswith((")", "#"))
        ):
            return
        yield number, line


def _decorators(lines: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
    for number in range(start - 1, -1, -1):
        if not lines[number].lstrip().startswith("@"):
            return
        yield number, lines[number]


def _check(line: str, number: int) -> Check:
    return Check(line, line, LOOSE, number, "vacuous" if _VACUOUS.match(line) else "real")


_DEEPEST = 8  # classes above a class
_COLLECTED = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?)\.py$")
_SUPPORT = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)conftest\.py$")
_READ_BY_TESTS = re.compile(r"(?:^|/)tests?/(?:.*/)?(?:data|fixtures|resources|samples|inputs?)/")
_HELPING = re.compile(r"(?:helper|util|base|common|support)[^/]*\.py$")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def covers(path: str) -> bool:
    """Return True if tests may stand there: by its name, or because it lies with the tests."""
    return path.endswith(".py") and bool(
        _COLLECTED.search(path) or (_SUPPORT.search(path) and not _READ_BY_TESTS.search(path))
    )


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; helpers, marks and classes that any of the files defines count for what they do."""
    trees = {path: parsed(text) for path, text in files.items()}
    parsing = [tree for tree in trees.values() if tree is not None]
    helpers = Helpers(parsing)
    modules = {module_name(path): Names.of(tree) for path, tree in trees.items() if tree is not None}
    return {
        path: read_lines(files[path]) if tree is None else _suite(tree, helpers, modules, path)
        for path, tree in trees.items()
    }


def _suite(tree: ast.Module, helpers: Helpers, modules: Mapping[str, Names], path: str) -> Suite:
    known = Names.of(tree).importing(tree, modules)
    reading = _Reading(helpers, known)
    available = fixtures(tree.body)
    outer = (*module_skips(tree, known.aliases), *available.automatic)
    reading.block(tree.body, "", outer, available, in_class=False)
    alone = Helpers(())  # what a helper calls is a helper of its own
    support = {
        node.name: [
            check
            for check in telling(node, read_body(node, alone).checks)
            if not check.text.startswith("raise ")
        ]
        for node in nodes(tree)
        if isinstance(node, Function) and not node.name.startswith("test")
    }
    if (
        reading.cases or _SUPPORT.search(path) or _HELPING.search(path)
    ):  # else a file of the program that is named like one of tests
        reading.cases += support_cases(support, fixture_rows(tree.body))
    return Suite(
        numbered(reading.cases), endings(tree, package=path.endswith("__init__.py")), reading.uncollected
    )


@dataclass
class _Reading:
    """What was found so far while walking a module."""

    helpers: Helpers
    known: Names
    cases: list[Case] = field(default_factory=list)
    uncollected: dict[str, str] = field(default_factory=dict)

    def block(
        self,
        body: Sequence[ast.stmt],
        owner: str,
        skips: tuple[Skip, ...],
        available: Fixtures,
        *,
        in_class: bool,
    ) -> None:
        """Read the definitions of a module, a class, or a branch of either; later ones replace earlier ones."""
        for node in body:
            if isinstance(node, Function):
                self._function(node, owner, (*skips, *available.of(node)), in_class=in_class)
            elif isinstance(node, ast.ClassDef):
                self._class(node, owner, skips, available)
            elif isinstance(node, ast.If):
                self._branches(node, owner, skips, available, in_class=in_class)
            elif isinstance(node, ast.Try):
                inner = [*node.body, *node.orelse, *node.finalbody]
                self.block(inner, owner, skips, available, in_class=in_class)
            else:
                for name in _unbound(node):
                    self._forget(_qualified(owner, name))
                self._machine(node)
                self._mark(node, owner)

    def _branches(
        self, node: ast.If, owner: str, skips: tuple[Skip, ...], available: Fixtures, *, in_class: bool
    ) -> None:
        """A test under a condition is one that the condition can keep from running."""
        known = isinstance(node.test, ast.Constant)
        branches = [(node.body, True), (node.orelse, False)]
        for body, wanted in branches:
            if known and bool(node.test.value) is not wanted:  # type: ignore[attr-defined]  # known: a Constant
                continue
            condition = unparse(node.test) if wanted else f"not ({unparse(node.test)})"
            own = (
                () if known else (Skip(f"its condition `{condition}`", node.lineno, not foreign(condition)),)
            )
            self.block(body, owner, skips + own, available, in_class=in_class)

    def _function(self, node: Function, owner: str, skips: tuple[Skip, ...], *, in_class: bool) -> None:
        body = read_body(node, self.helpers)
        normalised = _normalised(node)
        fixture = any("fixture" in unparse(d).partition("(")[0] for d in node.decorator_list)
        if not node.name.startswith("test") or (owner and not in_class) or fixture:
            if body.checks:
                self.uncollected[normalised] = node.name
            return
        name = _qualified(owner, node.name)
        self._forget(name)
        decorated = decorator_skips(node.decorator_list, self.known.aliases)
        rows = row_count(node, body.rows)
        own = (*skips, *decorated, *body.skips)
        case = Case(name, node.lineno, normalised, body.checks, own, rows, body.empty)
        self.cases.append(case)

    def _class(self, node: ast.ClassDef, owner: str, skips: tuple[Skip, ...], available: Fixtures) -> None:
        name = _qualified(owner, node.name)
        self._forget(name)  # a second class of that name replaces the first
        own = fixtures(node.body)
        inner = Fixtures({**available.by_name, **own.by_name}, ())
        skips += (*available.of(node), *own.automatic)
        skips += class_skips(node, self.known.classes, self.known.aliases)
        for base in reversed(list(self._bases(node))):
            tests = [
                each for each in base.body if isinstance(each, Function) and each.name.startswith("test")
            ]
            self.block(tests, name, skips, inner, in_class=_collected_class(node, self.known.classes))
        self.block(node.body, name, skips, inner, in_class=_collected_class(node, self.known.classes))

    def _bases(self, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """The classes above a class whose tests it has too, the nearest first."""
        waiting, seen = [node], {node.name}
        while waiting:
            for base in waiting.pop(0).bases:
                name = unparse(base).rpartition(".")[2]
                if name in self.known.classes and name not in seen:
                    seen.add(name)
                    waiting.append(self.known.classes[name])
                    yield self.known.classes[name]

    def _machine(self, node: ast.stmt) -> None:
        """The test that Hypothesis makes of a machine with rules: `TestStore = StoreMachine.TestCase`."""
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Attribute(value=ast.Name(id=owner), attr="TestCase")
            ) if name.startswith("Test") and owner in self.known.classes:
                machine = self.known.classes[owner]
                rules = [each for each in machine.body if isinstance(each, Function) and each.decorator_list]
                checks = [check for rule in rules for check in read_body(rule, self.helpers).checks]
                self.cases.append(Case(name, node.lineno, unparse(machine), tuple(checks)))

    def _mark(self, node: ast.stmt, owner: str) -> None:
        """A mark that is put on a test behind it."""
        name, marks = rebinding_skips(node, self.known.aliases)
        name = _qualified(owner, name)
        if marks:
            self.cases = [
                replace(c, skips=(*c.skips, *marks))
                if c.name == name or c.name.startswith(f"{name}::")
                else c
                for c in self.cases
            ]

    def _forget(self, name: str) -> None:
        self.cases = [c for c in self.cases if c.name != name and not c.name.startswith(f"{name}::")]


def _collected_class(node: ast.ClassDef, classes: Classes, depth: int = 0) -> bool:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and unparse(statement) == "__test__ = False":
            return False
        if isinstance(statement, Function) and statement.name == "__init__" and not node.bases:
            return False
    if node.name.startswith("Test") or not node.bases or depth > _DEEPEST:
        return node.name.startswith("Test")
    names = (unparse(base).rpartition(".")[2] for base in node.bases)
    return any(name not in classes or _collected_class(classes[name], classes, depth + 1) for name in names)


def _qualified(owner: str, name: str) -> str:
    return f"{owner}::{name}" if owner else name


def _unbound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement deletes, binds to something that is not a test, or has the runner pass over."""
    if isinstance(node, ast.Delete) or (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Lambda)
    ):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    if isinstance(node, ast.Assign) and unparse(node).endswith(".__test__ = False"):
        yield unparse(node.targets[0]).rpartition(".")[0].replace(".", "::")


def _normalised(node: Function) -> str:
    """The body and what decorates it, without name, docstring, comments and layout."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    decorators = "\n".join(f"@{unparse(d)}" for d in node.decorator_list)
    arguments = unparse(node.args)
    return f"{decorators}\n({arguments})\n" + "\n".join(map(ast.unparse, body))


LANGUAGE = Language("Python", covers, lambda path: bool(_COLLECTED.search(path)), read, read_lines)
