"""What the names in Python tests stand for: marks that skip, classes, helpers, objects that are equal to everything."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from lopen.test_integrity.python.tree import nodes, unparse

SKIPPING = frozenset({"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "skipTest"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
Aliases = Mapping[str, ast.expr]  # names given to marks that skip, with what they stand for
Classes = Mapping[str, ast.ClassDef]


def module_name(path: str) -> str:
    """The last part of a module's name, by which another file imports from it."""
    return re.sub(r"(?:/__init__)?\.py$", "", path).rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one file."""

    aliases: Aliases
    classes: Classes

    @classmethod
    def of(cls, tree: ast.Module) -> Names:
        """What the file itself defines."""
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        return cls(_mark_aliases(tree), classes)

    def importing(self, tree: ast.Module, modules: Mapping[str, Names]) -> Names:
        """These, and what the file imports from other `modules` of the change."""
        aliases, classes = dict[str, ast.expr](), dict[str, ast.ClassDef]()
        for node in tree.body:
            if not isinstance(node, ast.ImportFrom):
                continue
            source = modules.get((node.module or "").rpartition(".")[2], EMPTY)
            for alias in node.names:
                name = alias.asname or alias.name
                if alias.name in source.aliases:
                    aliases[name] = source.aliases[alias.name]
                if alias.name in source.classes:
                    classes[name] = source.classes[alias.name]
        return Names({**aliases, **self.aliases}, {**classes, **self.classes})


EMPTY = Names({}, {})


def _mark_aliases(tree: ast.Module) -> dict[str, ast.expr]:
    """Other names of marks that skip: assigned, imported under another name, or returned by a function."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_mark(value):
                found[name] = value
            case ast.ImportFrom():
                found |= {a.asname: ast.Name(a.name) for a in node.names if a.asname and a.name in SKIPPING}
            case ast.FunctionDef() if not node.name.startswith("test"):
                for inner in nodes(node):
                    mark = _returned_mark(inner.value) if isinstance(inner, ast.Return) else None
                    if mark is not None:
                        found[node.name] = mark
    return found


def _is_mark(node: ast.expr) -> bool:
    name = unparse(node.func if isinstance(node, ast.Call) else node)
    return name.rpartition(".")[2] in SKIPPING


def _returned_mark(node: ast.expr | None) -> ast.expr | None:
    """The mark in `return skip("…")` and in `return skip("…")(function)`."""
    if isinstance(node, ast.Call):
        return (
            node.func
            if isinstance(node.func, ast.Call) and _is_mark(node.func)
            else node
            if _is_mark(node)
            else None
        )
    return None


def resolved(node: ast.expr, aliases: Aliases) -> ast.expr:
    """A mark in its own words."""
    name = node.func if isinstance(node, ast.Call) else node
    meant = aliases.get(name.id) if isinstance(name, ast.Name) else None
    if meant is None or isinstance(meant, ast.Call) or not isinstance(node, ast.Call):
        return node if meant is None else meant
    return ast.Call(meant, node.args, node.keywords)


class Helpers(dict[str, Function]):
    """Functions by name: what a test may call to have something checked.

    `anything`: names of what is equal to everything, or is made with such an object, and what that looks like.
    """

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        super().__init__((node.name, node) for tree in trees for node in _callable(tree.body))
        self.anything: dict[str, ast.expr] = {}
        known = [(tree, [n for n in nodes(tree) if type(n) in _DEFINING]) for tree in trees]
        if not any(_may_be_open(node) for _, defining in known for node in defining):
            return
        for _ in range(2):  # what is made of what is made of it
            for tree, defining in known:
                self.anything.update(_open_names(tree, defining, self))


def _callable(body: Iterable[ast.AST]) -> Iterator[Function]:
    """The functions of a file and its classes, without those that stand in functions: others cannot call them."""
    for node in body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _callable(ast.iter_child_nodes(node))


_DEFINING = (ast.ClassDef, ast.FunctionDef, ast.ImportFrom, ast.Import)


def _may_be_open(node: ast.AST) -> bool:
    """Return True for what a file needs to have an object that is equal to everything: `ANY`, or an `__eq__`."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(alias.name in {"ANY", "mock", "unittest.mock", "unittest"} for alias in node.names)
    return isinstance(node, ast.ClassDef) and any(map(_always_equal, node.body))


def _open_names(
    tree: ast.Module, defining: Sequence[ast.AST], helpers: Helpers
) -> Iterator[tuple[str, ast.expr]]:
    anything = ast.Name("ANY", ast.Load())
    for node in defining:
        match node:
            case ast.ClassDef() if any(map(_always_equal, node.body)):
                yield node.name, anything
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.expr() as value)]) if len(
                node.body
            ) == 1 + (ast.get_docstring(node) is not None) and not name.startswith("test"):
                meant = opened(value, helpers, ())
                if "ANY" in unparse(meant):
                    yield name, meant
            case ast.ImportFrom():
                yield from ((a.asname, anything) for a in node.names if a.asname and a.name == "ANY")
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if unparse(opened(value, helpers, ())).rpartition(".")[2] == "ANY":
                    yield name, anything


def _always_equal(node: ast.stmt) -> bool:
    """Return True for an `__eq__` that says yes to everything."""
    match node:
        case ast.FunctionDef(name="__eq__", body=[*_, ast.Return(value=ast.Constant(value=True))]):
            return len(node.body) == 1 + (ast.get_docstring(node) is not None)
        case ast.Assign(targets=[ast.Name(id="__eq__")], value=ast.Lambda(body=ast.Constant(value=True))):
            return True
    return False


def opened(node: ast.expr, helpers: Helpers, more: Collection[str]) -> ast.expr:
    """An expression with `ANY` in the place of what is equal to everything; `more` are expressions that are so, too."""
    if not helpers.anything and not more:
        return node
    meant: ast.expr = _Opened(helpers.anything, more).visit(deepcopy(node))
    return meant


class _Opened(ast.NodeTransformer):
    def __init__(self, anything: Mapping[str, ast.expr], more: Collection[str]) -> None:
        self._anything = anything
        self._more = more

    def visit_Call(self, node: ast.Call) -> ast.AST:
        meant = self._anything.get(ast.unparse(node.func).rpartition(".")[2])
        return ast.copy_location(deepcopy(meant), node) if meant is not None else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        is_open = node.id in self._more or node.id in self._anything
        return ast.copy_location(ast.Name("ANY", ast.Load()), node) if is_open else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if ast.unparse(node) in self._more:
            return ast.copy_location(ast.Name("ANY", ast.Load()), node)
        return self.generic_visit(node)


def assertion_aliases(node: Function) -> dict[str, ast.expr]:
    """Short names given to assertions: `eq = self.assertEqual`, `raises = partial(self.assertRaises, …)`."""
    found: dict[str, ast.expr] = {}
    for child in node.body:
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            value = child.value
            if isinstance(value, ast.Call) and unparse(value.func).endswith("partial") and value.args:
                value = value.args[0]
            if isinstance(value, ast.Attribute) and value.attr.startswith("assert"):
                found[child.targets[0].id] = value
    return found
