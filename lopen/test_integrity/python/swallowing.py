"""Statements of a Python test that keep a failed assertion from failing it, and those that fail it by themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from lopen.test_integrity.python.ranks import call_check
from lopen.test_integrity.python.tree import Function, nodes, unparse
from lopen.test_integrity.python.truth import is_truthy
from lopen.test_integrity.suite import Check, Kind

LISTENING = re.compile(
    r"(?:connect|subscribe|once?|listen|register|add_?\w*(?:listener|handler|callback|observer))$"
)
_CHECKS = re.compile(r"_*(?:assert|check|verify|expect|ensure|should|must|validate|compare|is_|has_)")
_NARROWS = re.compile(
    r"(?:isinstance\(.*\)|[\w.]+ is not None|[\w.]+)$"
)  # that tells a type checker what is there
_CATCH_ALL = frozenset({"Exception", "BaseException", "AssertionError"})


def refuses(node: ast.stmt) -> bool:
    """Return True if a statement fails the test by itself: what should have raised did not."""
    if isinstance(node, ast.Assert):
        return is_truthy(node.test) is False
    called = node.value if isinstance(node, ast.Expr) else None
    return isinstance(node, ast.Raise) or (
        isinstance(called, ast.Call) and unparse(called.func).rpartition(".")[2] == "fail"
    )


def asserts(node: ast.stmt) -> bool:
    """Return True if a statement is an assertion, and no call of a helper that may be what is tested."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return isinstance(node.value.func, ast.Attribute) and node.value.func.attr.startswith("assert")
    return isinstance(node, ast.Assert)


def swallows(handler: ast.ExceptHandler) -> bool:
    """Return True if a failed assertion ends in this handler without failing the test."""
    caught = handler.type
    kinds = [caught] if not isinstance(caught, ast.Tuple) else caught.elts
    names = {unparse(kind).rpartition(".")[2] for kind in kinds if kind is not None}
    if caught is not None and not names & _CATCH_ALL:
        return False
    return not any(_fails(node) for statement in handler.body for node in nodes(statement))


def _fails(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert):
        return True
    return isinstance(node, ast.Call) and (
        unparse(node.func).rpartition(".")[2] in {"fail", "exit", "_exit"} or bool(call_check(node))
    )


def ends_there(node: ast.stmt) -> bool:
    """Return True if a `finally` leaves by itself, and a failed assertion with it."""
    return isinstance(node, ast.Return | ast.Break | ast.Continue)


def raises_itself(node: ast.With | ast.AsyncWith) -> bool:
    """Return True if the block of an expected exception raises it itself, at its own level."""
    context = node.items[0].context_expr
    name = unparse(context.func).rpartition(".")[2] if isinstance(context, ast.Call) else ""
    return name in {"raises", "assertRaises", "assertRaisesRegex"} and any(
        isinstance(each, ast.Raise) and each.exc is not None for each in node.body
    )


def unreached(node: ast.With | ast.AsyncWith) -> int:
    """Return from which statement on the block of an expected exception only asserts: what raises stands before."""
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    names = {unparse(call.func).rpartition(".")[2] for call in calls}
    if not names & {"raises", "assertRaises", "assertRaisesRegex"}:
        return len(node.body)
    last = len(node.body)
    while last > 1 and asserts(node.body[last - 1]):
        last -= 1
    return last if not asserts(node.body[last - 1]) else len(node.body)


def swallows_in_context(node: ast.expr) -> bool:
    """`contextlib.suppress` and `pytest.raises` of what an assertion raises."""
    if not isinstance(node, ast.Call):
        return False
    name = unparse(node.func).rpartition(".")[2]
    if name == "suppress":
        return any(unparse(argument) in _CATCH_ALL for argument in node.args)
    kinds = [k for a in node.args[:1] for k in (a.elts if isinstance(a, ast.Tuple) else [a])]
    return name in {"raises", "assertRaises", "assertRaisesRegex"} and any(
        unparse(kind) in _CATCH_ALL for kind in kinds
    )


def is_used(function: Function, root: Function) -> bool:
    """Return True if a function in a test runs: it is decorated, or mentioned by something other than a lost coroutine."""
    if function.decorator_list:
        return True
    lost = set[int]()
    if isinstance(function, ast.AsyncFunctionDef):
        lost = {
            id(n.value.func) for n in nodes(root) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)
        }
    # a name that stands alone runs nothing
    lost |= {id(n.value) for n in nodes(root) if isinstance(n, ast.Expr)}
    names = (n for n in nodes(root) if isinstance(n, ast.Name) and n.id == function.name)
    return any(id(name) not in lost for name in names)


def only_listens(function: Function, root: Function) -> bool:
    """Return True if a function in a test is handed to what may call it later, and to nothing else."""
    uses = [n for n in nodes(root) if isinstance(n, ast.Name) and n.id == function.name]
    calls = [n for n in nodes(root) if isinstance(n, ast.Call) and any(a in uses for a in n.args)]
    heard = (LISTENING.match(unparse(call.func).rpartition(".")[2]) for call in calls)
    return 0 < len(uses) == len(calls) and all(heard) and not function.decorator_list


def is_mentioned(name: str, root: Function) -> bool:
    """Return True if a function reads a name."""
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in nodes(root))


def as_kind(checks: Sequence[Check], kind: Kind) -> list[Check]:
    """The checks, as much of that kind as they can be."""
    if kind == "real":
        return list(checks)
    return [Check(c.text, c.subject, c.rank, c.line, kind if c.kind == "real" else c.kind) for c in checks]


def worse(outer: Kind, inner: Kind) -> Kind:
    """The kind of what stands in an inner place of an outer one."""
    return inner if outer == "real" else outer


def telling(helper: Function, checks: Sequence[Check]) -> list[Check]:
    """The checks of a helper; of one that sets up, those that say more than a type checker needs."""
    checking = _CHECKS.match(helper.name)
    return [check for check in checks if checking or not _NARROWS.match(check.text)]
