"""Tests that no longer test the code: its import replaced by a stub, or the code patched while the tests are loaded."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lopen.test_integrity.python.endings import executed
from lopen.test_integrity.python.tree import parsed, unparse
from lopen.test_integrity.suite import Case, FileChange, tokens, words
from lopen.verification.findings import Finding

_SUPPORT = re.compile(
    r"(?:^|[._])(?:tests?|testing|conftest|helpers?|support|fixtures?|factor(?:y|ies)|mocks?|stubs?|fakes?)(?:[._]|$)"
)
_FOREIGN = frozenset(
    {"pytest", "hypothesis", "mock", "freezegun", "responses", "django", "numpy", "pandas", "__future__"}
)
_DOUBLE = re.compile(r"\b(?:\w*Mock|SimpleNamespace|namedtuple|create_autospec|partial|type)$")


@dataclass(frozen=True, slots=True)
class _Definition:
    """What a name is bound to at a file's top. `callable`: it can stand in for a function or a class."""

    line: int
    callable: bool
    tokens: frozenset[str]
    root: str = ""  # the first name of what it is


def stub_findings(
    change: FileChange, before: Collection[Case], after: Collection[Case], removed: Collection[str]
) -> Iterator[Finding]:
    """What the tests imported before and define themselves now: they test what they define.

    An error where an assertion asks for it, a warning where tests merely use it: a helper may move to its tests.
    """
    old, new = parsed(change.before or ""), parsed(change.after or "")
    if old is None or new is None:
        return
    was, now = imported_names(old), imported_names(new)
    defined = _definitions(new, was)
    known = {*_definitions(old, defined), *removed}
    for name, module in was.items():
        definition = defined.get(name)
        if definition is None or name in known or not is_code(module):
            continue
        if now.get(definition.root, "").partition(".")[0] in sys.stdlib_module_names - {"unittest", ""}:
            continue  # of the standard library now
        if definition.tokens & {bound for bound, source in now.items() if _same(source, module)} - {name}:
            continue  # a wrapper around the code itself
        if not any(name in case.tokens for case in (*before, *after)):
            continue
        asserted = any(name in check.tokens for case in before for check in case.real)
        message = (
            f"{name} is no longer imported from {module} but defined here: its tests test what they define"
        )
        severe = definition.callable and asserted
        yield Finding("error" if severe else "warning", message, change.path, definition.line)


def is_code(module: str) -> bool:
    """Return True if a module may hold the code under test."""
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top not in _FOREIGN and not _SUPPORT.search(module)


def _same(module: str, other: str) -> bool:
    return module == other or module.startswith(f"{other}.") or other.startswith(f"{module}.")


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Names that a file's top imports, with what they name."""
    found: dict[str, str] = {}
    for node, _ in executed(tree.body):
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name.partition(".")[0]: a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found |= {a.asname or a.name: module or "." for a in node.names}
    return found


def _definitions(tree: ast.Module, wanted: Collection[str]) -> dict[str, _Definition]:
    found: dict[str, _Definition] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name in wanted:
                found[node.name] = _Definition(node.lineno, True, tokens(unparse(node)))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in wanted:
                said = tokens(unparse(value))
                if name not in said:
                    root = unparse(value).partition("(")[0].partition(".")[0]
                    found[name] = _Definition(node.lineno, _is_double(value), said, root)
    return found


def _is_double(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return bool(_DOUBLE.search(unparse(value.func)))
    return isinstance(value, ast.Lambda)


def patch_findings(change: FileChange, written: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Code that a file of tests replaces while it is loaded.

    `written`: names that the same change defines in the code, by the last part of their module's name. Replacing
    one of those is an error: what the work wrote is not what its tests run. Else it is a warning.
    """
    old, new = parsed(change.before or ""), parsed(change.after or "")
    if new is None:
        return
    known = {text for text, *_ in _patches(old)} if old is not None else set()
    for text, module, name, line in _patches(new):
        if text not in known:
            ours = written.get(module.rpartition(".")[2], ())
            own = name in ours or (name == "*" and bool(ours))
            what = f"all of {module} is" if name == "*" else f"{name} of {module} is"
            message = f"{what} replaced while the tests are loaded: they do not test it"
            yield Finding("error" if own else "warning", message, change.path, line)


def _patches(tree: ast.Module) -> Iterator[tuple[str, str, str, int]]:
    """Replacements at a file's top: the statement, the module, the name in it, the line."""
    imports = imported_names(tree)
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node, _ in executed(tree.body):
        for target, value in _replacements(node):
            owner, _, name = target.rpartition(".")
            root, _, rest = owner.partition(".")
            module = (
                ".".join(part for part in (imports.get(root, ""), rest) if part) if root in imports else ""
            )
            if value is None:
                module = owner  # `patch("money.add")` and `sys.modules["money"]` name it in full
            stands_in = (
                value is None or _is_double(value) or (isinstance(value, ast.Name) and value.id in defined)
            )
            if module and stands_in and is_code(module):
                yield unparse(node), module, name, node.lineno


def _replacements(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Dotted targets of a statement, with what they are given where it says so."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((unparse(t), value) for t in targets if isinstance(t, ast.Attribute))
            for target in targets:
                if isinstance(target, ast.Subscript) and unparse(target.value) == "sys.modules":
                    yield from ((f"{name}.*", None) for name in _named(target.slice))
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str(name)), value])
        ):
            yield f"{unparse(owner)}.{name}", value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Call(func=patch, args=[target, *_]), attr="start"))
        ):
            if unparse(patch).rpartition(".")[2] == "patch":
                yield from ((name, None) for name in _named(target))


