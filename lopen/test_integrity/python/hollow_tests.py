"""Python tests whose body stays and no longer counts: unawaited, never iterated, replaced, or checked by another method."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from lopen.test_integrity.python.tree import nodes, parsed, unparse
from lopen.test_integrity.suite import FileChange, words
from lopen.verification.findings import Finding, Severity

_ASYNC_CASES = words("IsolatedAsyncioTestCase AsyncTestCase AsyncHTTPTestCase")
_REPLACING = words("contextmanager asynccontextmanager partial partialmethod property cached_property")
_FAILING = words("failureException run __call__ defaultTestResult debug")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Hollow = tuple[str, Severity, str, int]  # the place, how bad, what it is, the line


def hollow_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield an error for each part of a Python file that newly keeps tests from counting."""
    ours = [c for c in changes if c.path.endswith(".py") and c.after is not None]
    trees = [(c, parsed(c.before or ""), parsed(c.after or "")) for c in ours]
    used = {
        unparse(base).rpartition(".")[2]
        for change, _, after in trees
        if after is not None and "TestCase" in (change.after or "")
        for node in nodes(after)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    }
    for change, before, after in trees:
        if after is None:
            continue
        known = {(place, what) for place, _, what, _ in _hollow(before, used)} if before else set()
        for place, severity, what, line in _hollow(after, used):
            if (place, what) not in known:
                yield Finding(severity, what, change.path, line)


def _hollow(tree: ast.Module, used: set[str]) -> Iterator[Hollow]:
    classes = {node.name: node for node in nodes(tree) if isinstance(node, ast.ClassDef)}
    for name, node in classes.items():
        bases = _bases(node, classes)
        if "TestCase" in bases or (name.startswith("Test") and bases):
            yield from _class(name, node, bases)
        if "TestCase" not in bases and name in used:
            yield from _overriding(name, node)
    for function in nodes(tree):
        if isinstance(function, Function) and function.name.startswith("test"):
            yield from _decorated(function)
    generators = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes(tree))
    for function in tree.body if generators else ():
        if (
            isinstance(function, Function)
            and function.name.startswith("test")
            and not function.decorator_list
            and _yields(function)
            and any(isinstance(node, ast.Assert) for node in nodes(function))
        ):
            what = f"{function.name} is a generator: pytest does not run its body"
            yield function.name, "error", what, function.lineno
    yield from _loops(tree, classes)


def _bases(node: ast.ClassDef, classes: dict[str, ast.ClassDef], depth: int = 8) -> set[str]:
    """Return the last names of a class's bases, also of those above them in the file."""
    own = {unparse(base).rpartition(".")[2] for base in node.bases}
    above = [classes[name] for name in own if name in classes and classes[name] is not node] if depth else []
    return own.union(*(_bases(each, classes, depth - 1) for each in above))


def _class(name: str, node: ast.ClassDef, bases: set[str]) -> Iterator[Hollow]:
    for keyword in node.keywords:
        if keyword.arg == "metaclass" and not unparse(keyword.value).endswith("ABCMeta"):
            what = f"the metaclass {unparse(keyword.value)} of {name} may replace its tests"
            yield name, "error", what, node.lineno
    if "TestCase" not in bases:
        return
    waits = any(base in _ASYNC_CASES for base in bases) or bases - {"TestCase"}
    for inner in node.body:
        if isinstance(inner, Function) and inner.name.startswith("test"):
            place = f"{name}.{inner.name}"
            if isinstance(inner, ast.AsyncFunctionDef) and not waits:
                what = f"{place} is a coroutine that nothing awaits: unittest.TestCase does not run its body"
                yield place, "error", what, inner.lineno
            elif _yields(inner):
                what = f"{place} is a generator that nothing iterates over: its body does not run"
                yield place, "error", what, inner.lineno
    yield from _overriding(name, node, test=True)


def _yields(function: Function) -> bool:
    """Return whether the function itself is a generator, not one inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def _overriding(name: str, node: ast.ClassDef, *, test: bool = False) -> Iterator[Hollow]:
    """Yield what a class replaces of the assertions that unittest gives it."""
    for inner in node.body:
        if isinstance(inner, Function) and _is_own(inner.name) and not _calls_above(inner):
            what = f"{name} replaces unittest's {inner.name}: what its tests assert is up to this code"
            yield f"{name}.{inner.name}", "error", what, inner.lineno
        elif isinstance(inner, ast.Assign):
            for target in inner.targets:
                if isinstance(target, ast.Name) and (_is_own(target.id) or (test and target.id in _FAILING)):
                    what = f"{name} replaces unittest's {target.id}"
                    yield f"{name}.{target.id}", "error", what, inner.lineno
    for assigned in nodes(node):
        for target in assigned.targets if isinstance(assigned, ast.Assign) else ():
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id in ("self", "cls")
                and (_is_own(target.attr) or target.attr in _FAILING)
            ):
                what = f"{name} replaces unittest's {target.attr}"
                yield f"{name}.{target.attr}", "error", what, target.lineno


def _is_own(name: str) -> bool:
    """Return whether `unittest.TestCase` has an assertion of this name."""
    import unittest

    return name.startswith(("assert", "fail")) and hasattr(unittest.TestCase, name)


def _calls_above(function: Function) -> bool:
    """Return whether a method goes on to the one that it replaces."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr.startswith("assert")
        and (unparse(node.value).startswith("super(") or unparse(node.value).endswith("TestCase"))
        for node in nodes(function)
    )


def _decorated(function: Function) -> Iterator[Hollow]:
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = unparse(called).rpartition(".")[2]
        if name in _REPLACING:
            what = f"@{name} on {function.name} keeps its body from running as a test"
            yield function.name, "error", what, function.lineno


def _loops(tree: ast.Module, classes: dict[str, ast.ClassDef]) -> Iterator[Hollow]:
    """Yield the places at which a file takes attributes of its own test classes away, or sets them, by computed names."""
    for node in nodes(tree):
        if not (isinstance(node, ast.For) and node in tree.body):
            continue
        for inner in nodes(node):
            match inner:
                case ast.Call(func=ast.Name(id="delattr")):
                    what = "a loop takes attributes of classes away: tests may be among them"
                    yield "delattr", "error", what, inner.lineno
                case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=owner), _, value]) if (
                    owner in classes or owner in unparse(node.target)
                ) and isinstance(value, ast.Lambda | ast.Constant):
                    what = "a loop puts functions of its own in the place of attributes of test classes"
                    yield "setattr", "error", what, inner.lineno
