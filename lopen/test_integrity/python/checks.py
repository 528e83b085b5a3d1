"""What a Python test checks: its assertions, how strict each is, and whether it can fail the test at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lopen.test_integrity.conditions import ENVIRONMENT, SKIP_WORD
from lopen.test_integrity.python.ranks import call_check, expression_checks, is_truthy
from lopen.test_integrity.python.skips import foreign, function_skips, literal_rows, statement_skips
from lopen.test_integrity.python.tree import is_mentioned, is_used, nodes
from lopen.test_integrity.suite import EXACT, Check, Kind, Skip, called, guard

Function = ast.FunctionDef | ast.AsyncFunctionDef
Helpers = Mapping[str, Function]

_CATCH_ALL = frozenset({"Exception", "BaseException", "AssertionError"})
_GOING_ON = ("pytest.importorskip", "importorskip", "assume(")  # what may skip, and else goes on
_MAX_DEPTH = 3  # helpers that call helpers


@dataclass
class Body:
    """What a test function does. `rows`: how many literal rows it loops over; `empty`: it does nothing."""

    checks: tuple[Check, ...] = ()
    skips: tuple[Skip, ...] = ()
    rows: int | None = None
    empty: bool = False


def helper_functions(trees: Sequence[ast.Module]) -> dict[str, Function]:
    """Functions by name: what a test may call to have something checked."""
    return {node.name: node for tree in trees for node in nodes(tree) if isinstance(node, Function)}


def read_body(node: Function, helpers: Helpers) -> Body:
    """What the function checks, the helpers it calls included."""
    walk = _Walk(node, helpers, aliases=_aliases(node))
    walk.block(node.body, "real", "")
    return Body(tuple(walk.checks), tuple(walk.skips), walk.rows, _is_empty(node.body))


def _aliases(node: Function) -> dict[str, ast.expr]:
    """Short names given to assertions: `eq = self.assertEqual`, `raises = partial(self.assertRaises, …)`."""
    found: dict[str, ast.expr] = {}
    for child in node.body:
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            value = child.value
            if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("partial") and value.args:
                value = value.args[0]
            if isinstance(value, ast.Attribute) and value.attr.startswith("assert"):
                found[child.targets[0].id] = value
    return found


def _is_empty(body: Sequence[ast.stmt]) -> bool:
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Return) and (s.value is None or isinstance(s.value, ast.Constant)))
        for s in body
    )


@dataclass
class _Walk:
    """A walk through one function's statements, in the order in which they would run."""

    root: Function
    helpers: Helpers
    depth: int = 0
    checks: list[Check] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    rows: int | None = None
    aliases: dict[str, ast.expr] = field(default_factory=dict)

    def block(self, body: Sequence[ast.stmt], kind: Kind, condition: str) -> None:
        """Statements one after the other; behind one that leaves the block none is reached."""
        for statement in body:
            if kind in {"real", "conditional"}:
                self.skips += statement_skips(statement, condition=condition)
            self.statement(statement, kind, condition)
            if _leaves(statement):
                kind = "unreachable" if kind == "real" else kind

    def statement(self, node: ast.stmt, kind: Kind, condition: str) -> None:
        """One statement and, where it has some, the blocks in it."""
        match node:
            case ast.Assert():
                self.checks += _as_kind(expression_checks(node.test), kind)
            case ast.With() | ast.AsyncWith():
                self._with(node, kind, condition)
            case ast.Try() | ast.TryStar():
                self._try(node, kind, condition)
            case ast.If():
                self._if(node, kind)
            case ast.For() | ast.AsyncFor():
                self._loop(node, kind, condition)
            case ast.While():
                never = is_truthy(node.test) is False
                self.block(node.body, _worse(kind, "unreachable" if never else "real"), condition)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                used = is_used(node, self.root)
                self.block(node.body, _worse(kind, "real" if used else "unreachable"), "in a function")
            case ast.Raise() if condition and condition != "an exception":
                # `if total != 4: raise …` fails the test as an assertion of the opposite would
                self.checks += _as_kind([Check(f"raise if {condition}", condition, EXACT, node.lineno)], kind)
            case ast.ClassDef() | ast.Return(value=None):
                pass
            case _:
                self._other(node, kind, condition)

    def _with(self, node: ast.With | ast.AsyncWith, kind: Kind, condition: str) -> None:
        inner = kind
        before = len(self.checks)
        for item in node.items:
            self._expression(item.context_expr, kind, alone=False)
            if _swallows_in_context(item.context_expr):
                inner = _worse(kind, "swallowed")
        if inner == "swallowed" and any(map(_asserts, node.body)):
            del self.checks[before:]  # all that it expects is that the assertion in it fails
        self.block(node.body, inner, condition)

    def _try(self, node: ast.Try | ast.TryStar, kind: Kind, condition: str) -> None:
        swallowed = any(map(_swallows, node.handlers)) or any(map(_ends_there, node.finalbody))
        self.block(node.body, _worse(kind, "swallowed" if swallowed else "real"), condition)
        for handler in node.handlers:
            self.block(handler.body, kind, "an exception")
        self.block([*node.orelse, *node.finalbody], kind, condition)

    def _if(self, node: ast.If, kind: Kind) -> None:
        truth = is_truthy(node.test)
        condition = ast.unparse(node.test)
        before = len(self.checks)
        inner: Kind = "unreachable" if truth is False else "real"
        if truth is None and not node.orelse and ENVIRONMENT.search(condition):
            inner = "conditional"
        self.block(node.body, _worse(kind, inner), condition)
        if truth is None and not node.orelse:
            guard(self.checks, before, condition)
        if kind == "real" and len(self.checks) == before and (word := _gives_up(node.body, condition)):
            self.skips.append(Skip(f"{word} if {condition}", node.lineno, not foreign(condition)))
        self.block(
            node.orelse, _worse(kind, "unreachable" if truth is True else "real"), f"not ({condition})"
        )

    def _loop(self, node: ast.For | ast.AsyncFor, kind: Kind, condition: str) -> None:
        rows = literal_rows(node.iter)
        before = len(self.checks)
        self.block(node.body, _worse(kind, "unreachable" if rows == 0 else "real"), condition)
        self.block(node.orelse, kind, condition)
        if rows is not None and len(self.checks) > before:
            self.rows = (self.rows or 0) + rows

    def _other(self, node: ast.stmt, kind: Kind, condition: str) -> None:
        """Calls that check, wherever in a statement they stand; and the blocks of statements not named above."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child, kind, condition)
            elif isinstance(child, ast.match_case):
                self.block(child.body, kind, condition)
            elif isinstance(child, ast.expr):
                inner = _worse(kind, "unreachable" if self._is_idle(child, node) else "real")
                self._expression(child, inner, alone=isinstance(node, ast.Expr))

    def _is_idle(self, node: ast.expr, statement: ast.stmt) -> bool:
        """Return True if an expression does not run what stands in it."""
        match node:
            case ast.Lambda() if isinstance(statement, ast.Expr):
                return True
            case ast.Lambda():
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                return bool(names) and not any(is_mentioned(name, self.root) for name in names)
            case ast.GeneratorExp():
                return isinstance(statement, ast.Expr)
            case ast.BoolOp(op=ast.And(), values=[first, *_]):
                return is_truthy(first) is False
        return False

    def _expression(self, node: ast.expr, kind: Kind, *, alone: bool) -> None:
        for call in _calls(node):
            if isinstance(call.func, ast.Name) and call.func.id in self.aliases:
                renamed = ast.copy_location(
                    ast.Call(self.aliases[call.func.id], call.args, call.keywords), call
                )
                self.checks += _as_kind(call_check(renamed), kind)
                return
            known = self._helper(call)
            if isinstance(known, ast.AsyncFunctionDef) and alone and call is node:
                kind = _worse(kind, "unawaited")
            if known is not None:
                if kind == "real" and alone:
                    name = ast.unparse(call.func)
                    self.skips += [
                        Skip(f"{name}'s {s.text}", call.lineno, s.certain)
                        for s in function_skips(known)
                        if not s.text.startswith("os._exit")
                    ]
                self.checks += _as_kind(called(_call_as_check(call), self._helper_checks(known)), kind)
                continue
            found = call_check(call, alone=alone and call in (node, getattr(node, "value", None)))
            if found:
                self.checks += _as_kind(found, kind)
                return  # the outermost one speaks for the chain

    def _helper(self, call: ast.Call) -> Function | None:
        helper = self.helpers.get(ast.unparse(call.func).rpartition(".")[2])
        return None if helper is self.root else helper

    def _helper_checks(self, helper: Function) -> list[Check]:
        """What a helper checks, as far as helpers are followed."""
        if self.depth >= _MAX_DEPTH:
            return []
        walk = _Walk(helper, self.helpers, self.depth + 1)
        walk.block(helper.body, "real", "")
        return walk.checks


def _asserts(node: ast.stmt) -> bool:
    """Return True if a statement is an assertion, and no call of a helper that may be what is tested."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return isinstance(node.value.func, ast.Attribute) and node.value.func.attr.startswith("assert")
    return isinstance(node, ast.Assert)


