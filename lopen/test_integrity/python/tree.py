"""A Python file's syntax tree, with its names resolved: what the readers see is `pytest.skip`, however it was imported.

Text in a syntax newer than this Python's is brought into an older one first, with the help of tree-sitter.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from lopen.test_integrity.suite import words
from lopen.test_integrity.syntax import ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

DEEPEST = 150  # levels: whoever writes the tree out again needs several frames for each
_FRAMEWORKS = frozenset({"pytest", "unittest", "contextlib"})
_WORDS = words(
    "skip xfail fail raises suppress exit importorskip mark param skipIf skipUnless SkipTest expectedFailure"
)
_NEWER = """
(string (interpolation)) @string
(type_parameter) @parameters
(type_alias_statement) @alias
(except_clause value: (_) @caught value: (_)) @except
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_TABLES = (ast.List, ast.Tuple, ast.Set, ast.Dict)


@lru_cache(maxsize=128)
def parsed(text: str) -> ast.Module | None:
    """The syntax tree, or None where the text is not Python, or is nested beyond all sense. Readers do not change it."""
    tree = _parsed(text) or _parsed(_older(text, blunt=False)) or _parsed(_older(text, blunt=True))
    if tree is None:
        return None
    resolver = _Resolved(tree)
    return resolver.visit(tree) if resolver.needed else tree


@lru_cache(maxsize=8192)
def nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return a node and what is below it, outer ones first, without contexts and lone operators (`ast.Load`, `ast.Add`).

    Several rules walk the same file and the same test: each is walked once.
    """
    found = [node]
    for each in found:  # it grows meanwhile
        for name in each._fields:
            value = getattr(each, name, None)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                found.append(value)
    return tuple(found)


@lru_cache(maxsize=32_768)
def unparse(node: ast.AST) -> str:
    """Return a node's source text. Several rules look at the same node; for one that is going to change use `ast.unparse`."""
    return ast.unparse(node)


def parse_quietly(text: str | bytes) -> ast.Module:
    """Parse a file; Python's warnings of it (an escape, a literal) would be printed among lopen's own lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _parsed(text: str) -> ast.Module | None:
    try:
        tree = parse_quietly(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if _within(tree, DEEPEST) else None


def _within(tree: ast.AST, depth: int) -> bool:
    """Return True if a tree has no more levels than `depth`. Written out, since every file of a change passes here."""
    level: list[ast.AST] = [tree]
    for _ in range(depth):
        below: list[ast.AST] = []
        for node in level:
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    below += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST) and value._fields:
                    below.append(value)
        if not below:
            return True
        level = below
    return False


def _older(text: str, *, blunt: bool) -> str:
    """The text with what this Python may not know replaced by something alike, line by line.

    Strings with code in them get other quotes inside; with `blunt` they become plain strings.
    """
    source = ParsedFile(text, "python")
    edits: list[tuple[int, int, bytes]] = []
    for found in source.matches(_NEWER):
        kind, node = next((k, n) for k, n in found.items() if k != "caught")
        edits += _quotes(source, node) if kind == "string" and not blunt else _edits(source, kind, node)
    result, parts, done = source.text, [], 0
    for start, end, replacement in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start >= done:  # else it lies in what is replaced already
            parts += [result[done:start], replacement]
            done = end
    return b"".join([*parts, result[done:]]).decode("utf-8", "replace")


def _quotes(source: ParsedFile, string: Node) -> list[tuple[int, int, bytes]]:
    """Other quotes for the strings in a string."""
    marks = source.find("[(string_start) (string_end)] @mark", "mark", string)
    outer = source.text[marks[0].start_byte : marks[0].end_byte] if marks else b""
    if outer[-1:] != b'"' or outer.endswith(b'"""'):
        return []
    inner = [(m.end_byte - 1, m.end_byte) for m in marks[1:-1]]
    return [(start, end, b"'") for start, end in inner if source.text[start:end] == b'"']


def _edits(source: ParsedFile, kind: str, node: Node) -> list[tuple[int, int, bytes]]:
    start, end = node.start_byte, node.end_byte
    text = source.text[start:end]
    if kind == "string":
        said = text.replace(b"\\", b"/").replace(b'"', b"'").strip(b"'")
        quotes = b'"""' if b"\n" in text else b'"'
        return [(start, end, quotes + said + b" " + quotes)]
    if kind == "parameters":
        return [(start, end, b"")]
    if kind == "alias":
        return [(start, end, b"pass" + b"\n" * text.count(b"\n"))]
    caught = node.children_by_field_name("value")
    return [(caught[0].start_byte,) * 2 + (b"(",), (caught[-1].end_byte,) * 2 + (b")",)]


