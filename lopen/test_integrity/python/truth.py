"""The truth of Python expressions that is the same whatever the code under test does."""

from __future__ import annotations

import ast
import re

from lopen.test_integrity.python.tree import Function, nodes, unparse


def is_truthy(node: ast.expr) -> bool | None:
    """The truth of an expression that is the same whatever the code under test does; None where it depends."""
    match node:
        case ast.Constant():
            return bool(node.value)
        case ast.Tuple() | ast.List() | ast.Set():
            return bool(node.elts)
        case ast.Dict():
            return bool(node.keys)
        case ast.Lambda() | ast.GeneratorExp():
            return True
        case ast.UnaryOp(op=ast.Not()):
            inner = is_truthy(node.operand)
            return None if inner is None else not inner
        case ast.BoolOp():
            return _bool_operation(node)
        case ast.Compare(ops=[operator], comparators=[right]):
            return _comparison(node.left, operator, right)
        case ast.Call():
            return _call_truth(node)
        case ast.Name(id="__debug__"):
            return True
        case ast.Name(id="TYPE_CHECKING"):
            return False
        case _:
            return None


def _bool_operation(node: ast.BoolOp) -> bool | None:
    values = [is_truthy(value) for value in node.values]
    deciding = isinstance(node.op, ast.Or)
    if deciding in values:
        return deciding
    return None if None in values else not deciding


def _comparison(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool | None:
    same = unparse(left) == unparse(right)
    if same and isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE) and not _is_volatile(left):
        return True
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        if isinstance(operator, ast.Eq):
            return bool(left.value == right.value)
        if isinstance(operator, ast.NotEq):
            return bool(left.value != right.value)
        return None
    if isinstance(operator, ast.Eq) and (is_anything(left) or is_anything(right)):
        return True
    is_length = isinstance(left, ast.Call) and unparse(left.func) == "len"
    bound = unparse(right)
    if is_length and (
        (isinstance(operator, ast.GtE) and bound == "0") or (isinstance(operator, ast.Gt) and bound == "-1")
    ):
        return True
    return None


def is_anything(node: ast.expr) -> bool:
    """Return True for `unittest.mock.ANY`, and what `Helpers` put in the place of another object like it."""
    return unparse(node).rpartition(".")[2] == "ANY"


def _is_volatile(node: ast.expr) -> bool:
    """Two calls that look the same may differ: comparing them is a test of stability, not of nothing."""
    return any(isinstance(child, ast.Call) for child in nodes(node))


def _call_truth(node: ast.Call) -> bool | None:
    name = unparse(node.func)
    if name == "bool" and node.args:
        return is_truthy(node.args[0])
    if name == "isinstance" and len(node.args) == 2 and unparse(node.args[1]) == "object":
        return True
    return None


def is_of_a_double(root: Function, node: ast.Raise) -> bool:
    """Return True for an exception of a method that stands for the code, which checks nothing."""
    arguments = root.args.args
    is_method = bool(arguments) and arguments[0].arg in {"self", "cls"}
    return is_method and node.exc is not None and not re.search("Assert|[Ff]ail", unparse(node.exc))