def _call_as_check(call: ast.Call) -> Check:
    text = ast.unparse(call)
    return Check(text, ast.unparse(call.args[0]) if call.args else text, EXACT, call.lineno)


def _calls(node: ast.expr) -> Iterator[ast.Call]:
    """The calls in an expression from the outside in, those in lambdas and comprehensions included."""
    return (child for child in ast.walk(node) if isinstance(child, ast.Call))


def _as_kind(checks: Sequence[Check], kind: Kind) -> list[Check]:
    if kind == "real":
        return list(checks)
    return [Check(c.text, c.subject, c.rank, c.line, kind if c.kind == "real" else c.kind) for c in checks]


def _worse(outer: Kind, inner: Kind) -> Kind:
    return inner if outer == "real" else outer


def _leaves(node: ast.stmt) -> bool:
    """Return True if nothing behind the statement in its block runs."""
    if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
        return True
    return any(not skip.text.startswith(_GOING_ON) for skip in statement_skips(node, condition=""))


def _gives_up(body: Sequence[ast.stmt], condition: str) -> str:
    """The word by which a branch ends the test, or leaves a row of a table out, with nothing checked."""
    match body[-1]:
        case ast.Return(value=None):
            return "return"
        case ast.Continue() if SKIP_WORD.search(condition):
            return "continue"
    return ""


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Return True if a failed assertion ends in this handler without failing the test."""
    caught = handler.type
    kinds = [caught] if not isinstance(caught, ast.Tuple) else caught.elts
    names = {ast.unparse(kind).rpartition(".")[2] for kind in kinds if kind is not None}
    if caught is not None and not names & _CATCH_ALL:
        return False
    return not any(_fails(node) for statement in handler.body for node in ast.walk(statement))


def _fails(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert):
        return True
    return isinstance(node, ast.Call) and (
        ast.unparse(node.func).rpartition(".")[2] in {"fail", "exit", "_exit"} or bool(call_check(node))
    )


def _ends_there(node: ast.stmt) -> bool:
    """Return True if a `finally` leaves by itself, and a failed assertion with it."""
    return isinstance(node, ast.Return | ast.Break | ast.Continue)


def _swallows_in_context(node: ast.expr) -> bool:
    """`contextlib.suppress` and `pytest.raises` of what an assertion raises."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    if name == "suppress":
        return any(ast.unparse(argument) in _CATCH_ALL for argument in node.args)
    kinds = [k for a in node.args[:1] for k in (a.elts if isinstance(a, ast.Tuple) else [a])]
    return name in {"raises", "assertRaises", "assertRaisesRegex"} and any(
        ast.unparse(kind) in _CATCH_ALL for kind in kinds
    )
