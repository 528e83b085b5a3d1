"""A Python file's syntax tree, where it has one that can be walked."""

from __future__ import annotations

import ast

DEEPEST = 150  # levels: whoever writes the tree out again needs several frames for each


def parsed(text: str) -> ast.Module | None:
    """The syntax tree, or None where Python (this one) cannot parse it, or it is nested beyond all sense."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if _within(tree, DEEPEST) else None


def _within(tree: ast.AST, depth: int) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(depth):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False
