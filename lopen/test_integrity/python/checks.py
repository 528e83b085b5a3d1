"""What a Python test checks: its assertions, how strict each is, and whether it can fail the test at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lopen.test_integrity.conditions import ENVIRONMENT, SKIP_WORD
from lopen.test_integrity.python.names import Helpers, assertion_aliases, opened
from lopen.test_integrity.python.ranks import UNSORTED, call_check, expression_checks
from lopen.test_integrity.python.skips import (
    PLAIN,
    foreign,
    function_skips,
    gives_up,
    is_empty,
    iterated,
    leaves,
    loop_rows,
    statement_skips,
)
from lopen.test_integrity.python.swallowing import (
    as_kind,
    asserts,
    ends_there,
    is_mentioned,
    is_used,
    only_listens,
    raises_itself,
    refuses,
    swallows,
    swallows_in_context,
    telling,
    unreached,
    worse,
)
from lopen.test_integrity.python.tree import Function, nodes, unparse
from lopen.test_integrity.python.truth import is_anything, is_of_a_double, is_truthy
from lopen.test_integrity.suite import CLOSE, EXACT, PRESENT, Check, Kind, Skip, called, guard

_MAX_DEPTH = 3  # helpers that call helpers


@dataclass
class Body:
    """What a test function does. `rows`: how many literal rows it loops over; `empty`: it does nothing."""

    checks: tuple[Check, ...] = ()
    skips: tuple[Skip, ...] = ()
    rows: int | None = None
    empty: bool = False


def read_body(node: Function, helpers: Helpers) -> Body:
    """What the function checks, the helpers it calls included."""
    walk = _Walk(node, helpers, aliases=assertion_aliases(node))
    walk.block(node.body, "real", "")
    walk.weigh_loops()
    return Body(tuple(walk.checks), tuple(walk.skips), walk.rows, is_empty(node.body))


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
    loops: list[tuple[int, int, ast.expr]] = field(
        default_factory=list
    )  # from which check to which, over what
    inner: set[str] = field(default_factory=set)  # functions in it, whose checks count where they stand
    open: set[str] = field(default_factory=set)  # what the test itself makes equal to everything

    def block(self, body: Sequence[ast.stmt], kind: Kind, condition: str) -> None:
        """Statements one after the other; behind one that leaves the block none is reached."""
        for statement in body:
            if kind in {"real", "conditional"}:
                self.skips += statement_skips(statement, condition=condition)
            self.statement(statement, kind, condition)
            if leaves(statement):
                kind = "unreachable" if kind == "real" else kind

    def statement(self, node: ast.stmt, kind: Kind, condition: str) -> None:
        """One statement and, where it has some, the blocks in it."""
        match node:
            case ast.Assert():
                self._assert(node.test, kind)
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
                self.block(node.body, worse(kind, "unreachable" if never else "real"), condition)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                used = is_used(node, self.root)
                before = len(self.checks)
                self.inner.add(node.name)
                self.block(node.body, worse(kind, "real" if used else "unreachable"), "in a function")
                if only_listens(node, self.root):  # it is called if the code under test does
                    heard = self.checks[before:]
                    self.checks[before:] = [replace(c, rank=max(c.rank - 1, PRESENT)) for c in heard]
            case ast.Raise() if (
                condition
                and condition != "an exception"
                and not (self.depth and is_of_a_double(self.root, node))
            ):
                # `if total != 4: raise …` fails the test as an assertion of the opposite would
                self.checks += as_kind([Check(f"raise if {condition}", condition, EXACT, node.lineno)], kind)
            case ast.ClassDef() | ast.Return(value=None):
                pass
            case _:
                self._other(node, kind, condition)

    def _assert(self, test: ast.expr, kind: Kind) -> None:
        """An asserted expression, and what the helpers check that it calls."""
        before = len(self.checks)
        self.checks += as_kind(expression_checks(opened(test, self.helpers, self.open)), kind)
        match test:
            case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as each]):
                self.loops.append((before, len(self.checks), each.generators[0].iter))
        for call in _calls(test) if self.helpers else ():
            known = self._helper(call)
            behind = self._helper_checks(known) if known is not None else []
            if any(check.kind == "real" for check in behind):
                self.checks += as_kind(called(_call_as_check(call), behind), kind)

    def weigh_loops(self) -> None:
        """Take less for what is checked in a loop over something that the code makes, if nothing else looks at that."""
        if not self.loops:
            return
        made = {
            target.id
            for node in nodes(self.root)
            if isinstance(node, ast.Assign) and any(_calls(node.value))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for start, end, iterable in self.loops:
            called_there = (unparse(call.func).rpartition(".")[2] for call in _calls(iterable))
            named = {node.id for node in nodes(iterable) if isinstance(node, ast.Name)}
            if not made & named and all(name in PLAIN for name in called_there):
                continue
            roots = {unparse(each) for each in iterated(iterable)}
            others = [*self.checks[:start], *self.checks[end:]]
            if not any(root in check.text for root in roots for check in others if check.kind == "real"):
                self.checks[start:end] = [
                    replace(c, rank=max(c.rank - 1, PRESENT)) for c in self.checks[start:end]
                ]

    def _with(self, node: ast.With | ast.AsyncWith, kind: Kind, condition: str) -> None:
        inner = kind
        before = len(self.checks)
        for item in node.items:
            self._expression(item.context_expr, kind, alone=False)
            if swallows_in_context(item.context_expr):
                inner = worse(kind, "swallowed")
        if inner == "swallowed" and any(map(asserts, node.body)):
            del self.checks[before:]  # all that it expects is that the assertion in it fails
        if len(node.items) == 1 and raises_itself(node):
            self.checks[before:] = as_kind(self.checks[before:], "vacuous")
        last = unreached(node)
        self.block(node.body[:last], inner, condition)
        self.block(node.body[last:], worse(inner, "unreachable"), condition)

    def _try(self, node: ast.Try | ast.TryStar, kind: Kind, condition: str) -> None:
        swallowed = any(map(swallows, node.handlers)) or any(map(ends_there, node.finalbody))
        self.block(node.body, worse(kind, "swallowed" if swallowed else "real"), condition)
        expected = any(map(refuses, [*node.body, *node.orelse])) and not swallowed
        if expected and node.handlers:
            kinds = ", ".join(unparse(h.type) for h in node.handlers if h.type)
            check = Check(f"raises({kinds})", "an exception", CLOSE, node.lineno)
            self.checks += as_kind([check], kind)
        for handler in node.handlers:
            if kind == "real" and handler.type is not None and gives_up(handler.body) == "return":
                self.skips.append(Skip(f"return if {unparse(handler.type)}", handler.lineno, False))
            self.block(handler.body, worse(kind, "real" if expected else "conditional"), "an exception")
        self.block([*node.orelse, *node.finalbody], kind, condition)

    def _if(self, node: ast.If, kind: Kind) -> None:
        truth = is_truthy(node.test)
        condition = unparse(node.test)
        before = len(self.checks)
        inner: Kind = "unreachable" if truth is False else "real"
        if truth is None and not node.orelse and ENVIRONMENT.search(condition):
            inner = "conditional"
        self.block(node.body, worse(kind, inner), condition)
        if truth is None and not node.orelse:
            guard(self.checks, before, condition)
        if kind == "real" and len(self.checks) == before and (word := gives_up(node.body)):
            certain = word == "return" or bool(SKIP_WORD.search(condition))
            self.skips.append(Skip(f"{word} if {condition}", node.lineno, certain and not foreign(condition)))
        self.block(node.orelse, worse(kind, "unreachable" if truth is True else "real"), f"not ({condition})")

    def _loop(self, node: ast.For | ast.AsyncFor, kind: Kind, condition: str) -> None:
        rows = loop_rows(node)
        before = len(self.checks)
        self.block(node.body, worse(kind, "unreachable" if rows == 0 else "real"), condition)
        self.loops.append((before, len(self.checks), node.iter))
        self.block(node.orelse, kind, condition)
        if rows is not None and len(self.checks) > before:
            self.rows = (self.rows or 0) + rows

    def _other(self, node: ast.stmt, kind: Kind, condition: str) -> None:
        """Calls that check, wherever in a statement they stand; and the blocks of statements not named above."""
        if isinstance(node, ast.Assign) and is_anything(opened(node.value, self.helpers, self.open)):
            self.open.update(map(ast.unparse, node.targets))
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[_]) | ast.List(elts=[_])], value=value):
                subject = unparse(value)
                self.checks += as_kind([Check(f"len({subject}) == 1", subject, CLOSE, node.lineno)], kind)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child, kind, condition)
            elif isinstance(child, ast.match_case):
                self.block(child.body, kind, condition)
            elif isinstance(child, ast.expr):
                inner = worse(kind, "unreachable" if self._is_idle(child, node) else "real")
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
                self.checks += as_kind(self._call_checks(renamed), kind)
                return
            if isinstance(call.func, ast.Name) and call.func.id in self.inner:
                continue
            known = self._helper(call)
            if isinstance(known, ast.AsyncFunctionDef) and alone and call is node:
                kind = worse(kind, "unawaited")
            if known is not None:
                if kind == "real" and alone:
                    name = unparse(call.func)
                    self.skips += [
                        Skip(f"{name}'s {s.text}", call.lineno, s.certain)
                        for s in function_skips(known)
                        if not s.text.startswith("os._exit")
                    ]
                self.checks += as_kind(called(_call_as_check(call), self._helper_checks(known)), kind)
                continue
            found = self._call_checks(call, alone=alone and call in (node, getattr(node, "value", None)))
            if found:
                self.checks += as_kind(found, kind)
                return  # the outermost one speaks for the chain

    def _call_checks(self, call: ast.Call, *, alone: bool = False) -> list[Check]:
        meant = opened(call, self.helpers, self.open)
        return call_check(meant, alone=alone) if isinstance(meant, ast.Call) else []

    def _helper(self, call: ast.Call) -> Function | None:
        helper = self.helpers.get(unparse(call.func).rpartition(".")[2])
        return None if helper is self.root else helper

    def _helper_checks(self, helper: Function) -> list[Check]:
        """What a helper checks, as far as helpers are followed."""
        if self.depth >= _MAX_DEPTH:
            return []
        walk = _Walk(helper, self.helpers, self.depth + 1)
        walk.block(helper.body, "real", "")
        return telling(helper, walk.checks)


def _call_as_check(call: ast.Call) -> Check:
    text = unparse(call)
    rank = CLOSE if UNSORTED.search(unparse(call.func)) else EXACT
    return Check(text, unparse(call.args[0]) if call.args else text, rank, call.lineno)


def _calls(node: ast.expr) -> Iterator[ast.Call]:
    """The calls in an expression from the outside in, those in lambdas and comprehensions included."""
    return (child for child in nodes(node) if isinstance(child, ast.Call))
