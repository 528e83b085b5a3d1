"""Tests that were there and now take their framework, their subject or a decorator from another module of the project."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from lopen.test_integrity.javascript import adapter as javascript
from lopen.test_integrity.python import adapter as python
from lopen.test_integrity.python.names import module_name
from lopen.test_integrity.python.stand_ins import is_code
from lopen.test_integrity.python.tree import nodes, parsed, unparse
from lopen.test_integrity.suite import FileChange, words
from lopen.verification.findings import Finding

_FRAMEWORKS = re.compile(
    r"(?:node:)?(?:test|assert)(?:/.*)?$|(?:vitest|@jest/.*|jest|chai|mocha|expect|should|ava|tap)$"
)
_BINDING = r"(?P<{0}>[\w$]+|\*\s*as\s+[\w$]+|[\w$]*\s*,?\s*\{{[^{{}}]{{0,500}}\}})"
_IMPORT = re.compile(
    rf"\b(?:const|let|var)\s+{_BINDING.format('required')}\s*=\s*require\(\s*(?P<q>['\"])(?P<from1>[^'\"\n]{{1,200}})(?P=q)"
    rf"|\bimport\s+{_BINDING.format('imported')}\s*from\s*(?P<r>['\"])(?P<from2>[^'\"\n]{{1,200}})(?P=r)"
)
_MOCKED = re.compile(
    r"\b(?:(?:jest|vi)\.(?:do|unstable_)?[mM]ock(?:Module)?|mock\.module)\(\s*(['\"])([^'\"\n]{1,200})\1"
)
_NAME = re.compile(r"[\w$]+(?:\s*(?::|\bas\b)\s*(?P<local>[\w$]+))?")
_SUFFIXES = (
    "",
    *(f"{end}.{kind}" for end in ("", "/index") for kind in ("ts", "tsx", "js", "jsx", "mjs", "cjs", "mts")),
)
_FAKE = re.compile(r"(?:^|[._])(?:mock|fake|stub|dumm(?:y|ie)|double)s?(?:[._]|$)")
_HELPER = re.compile(
    r"(?i)^[#~@./\w-]*\b(?:tests?_?-?(?:helper|util|support)|helper|fixture)s?\b"
)  # of the tests' own
_WORDS = words("as default type")


def moved_import_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield findings for test files on both sides of the change; only names that both import are compared."""
    written = {c.path: c.after for c in changes if c.after is not None}
    new = {module_name(c.path) for c in changes if c.before is None and c.path.endswith(".py")}
    for change in changes:
        if change.before is None or change.after is None:
            continue
        if python.covers(change.path):
            yield from _python(change, new)
        elif javascript.covers(change.path):
            yield from _javascript(change, written)


