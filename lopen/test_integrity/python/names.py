"""What a Python file's names stand for where that can keep tests from running: marks that skip, classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

SKIPPING = frozenset({"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "skipTest"})

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
                for inner in ast.walk(node):
                    mark = _returned_mark(inner.value) if isinstance(inner, ast.Return) else None
                    if mark is not None:
                        found[node.name] = mark
    return found


def _is_mark(node: ast.expr) -> bool:
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
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
