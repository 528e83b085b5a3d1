"""What ends or empties a whole Python test run from the top of one file: exits, an empty `load_tests`, patched asserts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from lopen.test_integrity.python.replaced_framework import is_of_framework
from lopen.test_integrity.python.skips import foreign
from lopen.test_integrity.python.tree import nodes, unparse
from lopen.test_integrity.suite import Skip

_EXIT = re.compile(r"^(?:(?:sys|os|builtins)\.)?(?:_exit|exit|quit)$")
_REPLACED = re.compile(r"^os\.exec[lv]p?e?$")
_LOADS = re.compile(r"addTests?\(|\bload\w*\(|makeSuite|TestSuite\([^)]|DocTestSuite")
_FRAMEWORK = re.compile(
    r"^(?:\w+\.)*(?:unittest|pytest|_pytest|TestCase|TestResult|TextTestResult|TextTestRunner)\.(?:\w+\.)*"
    r"(?:assert\w*|_baseAssert\w*|fail|run|__call__|main|raises|add(?:Failure|Error)|wasSuccessful)$"
)
_EMPTY_SUITE = re.compile(r"(?:[\w.]+\.)?(?:TestSuite|suiteClass)\((?:\[\]|\(\))?\)$")
_DISCOVERS = re.compile(
    r"\bdiscover\(|iter_modules|walk_packages|glob\(|listdir|DocTestSuite|loadTestsFromNames?\(|loadTestsFromModule\("
)
_CALLED = re.compile(r"test|setUp|tearDown|setup_|teardown_|addModuleCleanup")
_ENDS_WELL = re.compile(r"os\._exit\((?:0|os\.EX_OK)?\)$")
_CHOOSES = re.compile(
    r"loadTestsFromNames?\(|\.addTest\([A-Z]\w*\([\"']|\bif [^\n]{0,300}\n\s*\w+\.addTests?\(| for \w+ in [^\n]{0,300} if "
)
_MAIN = re.compile(r"__name__")


def endings(tree: ast.Module, *, package: bool = False) -> tuple[Skip, ...]:
    """Statements that a file's import executes, and that leave other tests unrun or unable to fail."""
    found = [
        Skip(f"{text} if {condition}" if condition else text, node.lineno, not condition)
        for node, condition in executed(tree.body)
        for text in _ending(node)
    ]
    found += [
        Skip("a load_tests that loads none", node.lineno)
        for node in tree.body
        if (body := _load_tests(node)) is not None and not _loads(body, package=package)
    ]
    found += [
        Skip("a load_tests that chooses among the tests", node.lineno, False)
        for node in tree.body
        if (body := _load_tests(node)) is not None
        and _loads(body, package=package)
        and _CHOOSES.search(body[1])
    ]
    return (*found, *_exits_in_functions(tree))


def _exits_in_functions(tree: ast.Module) -> Iterator[Skip]:
    """Functions that the runner or the interpreter calls, and that end the process well before the runner reports.

    A call under an `if` is a forked child's, as a rule; in a function that runs at the exit it counts anyhow.
    """
    registered = {
        unparse(call.args[0])
        for call in nodes(tree)
        if isinstance(call, ast.Call) and call.args and unparse(call.func) in {"atexit.register", "register"}
    }
    for node in nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        marked = any(unparse(d) in {"atexit.register", "register"} for d in node.decorator_list)
        if marked or node.name in registered:
            statements: list[ast.AST] = list(nodes(node))
        elif _CALLED.match(node.name):
            statements = [each for each, condition in executed(node.body) if not condition]
        else:
            continue
        exits = [
            each for each in statements if isinstance(each, ast.Expr) and _ENDS_WELL.match(unparse(each))
        ]
        if exits:
            yield Skip(f"`{unparse(exits[0])}` in {node.name}", exits[0].lineno)


def executed(body: Sequence[ast.stmt], condition: str = "") -> Iterator[tuple[ast.stmt, str]]:
    """The simple statements that run when a module is imported, each with the `if` that it stands under."""
    for node in body:
        match node:
            case ast.If():
                yield from _branches(node, condition)
            case ast.Try() | ast.TryStar():
                yield from executed([*node.body, *node.orelse, *node.finalbody], condition)
                for handler in node.handlers:
                    yield from executed(handler.body, "an exception")
            case ast.With() | ast.ClassDef():
                yield from executed(node.body, condition)
            case ast.For() | ast.While():
                yield from executed(node.body, condition or "its loop runs")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case _:
                yield node, condition


def _branches(node: ast.If, condition: str) -> Iterator[tuple[ast.stmt, str]]:
    text = unparse(node.test)
    if isinstance(node.test, ast.Constant):
        yield from executed(node.body if node.test.value else node.orelse, condition)
    elif not _MAIN.search(text) and not foreign(text):
        yield from executed(node.body, text)
        yield from executed(node.orelse, f"not ({text})")


def _ending(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            text = unparse(target)
            name = text.rpartition(".")[2]
            added = name.startswith("assert") and not is_of_framework("unittest.TestCase", name)
            if _FRAMEWORK.match(text) and not added:
                yield f"another {text}"
    call = node.exc if isinstance(node, ast.Raise) else getattr(node, "value", None)
    if isinstance(node, ast.Raise) and call is not None and unparse(call) == "SystemExit":
        yield "`raise SystemExit` at the top of the file"
    if isinstance(call, ast.Call) and _is_exit(call, raised=isinstance(node, ast.Raise)):
        yield f"`{unparse(node)}` at the top of the file"


def _is_exit(call: ast.Call, *, raised: bool) -> bool:
    """Return True if a call ends the process with success. A code that is computed may say anything."""
    name = unparse(call.func)
    if name == "pytest.exit":
        return any(k.arg == "returncode" and unparse(k.value) == "0" for k in call.keywords)
    if name == "atexit.register":
        return any("_exit" in unparse(argument) for argument in call.args)
    if _REPLACED.match(name):
        return True
    if not (name == "SystemExit" if raised else _EXIT.match(name)):
        return False
    return not call.args or (
        isinstance(call.args[0], ast.Constant) and call.args[0].value in {0, None} and len(call.args) == 1
    )


def _load_tests(node: ast.stmt) -> tuple[list[str], str] | None:
    """The parameters and the body of unittest's `load_tests`, be it a function or a lambda."""
    if isinstance(node, ast.FunctionDef) and node.name == "load_tests":
        return [a.arg for a in node.args.args], "\n".join(map(ast.unparse, node.body))
    if (
        isinstance(node, ast.Assign)
        and unparse(node.targets[0]) == "load_tests"
        and isinstance(node.value, ast.Lambda)
    ):
        return [a.arg for a in node.value.args.args], unparse(node.value.body)
    return None


def _loads(function: tuple[list[str], str], *, package: bool) -> bool:
    """Return True if `load_tests` hands on tests. A package's own must look for them: else its test files are not found."""
    parameters, body = function
    returned = re.findall(r"^\s*return (.*)$|\A(.*)\Z", body, re.MULTILINE)
    if any(_EMPTY_SUITE.match(value) for pair in returned for value in pair if value):
        return False
    if package:
        return bool(_DISCOVERS.search(body))
    used = any(re.search(rf"\b{re.escape(name)}\b", body) for name in parameters[1:2])
    return used or bool(_LOADS.search(body))
