"""How much one Python assertion pins down."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace

from lopen.test_integrity.python.tree import nodes, unparse
from lopen.test_integrity.python.truth import is_anything, is_truthy
from lopen.test_integrity.suite import (
    CLOSE,
    EXACT,
    LOOSE,
    PARTIAL,
    PRESENT,
    ROUNDING,
    Check,
    tolerance,
    words,
)

_UNITTEST = {
    "assertAlmostEqual": EXACT,
    "assertIs": EXACT,
    "assertIsNone": EXACT,
    "assertRaisesRegex": EXACT,
    "assertCountEqual": CLOSE,
    "assertRaises": CLOSE,
    "assertWarns": CLOSE,
    "assertLogs": CLOSE,
    "assertTrue": LOOSE,
    "assertFalse": LOOSE,
    "assertNotEqual": LOOSE,
    "assertNotEquals": LOOSE,
    "assertNotAlmostEqual": LOOSE,
    "assertItemsEqual": CLOSE,
    "assertNotIn": LOOSE,
    "assertIsNot": LOOSE,
    "assertIsInstance": LOOSE,
    "assertNotIsInstance": LOOSE,
    "assertIsNotNone": PRESENT,
    "assert_called_once_with": EXACT,
    "assert_has_calls": CLOSE,
    "assert_called_with": CLOSE,
    "assert_any_call": PARTIAL,
    "assert_called": LOOSE,
    "assert_called_once": CLOSE,
    "assert_awaited_once_with": EXACT,
    "assert_has_awaits": CLOSE,
    "assert_awaited_with": CLOSE,
    "assert_any_await": PARTIAL,
    "assert_awaited_once": CLOSE,
    "assert_awaited": LOOSE,
}
_EQUALS = re.compile(r"^assert\w*Equals?$|^assert_(?:array_|frame_|series_)?equal$")
_CHECKING = re.compile(r"^(?:_|[a-z]+_)?assert|^fail$")
_PERHAPS_CHECKING = re.compile(r"^_?(?:check|verify|expect|ensure)(?:_|[A-Z]|$)")
_RAISING = frozenset(
    [
        "raises",
        "RaisesGroup",
        "RaisesExc",
        "warns",
        "deprecated_call",
        "assertRaises",
        "assertRaisesRegex",
        "assertRaisesRegexp",
        "assertRaisesMessage",
        "assertWarns",
        "assertWarnsRegex",
        "assertWarnsMessage",
        "assertLogs",
    ]
)
_LONGEST_PATTERN = 500
_ANYTHING = frozenset({"Exception", "BaseException"})
UNSORTED = re.compile(r"CountEqual|[sS]orted|[uU]nordered|Same(?:Elements|Items)")
_EMPTY = frozenset({"[]", "{}", "()", "''", "set()"})
_UNORDERED = words("set frozenset sorted Counter collections.Counter")
_NEEDLES = words("startswith endswith search match fullmatch issubset issuperset")
_SHAPES = words("shape dtype ndim __class__")  # of a value, which many values share
_PINNING = words("count status_code target_status_code exact check_exact")
_LENIENT = {  # what a keyword's value leaves open
    "True": words("any_order check_like equal_nan ignore_order"),
    "False": words(
        "check_dtype check_names check_index check_index_type ordered strict fetch_redirect_response"
    ),
}
_OPERATORS = {ast.NotEq: LOOSE, ast.NotIn: LOOSE, ast.Eq: EXACT, ast.Is: EXACT}


def expression_checks(node: ast.expr, *, line: int | None = None) -> list[Check]:
    """The checks in an asserted expression; `a and b` are two."""
    at = node.lineno if line is None else line
    if is_truthy(node) is True:
        return [Check(unparse(node), "", 0, at, "vacuous")]
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [check for value in node.values for check in expression_checks(value, line=at)]
    subject, rank = _subject_and_rank(node)
    return [Check(unparse(node), subject, rank, at)]


def _subject_and_rank(node: ast.expr) -> tuple[str, int]:
    match node:
        case ast.Compare(ops=[operator], comparators=[right]):
            return _compared(node.left, operator, right)
        case ast.Compare():
            return unparse(node.comparators[0]), PARTIAL
        case ast.UnaryOp(op=ast.Not()):
            return unparse(node.operand), LOOSE
        case ast.BoolOp():
            return unparse(node.values[0]), min(_subject_and_rank(value)[1] for value in node.values) - 1
        case ast.Call() if unparse(node.func) == "isinstance" and node.args:
            return unparse(node.args[0]), LOOSE
        case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[first, *_] as given) if (
            attr in _NEEDLES
        ):
            subject = given[-1] if unparse(owner) == "re" else owner
            return unparse(subject), PRESENT if _matches_all(first) else PARTIAL
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp() | ast.ListComp() as each]):
            return _subject_and_rank(each.elt)
        case ast.Call() if unparse(node.func) in {"all", "any"} and node.args:
            return unparse(node.args[0]), PARTIAL if unparse(node.func) == "all" else PRESENT
        case _:
            return unparse(node), LOOSE


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> tuple[str, int]:
    if isinstance(left, ast.Constant):
        left, right = right, left
    subject, other = unparse(left), unparse(right)
    if subject == other:
        return subject, PRESENT  # equal to what it says itself: at most that it says so twice
    if isinstance(operator, ast.IsNot | ast.NotEq) and other == "None":
        return subject, PRESENT
    if other in {"True", "False"}:
        return subject, LOOSE  # the same as asserting it or its opposite
    if isinstance(operator, ast.In) and isinstance(left, ast.Constant):
        return other, PARTIAL if left.value else PRESENT  # every text has the empty one, a mapping need not
    if isinstance(left, ast.Attribute) and left.attr in _SHAPES:
        return unparse(left.value), CLOSE
    if isinstance(left, ast.Call) and unparse(left.func) == "type" and len(left.args) == 1:
        return unparse(left.args[0]), LOOSE
    if (
        isinstance(left, ast.Call)
        and len(left.args) == 1
        and ((name := unparse(left.func)) in _UNORDERED or name.rpartition(".")[2] in _SHAPES)
    ):
        return unparse(left.args[0]), CLOSE
    if isinstance(left, ast.Call) and _falls_back(left, other):
        return subject, PRESENT
    if isinstance(left, ast.Call) and unparse(left.func) == "len" and other == "0":
        return unparse(left.args[0]) if left.args else subject, LOOSE
    if isinstance(operator, ast.Eq) and other in _EMPTY:
        return subject, LOOSE  # the same as asserting the opposite, but for the type
    if subject.endswith((".count()", ".call_count", ".await_count")) and isinstance(operator, ast.Eq):
        return subject, CLOSE
    if isinstance(left, ast.Call) and unparse(left.func) == "len" and isinstance(operator, ast.Eq):
        return unparse(left.args[0]) if left.args else subject, CLOSE
    rank = next((r for kind, r in _OPERATORS.items() if isinstance(operator, kind)), PARTIAL)
    if "approx(" in other and (tolerance(other) or 0) > ROUNDING:
        rank = min(rank, CLOSE)
    return subject, min(rank, _open_rank(right))


def _falls_back(call: ast.Call, expected: str) -> bool:
    """Return True for `data.get("name", "x") == "x"`: what is not there is taken for what is expected."""
    name = unparse(call.func).rpartition(".")[2]
    default = call.args[-1] if call.args else None
    return (
        name in {"get", "getattr", "pop", "getenv"}
        and len(call.args) > 1
        and unparse(default or call) == expected
    )


def _open_rank(expected: ast.expr) -> int:
    """How much an expected value pins down that leaves parts of itself open."""
    match expected:
        case ast.Call(func=ast.Name(id="snapshot") | ast.Attribute(attr="snapshot"), args=[], keywords=[]):
            return PRESENT  # the run writes it
    leaves = (
        [n for n in nodes(expected) if isinstance(n, ast.Constant | ast.Name | ast.Attribute)]
        if "ANY" in unparse(expected)
        else []
    )
    if not any(map(is_anything, leaves)):
        return EXACT
    values = expected.values if isinstance(expected, ast.Dict) else getattr(expected, "elts", leaves)
    return LOOSE if all(map(is_anything, values)) else PARTIAL


def call_check(call: ast.Call, *, alone: bool = False) -> list[Check]:
    """The checks that a call is, judged by its name; none for a call that does not check.

    `alone`: nothing is done with what it returns, so that `check_total(x)` is taken for a helper that asserts.
    """
    name = unparse(call.func).rpartition(".")[2]
    arguments = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
    if name in {"assertTrue", "assert_", "assertFalse"} and arguments:
        return _boolean(arguments[0], call.lineno, wanted=name != "assertFalse")
    if _EQUALS.match(name) and "Not" not in name and len(arguments) >= 2:
        return _equal(arguments[0], arguments[1], call)
    if name in {"assertIn", "assertNotIn"} and len(arguments) >= 2:
        sign = ast.In() if name == "assertIn" else ast.NotIn()
        contained = ast.copy_location(ast.Compare(arguments[0], [sign], [arguments[1]]), call)
        return expression_checks(contained, line=call.lineno)
    if name in _RAISING and arguments:
        if (
            alone
            and len(arguments) == 1 + name.endswith(_WITH_PATTERN)
            and unparse(call.func).rpartition(".")[0] in {"self", "pytest"}
        ):
            return [Check(unparse(call), "", 0, call.lineno, "vacuous")]  # a context that nothing enters
        return [_raising(call, name)]
    if name in {"assertIsNotNone", "assertIsNone"} and arguments and isinstance(arguments[0], ast.Constant):
        return [Check(unparse(call), "", 0, call.lineno, "vacuous")]
    if name in _UNITTEST or _CHECKING.match(name) or (alone and _PERHAPS_CHECKING.match(name)):
        subject = unparse(arguments[0]) if arguments and "ueries" not in name else unparse(call.func)
        given = [*arguments, *(keyword.value for keyword in call.keywords)]
        anything = [value for value in given if is_anything(value)]
        rank = _pinned(call, _rank(name)) if not anything else LOOSE if anything == given else PARTIAL
        empty = name.startswith("assert") and "Not" not in name and _has_empty_needle(name, arguments)
        return [
            Check(unparse(call), "" if empty else subject, rank, call.lineno, "vacuous" if empty else "real")
        ]
    return []


def _has_empty_needle(name: str, arguments: Sequence[ast.expr]) -> bool:
    """Return True if all that an assertion looks for is nothing: every text has it."""
    at = {"assertIn": 0, "assertContains": 1, "assertRegex": 1, "assertRegexpMatches": 1}.get(name)
    return at is not None and at < len(arguments) and unparse(arguments[at]).lstrip("rb") in {"''", "'.*'"}


def _pinned(call: ast.Call, rank: int) -> int:
    """The rank of an assertion with what its keywords ask for besides, or leave open."""
    for keyword in call.keywords:
        if keyword.arg in _PINNING and rank < EXACT:
            return rank + 1
        if keyword.arg in _LENIENT.get(unparse(keyword.value), ()):
            return max(rank - 1, PRESENT)
    return rank


def _rank(name: str) -> int:
    """A helper with a name of its own is given the benefit of the doubt."""
    return _UNITTEST.get(name, PARTIAL if re.match(r"assert[A-Z]|fail$", name) else EXACT)


def _boolean(argument: ast.expr, line: int, *, wanted: bool) -> list[Check]:
    node = argument if wanted else ast.copy_location(ast.UnaryOp(ast.Not(), argument), argument)
    return expression_checks(node, line=line)


def _equal(left: ast.expr, right: ast.expr, call: ast.Call) -> list[Check]:
    """Written as the comparison it is, so that a rewriting from unittest to pytest compares equal."""
    node = ast.copy_location(ast.Compare(left, [ast.Eq()], [right]), call)
    found = expression_checks(node, line=call.lineno)
    if UNSORTED.search(unparse(call.func)):
        return [replace(check, rank=min(check.rank, CLOSE)) for check in found]
    open_by = ", ".join(unparse(k) for k in call.keywords if k.arg not in {"msg", "err_msg", "verbose"})
    if unparse(call.func).endswith("assertAlmostEqual") and isinstance(
        (places := (*call.args, None)[2:][0]), ast.Constant
    ):
        open_by = f"places={places.value!r}"
    if not open_by or found[0].kind != "real":
        return found
    rank = min(_pinned(call, found[0].rank), CLOSE if (tolerance(open_by) or 0) > ROUNDING else EXACT)
    return [replace(found[0], text=f"{found[0].text} ({open_by})", rank=rank)]


_WITH_PATTERN = ("Regex", "Regexp", "Message")


def _matches_all(pattern: ast.expr) -> bool:
    """Return True for a pattern that the empty text matches, and so any, or any text but that."""
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
        return False
    if pattern.value.strip("^$") in {".", ".+"}:
        return True
    with contextlib.suppress(re.error, RecursionError, OverflowError):
        return len(pattern.value) <= _LONGEST_PATTERN and re.search(pattern.value, "") is not None
    return False


def _raising(call: ast.Call, name: str) -> Check:
    expected = unparse(call.args[0]) if call.args else ""
    patterns = [k.value for k in call.keywords if k.arg == "match"]
    patterns += call.args[1:2] if name.endswith(_WITH_PATTERN) else []
    matched = any(not _matches_all(pattern) for pattern in patterns)
    anything = bool(set(re.findall(r"\w+", expected)) & _ANYTHING)
    rank = EXACT if matched else CLOSE
    context = ast.Call(call.func, call.args[: 1 + name.endswith(_WITH_PATTERN)], call.keywords)
    text = unparse(context)  # without what is called and its arguments, where both stand behind
    return Check(text, "an exception", PRESENT if anything and not matched else rank, call.lineno)
