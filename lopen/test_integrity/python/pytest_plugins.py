"""pytest's hooks in files other than `conftest.py`: modules that a conftest imports or that `pytest_plugins` names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lopen.oracle.verdict import Finding
from lopen.test_integrity.python.names import module_name
from lopen.test_integrity.python.pytest_settings import HOOKS, hook_findings
from lopen.test_integrity.python.tree import parsed
from lopen.test_integrity.suite import FileChange

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
