"""A Python file of tests whose imports may fail, so that it can be run on code of another time."""

from __future__ import annotations

import ast

from lopen.test_integrity.python.tree import parse_quietly, unparse


def optional_imports(source: bytes) -> bytes:
    """Return a Python file in which each import at its top may fail, so that only the tests that need it fail by it."""
    try:
        tree = parse_quietly(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    lines = source.split(b"\n")
    if any(b"\r" in line.removesuffix(b"\r") for line in lines):
        return source  # Python counts other lines
    for node in reversed(tree.body):
        if not isinstance(node, ast.Import | ast.ImportFrom) or node.end_lineno is None:
            continue
        before = lines[node.lineno - 1][: node.col_offset]
        behind = lines[node.end_lineno - 1][node.end_col_offset :].strip()
        if before.strip() or (behind and not behind.startswith(b"#")) or _of_future(node):
            continue
        each = [unparse(_importing(node, alias)).encode() for alias in node.names]
        lines[node.lineno - 1 : node.end_lineno] = [
            b"try: %s\nexcept ImportError: pass" % statement for statement in each
        ]
    return b"\n".join(lines)


def _of_future(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _importing(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)
