"""What keeps Python tests from running without standing on them: set-up, fixtures, a `run` that runs nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lopen.test_integrity.python.names import Aliases, Classes
from lopen.test_integrity.python.skips import decorator_skips, function_skips, mark_skips
from lopen.test_integrity.python.tree import unparse
from lopen.test_integrity.suite import Skip

Function = ast.FunctionDef | ast.AsyncFunctionDef

_OF_MODULE = frozenset({"setUpModule", "setup_module", "setup_function"})
_OF_CLASS = frozenset({"setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class", "setup"})
_RUNNING = frozenset({"run", "__call__", "_callTestMethod"})
_HANDS_ON = re.compile(
    r"\bsuper\(\)\.(?!run\()|\bsuper\([^()]+\)|\bsuper\(\)\.run\((?![\w.]*TestResult\()|\bTestCase\.\w+\(|\bself\.(?:run|debug|__call__|_callTestMethod)\(|getattr\(self"
)


def module_skips(tree: ast.Module, aliases: Aliases) -> tuple[Skip, ...]:
    """What keeps a whole module from running: `pytestmark`, skips at its top level or in its set-up, `__test__`."""
    found = [*mark_skips(tree.body, aliases), *_set_up(tree.body, _OF_MODULE)]
    found += [
        Skip("`__test__ = False`", node.lineno)
        for node in tree.body
        if isinstance(node, ast.Assign) and unparse(node) == "__test__ = False"
    ]
    return tuple(found)


def class_skips(node: ast.ClassDef, classes: Classes, aliases: Aliases) -> tuple[Skip, ...]:
    """What keeps a class's tests from running, on it or on the classes that it inherits from in the same tests."""
    found: list[Skip] = []
    waiting, seen, overridden = [node], {node.name}, set[str]()
    while waiting:
        owner = waiting.pop(0)
        found += [s for s in _own_skips(owner, aliases) if s.text.partition("'")[0] not in overridden]
        overridden |= {
            m.name for m in _functions(owner.body) if m.name in _OF_CLASS and "super(" not in unparse(m)
        }
        for base in owner.bases:
            name = unparse(base).rpartition(".")[2]
            if name in classes and name not in seen:
                seen.add(name)
                waiting.append(classes[name])
    return tuple(found)


def _own_skips(node: ast.ClassDef, aliases: Aliases) -> Iterator[Skip]:
    yield from decorator_skips(node.decorator_list, aliases)
    yield from mark_skips(node.body, aliases)
    yield from _set_up(node.body, _OF_CLASS)
    for method in _functions(node.body):
        if method.name in _RUNNING and _is_runner(method, node) and not _HANDS_ON.search(unparse(method)):
            yield Skip(f"its class's own {method.name}(), which runs no test", method.lineno)


def _is_runner(method: Function, owner: ast.ClassDef) -> bool:
    """Return True if a method takes the place of unittest's own, and is not a helper of that name."""
    arguments = [a.arg for a in method.args.args[1:]]
    return (
        arguments[:1] == ["result"]
        or method.args.vararg is not None
        or (method.name != "__call__" and any("TestCase" in unparse(base) for base in owner.bases))
    )


def _set_up(body: Sequence[ast.stmt], names: Iterable[str]) -> list[Skip]:
    """Skips in set-up functions."""
    return [
        replace(skip, text=f"{function.name}'s {skip.text}")
        for function in _functions(body)
        if function.name in names
        for skip in function_skips(function)
    ]


def _functions(body: Sequence[ast.stmt]) -> Iterator[Function]:
    return (node for node in body if isinstance(node, Function))


@dataclass(frozen=True, slots=True)
class Fixtures:
    """pytest's fixtures of a module or class that skip, by name, and those of them that all its tests use."""

    by_name: Mapping[str, tuple[Skip, ...]]
    automatic: tuple[Skip, ...]

    def of(self, node: Function | ast.ClassDef) -> tuple[Skip, ...]:
        """The skips of the fixtures that a test or class asks for."""
        if not self.by_name:
            return ()
        asked = {a.arg for a in node.args.args} if isinstance(node, Function) else set[str]()
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and unparse(decorator.func).endswith("usefixtures"):
                asked |= {a.value for a in decorator.args if isinstance(a, ast.Constant)}  # type: ignore[misc]  # names
        return tuple(skip for name in sorted(asked) for skip in self.by_name.get(name, ()))


def fixtures(body: Sequence[ast.stmt]) -> Fixtures:
    """The fixtures that skip among the functions of a module or class; one may use another."""
    found = {f.name: f for f in _functions(body) if _fixture_mark(f) is not None}
    skipping = {name: tuple(_fixture_skips(f, found)) for name, f in found.items()}
    return Fixtures(
        {name: skips for name, skips in skipping.items() if skips},
        tuple(s for name, skips in skipping.items() if _is_automatic(found[name]) for s in skips),
    )


def fixture_rows(body: Sequence[ast.stmt]) -> dict[str, int]:
    """How many literal parameters each fixture of a module has: the tests that use it run once for each."""
    found = {}
    for function in _functions(body):
        mark = _fixture_mark(function)
        for keyword in mark.keywords if isinstance(mark, ast.Call) else ():
            if keyword.arg == "params" and isinstance(keyword.value, ast.List | ast.Tuple):
                found[function.name] = len(keyword.value.elts)
    return found


def _fixture_skips(function: Function, found: Mapping[str, Function]) -> Iterator[Skip]:
    """The skips of a fixture and of those that it uses."""
    waiting, seen = [function], {function.name}
    while waiting:
        fixture = waiting.pop()
        for skip in function_skips(fixture):
            yield replace(skip, text=f"the fixture {fixture.name}'s {skip.text}")
        for argument in fixture.args.args:
            if argument.arg in found and argument.arg not in seen:
                seen.add(argument.arg)
                waiting.append(found[argument.arg])


def _fixture_mark(function: Function) -> ast.expr | None:
    return next((d for d in function.decorator_list if "fixture" in unparse(d)), None)


def _is_automatic(function: Function) -> bool:
    mark = _fixture_mark(function)
    return isinstance(mark, ast.Call) and any(
        k.arg == "autouse" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in mark.keywords
    )
