"""Names of a Python test that mean something else than they did: what it tests, `self`, and how it compares."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lopen.test_integrity.python.stand_ins import imported_names, is_code
from lopen.test_integrity.python.tree import Function, nodes, parsed, unparse
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

Rebound = tuple[str, str, int]  # the place, what it is, the line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TAKEN_OVER = frozenset({"__getattribute__", "__getattr__"})


def rebound_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield an error for each name that a file of tests imports from the code and newly binds to something else."""
    for change in changes:
        after = parsed(change.after) if change.after and change.path.endswith(".py") else None
        before = parsed(change.before) if after and change.before else None
        if after is None or before is None:
            continue
        code = {name: source for name, source in imported_names(before).items() if is_code(source)}
        known = {(place, what) for place, what, _ in _rebound(before, code)}
        for place, what, line in _rebound(after, code):
            if (place, what) not in known:
                yield Finding("error", what, change.path, line)


def _rebound(tree: ast.Module, code: Mapping[str, str]) -> Iterator[Rebound]:
    now = {name for name, source in imported_names(tree).items() if code.get(name) == source}
    if any(isinstance(node, _FUNCTIONS) and node.name.startswith("test") for node in nodes(tree)):
        yield from _at_top(tree, now)
    for node in nodes(tree):
        if isinstance(node, _FUNCTIONS) and node.name.startswith("test"):
            yield from _in_test(node, code, now)
        elif isinstance(node, ast.ClassDef) and any("TestCase" in unparse(base) for base in node.bases):
            for inner in node.body:
                if isinstance(inner, _FUNCTIONS) and inner.name in _TAKEN_OVER:
                    what = f"{node.name} decides itself what its assertions are: {inner.name}"
                    yield node.name, what, inner.lineno


def _in_test(test: Function, code: Mapping[str, str], now: set[str]) -> Iterator[Rebound]:
    """Yield what a test binds anew: names of the code that it still reads, its own `self`, how values are compared."""
    arguments = [*test.args.posonlyargs, *test.args.args]
    own = arguments[0].arg if arguments and arguments[0].arg == "self" else ""
    inside = nodes(test)
    called = {c.func for c in inside if isinstance(c, ast.Call)}
    owners = {a.value for a in inside if isinstance(a, ast.Attribute)}
    read = {n.id for n in called | owners if isinstance(n, ast.Name)}  # one that is handed on is a stub
    for name, value, line in _bindings(test, inside):
        if name == own and own:
            yield (
                test.name,
                f"{test.name} puts something else in the place of self: its assertions are not unittest's",
                line,
            )
        elif name in code and name in read and not _speaks_of(value, now):
            yield (
                test.name,
                f"{test.name} binds {name} anew, which was {code[name]}'s: it tests what it binds",
                line,
            )
    for call in inside:
        match call:
            case ast.Call(func=ast.Attribute(attr="addTypeEqualityFunc"), args=[_, ast.Lambda(), *_]):
                what = f"{test.name} decides itself when two values are equal: addTypeEqualityFunc"
                yield test.name, what, call.lineno


def _bindings(test: Function, inside: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST | None, int]]:
    """Yield the names that a function binds, with the value where there is one, and the line. Parameters of itself are not."""
    for node in inside:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from ((name, value, node.lineno) for name in _stored(target))
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                yield from ((name, value, node.lineno) for name in _stored(target))
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                yield from ((name, value, node.lineno) for name in _stored(target))
            case ast.ImportFrom(module=module, level=level):
                source = ast.Name("." * level + (module or ""))
                yield from ((a.asname or a.name, source, node.lineno) for a in node.names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if node is not test:
                    yield name, node, node.lineno
            case ast.Lambda(args=ast.arguments(args=[*names], defaults=[*defaults])):
                pairs = zip(names[len(names) - len(defaults) :], defaults, strict=True)
                yield from ((argument.arg, value, node.lineno) for argument, value in pairs)


def _stored(target: ast.AST) -> Iterator[str]:
    yield from (n.id for n in nodes(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _speaks_of(value: ast.AST | None, names: set[str]) -> bool:
    """Return True if a value is made from the code itself, or from what the test was given by a fixture or a helper."""
    if value is None or isinstance(value, ast.ImportFrom):
        return True
    builtin = {n.id for n in nodes(value) if isinstance(n, ast.Name)}
    if builtin & names:
        return True
    return isinstance(value, ast.Name) and is_code(value.id)


def _at_top(tree: ast.Module, now: set[str]) -> Iterator[Rebound]:
    """Yield what a file's top puts in the place of names that it imports from the code."""
    for node in tree.body:
        match node:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name(id="globals")), attr=attr),
                    keywords=keywords,
                )
            ):
                if attr in {"update", "setdefault", "__setitem__"} and {k.arg for k in keywords} & now:
                    yield (
                        "globals()",
                        "the names that the tests import are put to other things by globals()",
                        node.lineno,
                    )
            case (
                ast.For(target=ast.Name(id=name), iter=value)
                | ast.Assign(targets=[ast.Name(id=name)], value=value)
            ):
                if name in now and not _speaks_of(value, now):
                    yield (
                        name,
                        f"{name} is imported from the code and then bound anew: its tests test something else",
                        node.lineno,
                    )
