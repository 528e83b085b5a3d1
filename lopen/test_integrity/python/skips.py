"""What keeps a Python test from running: marks, decorators, calls; and how many rows a parametrisation has."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from copy import copy

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, truth
from lopen.test_integrity.python.names import SKIPPING, Aliases, resolved
from lopen.test_integrity.python.tree import nodes, unparse
from lopen.test_integrity.suite import Skip, words

Function = ast.FunctionDef | ast.AsyncFunctionDef

_GOING_ON = ("pytest.importorskip", "importorskip", "assume(")  # what may skip, and else goes on
_SKIPPING_NAME = re.compile(
    r"(?!.*(?:[wW]in|mac|darwin|pypy))_?(?:skip|xfail|expected_?[fF]ail|quarantine|disable)", re.ASCII
)
_CALLS = frozenset({"skip", "xfail", "skipTest", "importorskip", "exit"})


_NONE: Aliases = {}


def foreign(condition: str, *, unless: bool = False) -> bool:
    """Return True if a skip's condition asks for a platform on which lopen does not run, and so cannot hold here."""
    holds = truth(condition)
    return (ALWAYS - holds if unless else holds) == ELSEWHERE


def decorator_skips(decorators: Sequence[ast.expr], aliases: Aliases) -> tuple[Skip, ...]:
    """The skips among decorators."""
    return tuple(skip for decorator in decorators for skip in _marked(decorator, "@", aliases))