def _blocks(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """The bodies of the functions and classes in a body, however deep."""
    waiting: list[ast.stmt | ast.ExceptHandler] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.body
        for part in ("body", "orelse", "finalbody", "handlers"):
            waiting += getattr(node, part, None) or []


class _Resolved(ast.NodeTransformer):
    """Names of the test framework written in full, and literal tables put where their names stand."""

    def __init__(self, tree: ast.Module) -> None:
        self._names = _meanings(tree.body)
        self._tables = [_literals(tree.body)]
        self._class = ""
        self._of_class: Mapping[str, ast.expr] = {}
        inner = any(map(_literals, _blocks(tree.body)))
        self._switches = _switches(tree.body)
        self.needed = bool(self._names or self._tables[0] or self._switches) or inner

    def visit_Name(self, node: ast.Name) -> ast.expr:
        meaning = self._names.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return ast.copy_location(_dotted(meaning, node), node) if meaning else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self._class, self._of_class
        self._class, self._of_class = node.name, _literals(node.body)
        visited = self.generic_visit(node)
        self._class, self._of_class = outer
        return visited

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer = self._names
        given = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        bound = {name.id for name in stored} if outer else set()
        self._names = {name: value for name, value in outer.items() if name not in given | bound}
        self._tables.append(_literals(node.body))
        visited = self.generic_visit(node)
        self._tables.pop()
        self._names = outer
        return visited

    def visit_If(self, node: ast.If) -> ast.AST:
        if isinstance(node.test, ast.Name) and node.test.id in self._switches:
            node.test = ast.copy_location(ast.Constant(self._switches[node.test.id]), node.test)
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._inlined(node.iter)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize":
            node.args[1:2] = [self._inlined(argument) for argument in node.args[1:2]]
            for keyword in node.keywords:
                keyword.value = self._inlined(keyword.value)
        return self.generic_visit(node)

    def _inlined(self, node: ast.expr) -> ast.expr:
        """A table instead of its name, cut where a part of it is taken."""
        if isinstance(node, ast.Name):
            found = next((t[node.id] for t in reversed(self._tables) if node.id in t), None)
            return found if found is not None else node
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self._of_class:
            own = node.value.id in ("self", "cls") or node.value.id == self._class
            return self._of_class.get(node.attr, node) if own else node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            table = self._inlined(node.value)
            bounds = [_bound(part) for part in (node.slice.lower, node.slice.upper)]
            if isinstance(table, ast.List | ast.Tuple) and None not in bounds:
                start, end = bounds
                cut = table.elts[slice(start[0], end[0])]  # type: ignore[index]  # none of them is None
                return ast.copy_location(ast.List(cut, ast.Load()), node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr=attr), args=[]):
                called = ast.Attribute(self._inlined(owner), attr, ast.Load())
                return ast.copy_location(ast.Call(ast.copy_location(called, node), [], node.keywords), node)
            case ast.Call(func=ast.Name(id="sorted" | "list" | "tuple" | "enumerate"), args=[given, *_]):
                node.args[0] = self._inlined(given)
        return node


def _switches(body: Sequence[ast.stmt]) -> dict[str, bool]:
    """Names that a file binds once, to `True` or `False`."""
    assigned = [node for node in body if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)]
    names = [
        (unparse(target), node.value)
        for node in assigned
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    switches = [(n, v.value) for n, v in names if isinstance(v, ast.Constant) and isinstance(v.value, bool)]
    return {name: on for name, on in switches if sum(name == other for other, _ in names) == 1}


def _bound(node: ast.expr | None) -> tuple[int | None] | None:
    """The bound of a slice where it is literal or left out, in brackets; else None."""
    if node is None:
        return (None,)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return (node.value,)
    return None


def _meanings(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Names at a file's top that stand for something of a test framework, with what that is called in full."""
    found: dict[str, str] = {}
    for node in body:
        match node:
            case ast.Import():
                found |= {a.asname: a.name for a in node.names if a.asname and a.name in _FRAMEWORKS}
            case ast.ImportFrom(module=str(module)) if module in _FRAMEWORKS:
                found |= {a.asname or a.name: f"{module}.{a.name}" for a in node.names if a.name in _WORDS}
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Attribute(value=ast.Name(id=owner), attr=attr)
            ):
                owner = found.get(owner, owner)
                if owner in _FRAMEWORKS and attr in _WORDS:
                    found[name] = f"{owner}.{attr}"
    return found


def _dotted(name: str, place: ast.AST) -> ast.expr:
    first, *rest = name.split(".")
    node: ast.expr = ast.copy_location(ast.Name(first, ast.Load()), place)
    for part in rest:
        node = ast.copy_location(ast.Attribute(node, part, ast.Load()), place)
    return node


def _literals(body: Sequence[ast.stmt]) -> Mapping[str, ast.expr]:
    """Literal tables by the names that a block gives them; a name that is bound twice has none."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    twice |= {target.id} & found.keys()
                    if isinstance(node.value, _TABLES):
                        found[target.id] = node.value
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            twice.add(node.target.id)
    return {name: value for name, value in found.items() if name not in twice}
