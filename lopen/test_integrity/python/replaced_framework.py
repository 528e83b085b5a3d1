"""Python code, in any changed file, that replaces a part of unittest or pytest: the tests then say what it likes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from lopen.test_integrity.python.tree import nodes, parsed, unparse
from lopen.test_integrity.suite import FileChange, words
from lopen.verification.findings import Finding

_FRAMEWORKS = frozenset({"unittest", "pytest", "_pytest", "pluggy"})
_OF_PYTEST = words(
    "main fail raises skip xfail exit approx fixture mark warns console_main importorskip param"
)
_SETTINGS = words("maxDiff longMessage _MAX_LENGTH _diffThreshold")  # how failures are shown


def replaced_framework_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield an error for each statement that is new and assigns to a name that unittest or pytest has."""
    for change in changes:
        if not change.path.endswith(".py") or not any(name in (change.after or "") for name in _FRAMEWORKS):
            continue
        before, after = parsed(change.before or ""), parsed(change.after or "")
        known = {target for target, _ in _replacements(before)} if before else set()
        for target, line in _replacements(after) if after else ():
            if target not in known:
                yield Finding(
                    "error", f"this code changes the test runner: it replaces {target}", change.path, line
                )


def _replacements(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The parts of a framework that a file assigns to, in full, with lines."""
    names = _names(tree)
    for node in nodes(tree):
        for target in _targets(node, names):
            owner, _, name = target.rpartition(".")
            if (
                owner.partition(".")[0] in _FRAMEWORKS
                and name not in _SETTINGS
                and is_of_framework(owner, name)
            ):
                yield target, getattr(node, "lineno", 1)


def _targets(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets):
            written = [
                each for t in targets for each in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])
            ]
            yield from (_dotted(t, names) for t in written if isinstance(t, ast.Attribute))
        case (
            ast.AugAssign(target=ast.Attribute() as target) | ast.AnnAssign(target=ast.Attribute() as target)
        ):
            yield _dotted(target, names)
        case ast.Delete(targets=targets):
            yield from (_dotted(t, names) for t in targets if isinstance(t, ast.Attribute))
        case (
            ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, name, *_])
            | ast.Call(func=ast.Attribute(attr="__setattr__"), args=[owner, name, _])
        ):
            # A name that is computed may be any: the first that every test case has stands for it
            said = str(name.value) if isinstance(name, ast.Constant) else "run"
            yield f"{_dotted(owner, names)}.{said}"


def is_of_framework(owner: str, name: str) -> bool:
    """Return True if the framework itself has this name: adding an assertion of one's own replaces nothing."""
    if owner == "pytest":
        return name in _OF_PYTEST
    if not owner.startswith("unittest"):
        return True
    import unittest.async_case
    import unittest.main

    found: object = unittest
    for part in owner.split(".")[1:]:
        found = getattr(found, part, None)
    return hasattr(found, name)


def _names(tree: ast.Module) -> dict[str, str]:
    """What a file's names stand for, where they are imported or assigned from a framework."""
    found: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found |= {
                a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in nodes(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            meant = _dotted(node.value, found)
            if meant.partition(".")[0] in _FRAMEWORKS:
                found.setdefault(node.targets[0].id, meant)
    return found


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name that an expression stands for; "" where it stands for something else."""
    match node:
        case ast.Name(id=name):
            return names.get(name, name if name in _FRAMEWORKS else "")
        case ast.Attribute(value=owner, attr=name):
            above = _dotted(owner, names)
            return f"{above}.{name}" if above else ""
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            imports = unparse(function).rpartition(".")[2] in {"import_module", "__import__"}
            return name if imports else ""
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))):
            return name if unparse(owner) in {"sys.modules", "modules"} else ""
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name)), *_]):
            above = _dotted(owner, names)
            return f"{above}.{name}" if above else ""
    return ""