def _python(change: FileChange, new: set[str]) -> Iterator[Finding]:
    before, after = parsed(change.before or ""), parsed(change.after or "")
    if before is None or after is None:
        return
    old, now = _imported(before), _imported(after)
    for name, (module, line) in now.items():
        fake = name in old and bool(_FAKE.search(module)) and not _FAKE.search(old[name][0])
        if fake and is_code(old[name][0]) and module.lstrip(".") not in new:
            message = f"{name}, which these tests import, now comes from {module} instead of {old[name][0]}"
            yield Finding("warning", message, change.path, line)
        if name in old and old[name][0] != module and module.lstrip(".") in new:
            message = (
                f"{name}, which these tests import, now comes from the new {module} instead of {old[name][0]}"
            )
            yield Finding("warning", message, change.path, line)
    known = {(name, text) for name, text, _, _ in _decorators(before)}
    tests = {name for name, _, _, _ in _decorators(before)} | {
        node.name for node in nodes(before) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for name, text, root, line in _decorators(after):
        if name in tests and (name, text) not in known and now.get(root, ("", 0))[0].lstrip(".") in new:
            message = f"@{text}, from the new {now[root][0]}, now stands around the test {name}"
            yield Finding("warning", message, change.path, line)


def _imported(tree: ast.Module) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found |= {alias.asname or alias.name: (module, node.lineno) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname: (a.name, node.lineno) for a in node.names if a.asname}
            found |= {a.name.partition(".")[0]: (a.name, node.lineno) for a in node.names if not a.asname}
    return found


def _decorators(tree: ast.Module) -> Iterator[tuple[str, str, str, int]]:
    """Yield (test, decorator, its first name, line)."""
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            for each in node.decorator_list:
                text = unparse(each)
                yield node.name, text, re.split(r"\W", text, maxsplit=1)[0], node.lineno


def _javascript(change: FileChange, written: Mapping[str, str]) -> Iterator[Finding]:
    old, now = _bound(change.before or ""), _bound(change.after or "")
    for name, (module, line) in now.items():
        before = old.get(name, ("", 0))[0]
        if before.startswith(".") and posixpath.normpath(before) == posixpath.normpath(module):
            continue
        if before in ("", module) or not module.startswith((".", "/", "#", "~")):
            continue
        above = re.sub(r"/index(?:\.[cm]?[jt]sx?)?$", "", module)
        related = before.startswith(f"{above}/") or _HELPER.search(before)
        if related or not before.startswith((".", "/", "#", "~", "@/", "src/", "node:")):
            package = _FRAMEWORKS.match(before)
            if related or not package:
                continue  # a module that hands on its parts, or a package that the code under test is not of
        if _hands_on(written, posixpath.join(posixpath.dirname(change.path), module), before, name):
            continue
        if _FRAMEWORKS.match(before):
            message = f"{name} comes from {module} now instead of {before}: the project's own code stands in for the test framework"
            yield Finding("error", message, change.path, line)
        elif _stem(before) != _stem(module) or before.count("..") > module.count(".."):
            message = f"{name}, which these tests import, now comes from {module} instead of {before}"
            yield Finding("warning", message, change.path, line)

    mocked = {found[2] for found in _MOCKED.finditer(change.before or "")}
    imported = {module for module, _ in old.values()} & {module for module, _ in now.values()}
    for found in _MOCKED.finditer(change.after or ""):
        if found[2] in imported - mocked and found[2].startswith((".", "/", "#", "~", "@/")):
            line = (change.after or "").count("\n", 0, found.start()) + 1
            message = f"{found[2]}, which these tests import, is replaced by a mock now"
            yield Finding("warning", message, change.path, line)


def _hands_on(written: Mapping[str, str], path: str, package: str, name: str) -> bool:
    """Return True if a module of the change exports what it takes from the package itself, be it extended."""
    stem = posixpath.normpath(path)
    text = next((written[stem + end] for end in _SUFFIXES if stem + end in written), "")
    taken = rf"\bfrom\s*['\"]{re.escape(package)}['\"]"
    exported = rf"\bexport\s*\{{[^}}]*\b{re.escape(name)}\b[^}}]*\}}|\bexport\s+\*\s*{taken}"
    extended = rf"\bexport\s+const\s+{re.escape(name)}\s*=\s*[\w$]+\.extend\b"
    rendering = r"\breturn\s+render\(|=>\s*render\(" if name.startswith("render") else r"(?!)"
    own = rf"\b(?:const|let|var|function)\s+{re.escape(name)}\b"
    handed = re.search(exported, text) and not re.search(own, text)
    return bool(re.search(taken, text) and (handed or re.search(f"{extended}|{rendering}", text)))


def _stem(module: str) -> str:
    """Return the last part of a module's path, written with or without its suffix."""
    return re.sub(r"(?:/index)?(?:\.[cm]?[jt]sx?)?$", "", module).rpartition("/")[2]


def _bound(text: str) -> Mapping[str, tuple[str, int]]:
    """Return where each name of a file is imported from, and in which line."""
    found: dict[str, tuple[str, int]] = {}
    for each in _IMPORT.finditer(text):
        module = each["from1"] or each["from2"]
        line = text.count("\n", 0, each.start()) + 1
        for name in _NAME.finditer(each["required"] or each["imported"]):
            local = name["local"] or name[0]
            if local not in _WORDS:
                found[local] = (module, line)
    return found
