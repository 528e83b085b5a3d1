"""Names that tests in JavaScript, TypeScript, Go and Rust call, and that the test file newly defines for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.suite import FileChange, words
from lopen.test_integrity.syntax import BINDINGS, FUNCTIONS, ParsedFile, ancestors, parsed_file
from lopen.test_integrity.unread import MAX_CHARS
from lopen.verification.findings import Finding, Severity

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_LANGUAGES = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
}
_BOUND = {
    "go": "(short_var_declaration) @bound",
    "rust": "(let_declaration) @bound",
}
_NAMED = "(function_declaration name: (_) @name)"
_FUNCTION = {
    **dict.fromkeys(("javascript", "typescript", "tsx", "go"), _NAMED),
    "rust": "(function_item name: (_) @name)",
}
_VALUES = {"go": "right", "rust": "value"}
_MADE_HERE = words(
    "arrow_function function_expression object class func_literal composite_literal closure_expression"
)
_IMPORTED = re.compile(
    r"import\s+(?P<named>[^;'\"]{1,500}?)\s+from\s*['\"](?P<own>\.?)"
    r"|(?:const|let|var)\s+(?P<required>[^=;]{1,300}?)=\s*(?:await\s+)?(?:require|import)\(\s*['\"](?P<own_required>\.?)"
)
_CALLED = re.compile(r"(?<![\w$.])([\w$]+)(?:\.\w+)*\s*\(")
_FAILING = r"(?<![\w.]){}\.(?:Fatal|Error|Fail)\w*\("
# a name that the earlier tests themselves gave to something, or took as a parameter
_LOCAL = r"(?<![\w.]){name}\b(?:\s*,\s*\w{{1,80}}){{0,5}}\s*:=|\b(?:var|let|const)\s+{name}\b|[(,]\s*{name}\s+[*\w\[]"
_ASSERTING = frozenset({"assert", "expect", "t", "should"})
_OBJECTS = frozenset({"object", "composite_literal"})
_MACRO = re.compile(r"^[ \t]*macro_rules!\s*(?P<name>(?:debug_)?assert(?:_eq|_ne)?|panic)\b", re.MULTILINE)
_MODULE = re.compile(r"^[ \t]*(?:pub\s+)?mod\s+(?P<name>\w+)\s*[;{]", re.MULTILINE)
_REPLACED = re.compile(r"(?:^|[;{}])\s*(?P<name>(?:assert|expect)(?:\.\w+)+)\s*=(?![=>])", re.MULTILINE)

_Told = tuple[Severity, str, int]

OWN = "{name} is now defined in the test file itself: its tests test what they define"
REPLACED = "{name} is now replaced in the test file: what its tests assert is up to this code"


def local_stand_in_findings(changes: Sequence[FileChange], tests: frozenset[str]) -> Iterator[Finding]:
    """Yield a finding for each name that the earlier tests called and the new ones define. `tests`: paths of test files.

    An object is a warning, because a test may hand its own one to the code; any other one is an error.
    """
    ours = [change for change in changes if change.path in tests]
    elsewhere = {language: _declared_in(ours, language) for language in _FUNCTION}
    for change in changes:
        language = _LANGUAGES.get(change.path.rpartition(".")[2])
        if language is None or change.path not in tests or not change.before or not change.after:
            continue
        if max(len(change.before), len(change.after)) <= MAX_CHARS and change.before != change.after:
            told = dict.fromkeys(_found(change.before, change.after, language, elsewhere[language]))
            yield from (Finding(severity, message, change.path, line) for severity, message, line in told)


def _declared_in(changes: Sequence[FileChange], language: str) -> set[str]:
    """Return the functions that the test files of a Go or Rust change declared: a helper may move from there."""
    ours = [
        c for c in changes if _LANGUAGES.get(c.path.rpartition(".")[2]) == language and c.after != c.before
    ]
    texts = [c.before or "" for c in ours if language in {"go", "rust"}]
    return {
        name
        for text in texts
        if 0 < len(text) <= MAX_CHARS
        for name in _declared(parsed_file(text, language))
    }


def _found(before: str, after: str, language: str, known: set[str]) -> Iterator[_Told]:
    old, new = parsed_file(before, language), parsed_file(after, language)
    earlier, code = (each.code.decode("utf-8", "replace") for each in (old, new))
    if language == "rust":
        yield from _written(_MACRO, earlier, code, REPLACED)
        modules = {found["name"] for found in _MODULE.finditer(earlier)}
        for found in _MODULE.finditer(code):
            if found["name"] not in modules and re.search(rf"\b{found['name']}::", earlier):
                yield "error", OWN.format(name=found["name"]), code.count("\n", 0, found.start("name")) + 1
    elif language != "go":
        yield from _written(_REPLACED, earlier, code, REPLACED)
    bindings = [*_bindings(new)]
    if not bindings:
        return
    imported = set(_imports(after, own=True))
    called = set(_CALLED.findall(earlier)) & set(_CALLED.findall(code))
    if language not in {"go", "rust"}:  # these see the code's names without an import
        called &= {*_imports(before), *_ASSERTING}
    bound = {name for name, _ in _bindings(old)} | _declared(old) | known
    for name, value in bindings:
        said = set(re.findall(r"[\w$]+", new.of(value)))
        if name in bound or said & imported - {name} or name not in called:
            continue
        fails = name in _ASSERTING or re.search(_FAILING.format(re.escape(name)), code)
        if not fails and value.type in _OBJECTS and re.search(_LOCAL.format(name=re.escape(name)), earlier):
            continue
        severity: Severity = "warning" if value.type in _OBJECTS and not fails else "error"
        yield severity, OWN.format(name=name), new.line(value)


def _imports(text: str, *, own: bool = False) -> Iterator[str]:
    """Yield the names that a text imports. `own`: by relative paths alone."""
    for found in _IMPORTED.finditer(text):
        if not own or found["own"] or found["own_required"]:
            yield from re.findall(r"[\w$]+", found["named"] or found["required"])


def _declared(source: ParsedFile) -> set[str]:
    """Return the names of functions that a file writes out itself, at whatever place."""
    return {source.of(node) for node in source.find(_FUNCTION[source.language], "name")} | {
        name for name, _ in _bindings(source, everywhere=True)
    }


def _written(pattern: re.Pattern[str], before: str, after: str, message: str) -> Iterator[_Told]:
    known = {found["name"] for found in pattern.finditer(before)}
    for found in pattern.finditer(after):
        if found["name"] not in known:
            yield "error", message.format(name=found["name"]), after.count("\n", 0, found.start("name")) + 1


def _bindings(source: ParsedFile, *, everywhere: bool = False) -> Iterator[tuple[str, Node]]:
    """Yield the names that functions of a file give to functions and objects that they write out, with those."""
    pattern = _BOUND.get(source.language, "(variable_declarator) @bound")
    for node in source.find(pattern, "bound"):
        name = node.child_by_field_name(BINDINGS[node.type])
        value = node.child_by_field_name(_VALUES.get(source.language, "value"))
        if value is not None and value.type == "expression_list" and value.named_child_count == 1:
            value = value.named_children[0]
        if name is None or value is None or value.type not in _MADE_HERE:
            continue
        if everywhere or any(above.type in FUNCTIONS for above in ancestors(node)):
            yield source.of(name), value