def rebinding_skips(node: ast.stmt, aliases: Aliases) -> tuple[str, tuple[Skip, ...]]:
    """A test or class that a statement puts in a mark (`test_add = later(test_add)`), and the skips of it."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.Call(func=mark, args=[*_, ast.Name(id=marked)])
        ):
            if name == marked:
                return name, tuple(_marked(mark, "", aliases))
    return "", ()


def _marked(node: ast.expr, prefix: str, aliases: Aliases) -> Iterator[Skip]:
    meant = ast.copy_location(copy(resolved(node, aliases)), node)
    yield from _mark(meant, prefix, aliases)


def _mark(node: ast.expr, prefix: str = "", aliases: Aliases = _NONE) -> Iterator[Skip]:
    call = node if isinstance(node, ast.Call) else None
    name = unparse(call.func if call else node)
    last = name.rpartition(".")[2]
    if last not in SKIPPING:
        yield from _marked_rows(call, aliases) if last == "parametrize" and call else ()
        if _SKIPPING_NAME.match(last):
            yield Skip(f"{prefix}{unparse(node)}", node.lineno, False)
        return
    if last in {"skipif", "skipIf", "skipUnless", "xfail"} and call and call.args:
        yield from _conditional(call, prefix + name, unless=last == "skipUnless")
        return
    yield Skip(f"{prefix}{name}", node.lineno)


def _conditional(call: ast.Call, name: str, *, unless: bool) -> Iterator[Skip]:
    condition = call.args[0]
    text = unparse(condition)
    if isinstance(condition, ast.Constant) and not isinstance(condition.value, str):
        if bool(condition.value) is not unless:
            yield Skip(name, call.lineno)
        return
    yield Skip(f"{name} if {text}", call.lineno, not foreign(text, unless=unless))


def _marked_rows(call: ast.Call, aliases: Aliases) -> Iterator[Skip]:
    """`pytest.param(…, marks=pytest.mark.skip)` among the rows, and a table of which a condition takes a part."""
    for table in call.args[1:2]:
        match table:
            case (
                ast.ListComp(generators=[ast.comprehension(ifs=[_, *_])]) | ast.Call(func=ast.Name("filter"))
            ):
                text = f"what `{unparse(table)[:80]}` leaves out of the table"
                yield Skip(text, table.lineno, certain=False)
    for node in nodes(call):
        if isinstance(node, ast.keyword) and node.arg == "marks":
            values = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            for value in values:
                yield from (
                    Skip(f"{s.text} on a row", s.line, s.certain) for s in _marked(value, "", aliases)
                )


def mark_skips(body: Sequence[ast.stmt], aliases: Aliases) -> tuple[Skip, ...]:
    """Skips of a whole module or class: `pytestmark`, and skip calls at its top level."""
    found: list[Skip] = []
    for node in body:
        if isinstance(node, ast.Assign) and unparse(node.targets[0]) == "pytestmark":
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            found += [s for mark in marks for s in _marked(mark, "", aliases)]
        elif isinstance(node, ast.Expr | ast.Raise | ast.Assign):
            found += statement_skips(node, condition="")
        elif isinstance(node, ast.If):
            found += [
                skip
                for child in node.body
                if isinstance(child, ast.Expr | ast.Raise)
                for skip in statement_skips(child, condition=unparse(node.test))
            ]
    return tuple(found)


def function_skips(node: Function) -> tuple[Skip, ...]:
    """The skips of a function that sets up: those that a call of it runs into."""
    return tuple(_block_skips(node.body, ""))


def _block_skips(body: Sequence[ast.stmt], condition: str) -> Iterator[Skip]:
    for node in body:
        yield from statement_skips(node, condition=condition)
        match node:
            case ast.If(test=ast.Constant(value=value)):
                yield from _block_skips(node.body if value else node.orelse, condition)
            case ast.If():
                text = unparse(node.test)
                yield from _block_skips(node.body, text)
                yield from _block_skips(node.orelse, f"not ({text})")
            case ast.Try() | ast.TryStar():
                yield from _block_skips([*node.body, *node.orelse, *node.finalbody], condition)
                for handler in node.handlers:
                    yield from _block_skips(handler.body, "an exception")
            case ast.With() | ast.AsyncWith():
                yield from _block_skips(node.body, condition)
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from _block_skips(node.body, condition or "its loop runs")


PLAIN = words(
    "range zip enumerate sorted reversed list tuple set items values keys product"
)  # what a loop runs over stays the same
_EXAMPLES = 100  # that Hypothesis makes where nobody says another number


def statement_skips(node: ast.stmt, *, condition: str) -> Iterator[Skip]:
    """The skip that a statement is, if it is one; `condition` is the `if` that it stands under."""
    name = _skip_name(node)
    if name and not (condition and name == "os._exit"):  # a forked child's, as a rule
        text = f"{name} if {condition}" if condition else name
        yield Skip(text, node.lineno, not foreign(condition) and not name.startswith("assume("))


def _skip_name(node: ast.stmt) -> str:
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = unparse(raised)
        return f"raise {name}" if name.rpartition(".")[2] in {"SkipTest", "Skipped"} else ""
    value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    if not isinstance(value, ast.Call):
        return ""
    owner, _, last = unparse(value.func).rpartition(".")
    if last == "assume" and owner in {"", "hypothesis"} and value.args:
        return f"assume({unparse(value.args[0])})"
    if last in {"add_marker", "applymarker"} and value.args:
        return next((f"{owner}.{last}({s.text})" for s in _mark(value.args[0])), "")
    if last == "importorskip":
        return unparse(value)
    if (owner, last) == ("os", "_exit"):
        return "os._exit"
    if last == "skipTest" or (last in _CALLS and owner in {"pytest", "self", "unittest"}):
        return f"{owner}.{last}"
    return ""


def row_count(node: Function, looped: int | None) -> int | None:
    """How many times the test runs or loops over literal rows; None where it does neither, or it cannot be read."""
    rows = looped
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and unparse(decorator.func).endswith("parametrize"):
            values = [*decorator.args[1:2], *(k.value for k in decorator.keywords if k.arg == "argvalues")]
            listed = literal_rows(values[0]) if values else None
            if listed is None:
                return None
            rows = (1 if rows is None else rows) * listed
    return _example_count(node.decorator_list) if rows is None else rows


def _example_count(decorators: Sequence[ast.expr]) -> int | None:
    """How many examples Hypothesis makes for a test at most; None for a test that is not its."""
    calls = {unparse(d.func).rpartition(".")[2]: d for d in decorators if isinstance(d, ast.Call)}
    if "given" not in calls:
        return None
    values = [*calls["given"].args, *(k.value for k in calls["given"].keywords)]
    chosen = [_choices(value) for value in values]
    if chosen and all(chosen):
        return math.prod(chosen)
    examples = sum("example" in unparse(d).partition("(")[0] for d in decorators)
    named = calls["settings"].keywords if "settings" in calls else []
    counts = [k.value.value for k in named if k.arg == "max_examples" and isinstance(k.value, ast.Constant)]
    return examples + (counts[0] if counts and isinstance(counts[0], int) else _EXAMPLES)


def _choices(strategy: ast.expr) -> int:
    """How many values a strategy has that spells them out; 0 for another one."""
    if not isinstance(strategy, ast.Call):
        return 0
    name = unparse(strategy.func).rpartition(".")[2]
    listed = strategy.args[0] if name == "sampled_from" and strategy.args else None
    return 1 if name == "just" else len(listed.elts) if isinstance(listed, ast.List | ast.Tuple) else 0


def literal_rows(node: ast.expr) -> int | None:
    """How many rows a literal has that is looped over."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)
    if isinstance(node, ast.Dict):
        return len(node.keys)
    if isinstance(node, ast.Call):
        name = unparse(node.func)
        if name == "range" and len(node.args) == 1 and unparse(node.args[0]) == "0":
            return 0
        if name.endswith((".items", ".values", ".keys")) and isinstance(node.func, ast.Attribute):
            return literal_rows(node.func.value)
        if name in {"enumerate", "iter", "list", "sorted"} and node.args:
            return literal_rows(node.args[0])
    return None


def loop_rows(node: ast.For | ast.AsyncFor) -> int | None:
    """How many literal rows a loop runs over: one where its body ends with what leaves it."""
    rows = literal_rows(node.iter)
    once = rows is not None and isinstance(node.body[-1], ast.Break | ast.Return)
    return min(rows or 0, 1) if once else rows


def leaves(node: ast.stmt) -> bool:
    """Return True if nothing behind the statement in its block runs."""
    if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
        return True
    return any(not skip.text.startswith(_GOING_ON) for skip in statement_skips(node, condition=""))


def gives_up(body: Sequence[ast.stmt]) -> str:
    """The word by which a branch ends the test, or leaves a row of a table out, with nothing checked."""
    match body[-1]:
        case ast.Return(value=None):
            return "return"
        case ast.Continue():
            return "continue"
    return ""


def iterated(iterable: ast.expr) -> Iterator[ast.expr]:
    """What a loop runs over, without `enumerate`, `zip` and their kin around it."""
    if isinstance(iterable, ast.Call) and unparse(iterable.func) in PLAIN and iterable.args:
        for argument in iterable.args:
            yield from iterated(argument)
    else:
        yield iterable


def is_empty(body: Sequence[ast.stmt]) -> bool:
    """Return True if a body does nothing."""
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Return) and (s.value is None or isinstance(s.value, ast.Constant)))
        for s in body
    )
