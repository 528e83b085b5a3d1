"""pytest's hooks in `conftest.py`, and in the modules that a conftest imports or that `pytest_plugins` names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lopen.test_integrity.python.names import module_name
from lopen.test_integrity.python.skips import function_skips
from lopen.test_integrity.python.tree import nodes, parsed, unparse
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_SETTINGS = re.compile(
    r"(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|pyproject\.toml|tox\.ini|setup\.cfg)$"
)
_OF_TESTS = re.compile(r"(?:^|/)tests?/|(?:^|[/_])(?:test|conftest)s?[_.]")
_INSTALLED = re.compile(r"\.(?:dist|egg)-info/entry_points\.txt$")
_ENTRY_POINT = re.compile(r"[ \t]*[\w.-]+[ \t]*=[ \t]*[\"']?(?P<module>[A-Za-z_][\w.]*)")
_LOADED = re.compile(
    r"\bpytest_plugins\b[^=\n]{0,80}=\s*(?P<names>\[[^\]]*\]|\([^)]*\)|[^\n]+)|(?:^|[\s\"'])-p[ =]?(?P<name>[\w.]+)"
)


def plugin_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Hooks that leave tests out, wherever the change defines them, and modules of the change that pytest now loads.

    A hook is an error in the tests' own files and in a module that a changed setting or conftest names, else a
    warning: a project may be a plugin of pytest's.
    """
    python = [c for c in changes if c.path.endswith(".py") and c.after is not None]
    naming = "\n".join(c.after or "" for c in changes if _SETTINGS.search(c.path))
    written = {module_name(c.path): c for c in python if not _OF_TESTS.search(c.path)}
    for change in python:
        if not change.path.endswith("conftest.py") and "pytest_" in (change.after or ""):
            named = re.search(rf"\b{re.escape(module_name(change.path))}\b", naming)
            for finding in hook_findings(change):
                severe = named or _OF_TESTS.search(change.path)
                yield finding if severe else replace(finding, severity="warning")
    yield from _installed_plugins(changes)
    for change in changes:
        if change.after is not None and (change.path.endswith(".py") or _SETTINGS.search(change.path)):
            known = set(_loaded(change.before or ""))
            for name in _loaded(change.after):
                if name not in known and name.rpartition(".")[2] in written:
                    message = f"pytest now loads {name}, which this change writes, before it runs the tests"
                    yield Finding("warning", message, change.path)
        if change.path.endswith(".py") and "pytest_" in (change.after or ""):
            yield from _borrowed_findings(change)


def _loaded(text: str) -> list[str]:
    """The modules that `pytest_plugins`, `-p` or an entry point of the group `pytest11` names."""
    named = [
        name
        for found in _LOADED.finditer(text)
        for name in ([found["name"]] if found["name"] else re.findall(r"[\"']([\w.]+)[\"']", found["names"]))
    ]
    return [*named, *_entry_points(text)]


def _entry_points(text: str) -> Iterator[str]:
    """Yield the modules that lines below `pytest11` name, as in `entry_points.txt`, `pyproject.toml` and `setup.cfg`."""
    within = False
    for line in text.splitlines():
        if "pytest11" in line:
            within = True
        elif within and (found := _ENTRY_POINT.match(line)):
            yield found["module"]
        elif line.strip():
            within = False


def _installed_plugins(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield an error for each folder in the tree that Python takes for an installed package with a plugin of pytest."""
    for change in changes:
        if _INSTALLED.search(change.path) and change.after is not None:
            for name in sorted({*_entry_points(change.after)} - {*_entry_points(change.before or "")}):
                message = (
                    f"Python takes this folder for an installed package, and pytest loads its plugin {name}"
                )
                yield Finding("error", message, change.path)


def _borrowed_findings(change: FileChange) -> Iterator[Finding]:
    """Hooks that a file does not define but gives the name to another function."""
    before, after = parsed(change.before or ""), parsed(change.after or "")
    known = {name for name, _ in _borrowed(before)} if before else set()
    for name, line in _borrowed(after) if after else ():
        if name not in known:
            message = (
                f"the hook {name} is another function under that name: what it does to the tests is not plain"
            )
            yield Finding("warning", message, change.path, line)


def _borrowed(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names = [a.asname for a in node.names if a.asname and a.asname != a.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            names = []
        yield from ((name, node.lineno) for name in names if name in HOOKS)


_IGNORING = frozenset({"collect_ignore", "collect_ignore_glob"})
HOOKS = {
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
    "pytest_configure": re.compile(
        r"config\.(?:args|option\.(?:markexpr|keyword|ignore\w*|deselect|collectonly|lf))\s*=|_exit\(|PYTEST_ADDOPTS|skip\("
    ),
    "pytest_load_initial_conftests": re.compile(r"args\[:\]|args\.\w+\(|_exit\("),
    "pytest_cmdline_main": re.compile(r"return (?!None)|config\.(?:args|option\.\w+)\s*="),
    "pytest_generate_tests": re.compile(r"parametrize\([^)]{0,300}\[\]"),
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
    ignored = _ignored(after)
    for entry, line in ignored.items():
        renamed = "test" not in entry and len(ignored) <= len(known)
        if entry not in known and not renamed:
            yield Finding("error", f"pytest no longer collects {entry}", change.path, line)
    old = _functions(before)
    for name, function in _functions(after).items():
        yield from _function_findings(change.path, name, function, old.get(name))


def hook_findings(change: FileChange) -> Iterator[Finding]:
    """The hooks of a file that are new and leave tests out, or turn results."""
    before, after = parsed(change.before or ""), parsed(change.after or "")
    old = _functions(before)
    for name, function in _functions(after).items():
        if name in HOOKS:
            yield from _function_findings(change.path, name, function, old.get(name))


def _function_findings(path: str, name: str, function: Function, old: Function | None) -> Iterator[Finding]:
    pattern = HOOKS.get(name)
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
    return any("fixture" in unparse(decorator) for decorator in function.decorator_list)


def _functions(tree: ast.Module | None) -> Mapping[str, Function]:
    body = tree.body if tree else []
    return {node.name: node for node in body if isinstance(node, Function)}


def _ignored(tree: ast.Module | None) -> dict[str, int]:
    """What `collect_ignore` and its kin name, with lines."""
    found: dict[str, int] = {}
    for node in tree.body if tree else []:
        for inner in nodes(node):
            value = _ignoring_value(inner)
            for constant in nodes(value) if value is not None else ():
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    found[constant.value] = constant.lineno
    return found


def _ignoring_value(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Assign) and unparse(node.targets[0]) in _IGNORING:
        return node.value
    if isinstance(node, ast.AugAssign | ast.AnnAssign) and unparse(node.target) in _IGNORING:
        return node.value
    if isinstance(node, ast.Call) and unparse(node.func).partition(".")[0] in _IGNORING:
        return node.args[0] if node.args else None
    return None
