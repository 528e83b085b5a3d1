"""pytest's `conftest.py`: files that are no longer collected, hooks that skip, drop or turn results, automatic fixtures."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from lopen.oracle.tampering.python_skips import function_skips
from lopen.oracle.tampering.python_tree import parsed
from lopen.oracle.tampering.suite import FileChange
from lopen.oracle.verdict import Finding

_IGNORING = frozenset({"collect_ignore", "collect_ignore_glob"})
_HOOKS = {
    "pytest_ignore_collect": re.compile(r"return (?!False|None)"),
    "pytest_collection_modifyitems": re.compile(
        r"mark\.(?:skip|xfail)|items\[:\]|items\.(?:clear|remove|pop)|del items|deselected"
    ),
    "pytest_collect_file": re.compile(r"return None|return \[\]"),
    "pytest_runtest_makereport": re.compile(r"\.(?:outcome|longrepr|wasxfail)\s*=|force_result"),
    "pytest_runtest_setup": re.compile(r"\bskip\(|\bxfail\("),
    "pytest_runtest_call": re.compile(r"\bskip\(|\bxfail\(|except"),
    "pytest_runtest_protocol": re.compile(r"return True"),
    "pytest_pyfunc_call": re.compile(r"return True|except"),
    "pytest_sessionfinish": re.compile(r"exitstatus\s*=|_exit\("),
    "pytest_unconfigure": re.compile(r"_exit\("),
    "pytest_runtestloop": re.compile(r"return True"),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def conftest_findings(change: FileChange) -> Iterator[Finding]:
    """What of the after side is new and keeps tests from running or from failing."""
    before, after = parsed(change.before or ""), parsed(change.after or "")
    if after is None:
        return
    known = _ignored(before)
    for entry, line in _ignored(after).items():
        if entry not in known:
            yield Finding("error", f"pytest no longer collects {entry}", change.path, line)
    old = _functions(before)
    for name, function in _functions(after).items():
        yield from _function_findings(change.path, name, function, old.get(name))


def _function_findings(path: str, name: str, function: Function, old: Function | None) -> Iterator[Finding]:
    pattern = _HOOKS.get(name)
    if pattern is not None:
        was = len(pattern.findall(_body(old))) if old else 0
        if len(pattern.findall(_body(function))) > was:
            yield Finding(
                "error", f"the hook {name} leaves tests out or turns results", path, function.lineno
            )
    elif _is_fixture(function):
        known = {skip.text for skip in function_skips(old)} if old else set()
        for skip in function_skips(function):
            if skip.text not in known:
                conditional = " if " in skip.text
                message = f"the fixture {name} skips the tests that use it: {skip.text}"
                yield Finding("warning" if conditional else "error", message, path, skip.line)


def _body(function: Function) -> str:
    return "\n".join(map(ast.unparse, function.body))


def _is_fixture(function: Function) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)


def _functions(tree: ast.Module | None) -> Mapping[str, Function]:
    body = tree.body if tree else []
    return {node.name: node for node in body if isinstance(node, Function)}


def _ignored(tree: ast.Module | None) -> dict[str, int]:
    """What `collect_ignore` and its kin name, with lines."""
    found: dict[str, int] = {}
    for node in tree.body if tree else []:
        for inner in ast.walk(node):
            value = _ignoring_value(inner)
            for constant in ast.walk(value) if value is not None else ():
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    found[constant.value] = constant.lineno
    return found


def _ignoring_value(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in _IGNORING:
        return node.value
    if isinstance(node, ast.AugAssign | ast.AnnAssign) and ast.unparse(node.target) in _IGNORING:
        return node.value
    if isinstance(node, ast.Call) and ast.unparse(node.func).partition(".")[0] in _IGNORING:
        return node.args[0] if node.args else None
    return None