def _named(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


# Python looks into the working folder before it looks anywhere else; what lies deeper is another package's module
_PYTHON = re.compile(
    r"^(?:src/|lib/|tests?/)?(?P<name>pytest|_pytest|pluggy|nose2?|doctest|sitecustomize|usercustomize)"
    r"(?:\.pyc?|\.[\w-]*\.?so|/__init__\.pyc?|/__main__\.pyc?)$"
    # a folder called unittest is often one of tests, and shadows only where Python is started beside it
    r"|^(?:src/|lib/)?(?P<own>unittest)(?:\.pyc?|\.[\w-]*\.?so|/__init__\.pyc?|/__main__\.pyc?)$"
)
_RUNNERS = r"pytest|jest|vitest|mocha|ava|tap|jasmine|karma|go|cargo|mvn|gradle|rspec|phpunit|deno|node|ctest"
_PROGRAM = re.compile(
    rf"(?:^|/)(?:\.venv|venv|node_modules|\.bin|bin|\.cargo)/(?:.*/)?(?P<name>{_RUNNERS})$|^(?P<top>{_RUNNERS})$"
)
_INSTALLED = re.compile(
    r"(?:^|/)node_modules/(?P<name>@jest|jest[\w-]*|vitest|@vitest|mocha|chai|ava|tap|jasmine[\w-]*|karma|expect)/"
    r"|(?:^|/)site-packages/(?P<package>_?pytest|pluggy|unittest2?|nose2?)(?:/|\.py$)"
)
_TOP_MODULE = re.compile(
    r"^(?P<folder>src/|lib/|tests?/)?(?P<name>\w+)(?:\.pyc?|\.[\w-]*\.?so|/__init__\.pyc?)$"
)
# what unittest or pytest import of the standard library, before or while they run tests
_IMPORTED_BY_RUNNERS = words(
    "argparse array ast asyncio atexit base64 bdb bisect bz2 calendar cmd code codeop collections concurrent configparser"
    " contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis email enum fnmatch functools gc gettext"
    " glob gzip hashlib heapq html importlib inspect io itertools json keyword linecache locale logging lzma math numbers"
    " opcode operator os pathlib pdb pkgutil platform pprint random re reprlib selectors shlex shutil signal socket"
    " ssl stat string struct subprocess sys tempfile textwrap threading time token tokenize traceback types typing"
    " urllib uuid warnings weakref xml zipfile zlib"
)
_SCRIPT = re.compile(r"^(?P<name>jest|vitest|mocha|ava|jasmine|karma)\.[cm]?js$")


def shadowing_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """An error for each new file that stands where a runner is looked for, and is not that runner."""
    for change in changes:
        if change.before is None and change.after is not None and (name := _shadowed(change.path)):
            message = f"{change.path} is found in place of {name}: tests may not be run by {name} at all"
            yield Finding("error", message, change.path)
        elif change.before is None and change.after is not None and (found := _TOP_MODULE.match(change.path)):
            yield from _library_findings(change.path, found["folder"] or "", found["name"])


def _library_findings(path: str, folder: str, name: str) -> Iterator[Finding]:
    """A new module that Python, started in the project's folder, finds in place of one of the standard library."""
    imported = name in _IMPORTED_BY_RUNNERS
    if name in sys.stdlib_module_names and name not in {"test", "unittest"} and (imported or not folder):
        severe = imported and not folder
        message = f"{path} is found in place of the standard library's {name}"
        message += ", which test runners import" if imported else ""
        yield Finding("error" if severe else "warning", message, path)


def _shadowed(path: str) -> str:
    """The runner in whose place the file would be found; "" for any other file."""
    for pattern in (_PYTHON, _PROGRAM, _INSTALLED, _SCRIPT):
        if found := pattern.search(path):
            return next(name for name in found.groups() if name)
    return ""
