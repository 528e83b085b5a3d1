"""Python tests that were rewritten so that they ask less: the code gives the expected value, what they call is replaced,
their table is gone, or nothing awaits them any more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from lopen.test_integrity.python.skips import row_count
from lopen.test_integrity.python.stand_ins import imported_names, is_code
from lopen.test_integrity.python.tree import nodes, parsed, unparse
from lopen.test_integrity.suite import EXACT, Case, FileChange, tokens
from lopen.verification.findings import Finding

Function = ast.FunctionDef | ast.AsyncFunctionDef
_AWAITED = re.compile(r"\b(?:asyncio|anyio|trio|tornado|gen_test|async_test|inlineCallbacks|asynctest)\b")
_TABLES = re.compile(r"parametrize|given|subTest|expand\b|\bdata\b|params|table|cases")


def rewritten_findings(
    change: FileChange,
    before: Collection[Case],
    after: Collection[Case],
    written: Mapping[str, Collection[str]],
) -> Iterator[Finding]:
    """Yield a finding for each test of that name on both sides that asks less in one of these ways.

    `written`: names that the same change defines in the code, by the last part of their module's name.
    """
    old, new = parsed(change.before or ""), parsed(change.after or "")
    if old is None or new is None or change.before == change.after:
        return
    imports = {name: module for name, module in imported_names(new).items() if is_code(module)}
    was, now = _functions(old), _functions(new)
    answers = {case.name: case for case in before if not case.support}
    for case in after:
        earlier = answers.get(case.name)
        if earlier is None or case.body == earlier.body:
            continue
        one, other = was.get(case.name), now.get(case.name)
        if one is None or other is None:
            continue
        yield from _not_called(change, earlier, case, written)
        yield from _computed(change, earlier, case, one, other, imports)
        if ".write_" in case.body:
            yield from _written(change, case, one, other)
        if "patch" in case.body or "setattr" in case.body:
            yield from _replaced(change, case.name, one, other, imports)
        yield from _without_table(change, case.name, one, other)
    yield from _unawaited(change, was, now, new)
    yield from _replaced_for_all(change, was, now, written)


def _functions(tree: ast.Module) -> dict[str, Function]:
    """Return the functions of a file, and of its classes, by the names of tests."""
    found: dict[str, Function] = {}
    waiting: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while waiting:
        owner, node = waiting.pop()
        if isinstance(node, Function):
            found[owner + node.name] = node
        elif isinstance(node, ast.ClassDef):
            waiting += [(f"{owner}{node.name}::", inner) for inner in node.body]
    return found


def _not_called(
    change: FileChange, old: Case, new: Case, written: Mapping[str, Collection[str]]
) -> Iterator[Finding]:
    """A method whose result was asserted, and which itself, always true, is now; it may have become a property."""
    was = {check.text for check in old.real}
    for check in new.real:
        owner, _, name = check.text.rpartition(".")
        bare = bool(owner) and check.text == check.subject and check.text not in was
        if bare and f"{check.text}()" in was and not any(name in names for names in written.values()):
            message = f"test {new.name} asserts the method {check.text} itself, which is always true"
            yield Finding("warning", message, change.path, check.line)


def _computed(
    change: FileChange,
    old: Case,
    new: Case,
    former: Function,
    function: Function,
    imports: Mapping[str, str],
) -> Iterator[Finding]:
    """A literal that was expected, and is now what the code under test returns."""
    values = {c.subject: c.text for c in old.real if c.rank == EXACT}
    for check in new.real:
        earlier = values.get(check.subject)
        if earlier is None or check.rank != EXACT:
            continue
        expected, was = _expected(check.text), _expected(earlier)
        if expected is None or was is None or _calls(was := _with_locals(was, former), imports):
            continue
        sources = _calls(_with_locals(expected, function), imports)
        if not sources:
            continue
        tested = {imports[n].partition(".")[0] for n in tokens(unparse(function)) & imports.keys()}
        kept = _constants(_with_locals(expected, function)) & _constants(was)
        if _constants(was) and not kept and tested & {s.partition(".")[0] for s in sources}:
            message = f"test {new.name} expects what the code itself returns: `{unparse(expected)[:80]}`"
            yield Finding("warning", message, change.path, check.line)


def _expected(text: str) -> ast.expr | None:
    """Return the right side of an equality."""
    tree = parsed(text)
    match tree.body if tree else []:
        case [ast.Expr(value=ast.Compare(ops=[ast.Eq(), *_], comparators=[expected, *_]))]:
            return expected
    return None


def _calls(node: ast.expr, imports: Mapping[str, str]) -> set[str]:
    """Return the modules of the functions that an expression calls."""
    roots = (unparse(call.func).partition(".")[0] for call in nodes(node) if isinstance(call, ast.Call))
    return {imports[root] for root in roots if root in imports and not root[0].isupper()}


def _with_locals(node: ast.expr, function: Function) -> ast.expr:
    """Return what a test's own name was given, instead of the name."""
    if not isinstance(node, ast.Name):
        return node
    given = [
        each.value
        for each in function.body
        if isinstance(each, ast.Assign) and [unparse(target) for target in each.targets] == [node.id]
    ]
    return given[-1] if given else node


def _constants(node: ast.expr) -> set[str]:
    return {str(each.value) for each in nodes(node) if isinstance(each, ast.Constant)}


def _written(change: FileChange, case: Case, old: Function, new: Function) -> Iterator[Finding]:
    """A file that the test writes itself with what the code gives, before it compares the two."""
    known = {unparse(node) for node in nodes(old) if isinstance(node, ast.Call)}
    for call in nodes(new):
        match call:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="write_text" | "write_bytes"), args=[value, *_]
            ) if unparse(call) not in known and any(isinstance(n, ast.Call | ast.Name) for n in nodes(value)):
                place, given = unparse(owner), unparse(value)
                if any(f"{place}.read" in check.text and given in check.text for check in case.real):
                    message = f"test {case.name} writes what it compares with: `{unparse(call)[:80]}`"
                    yield Finding("error", message, change.path, call.lineno)


def _replaced(
    change: FileChange, name: str, old: Function, new: Function, imports: Mapping[str, str]
) -> Iterator[Finding]:
    """What a test called before and calls now, and replaces itself first."""
    known = {target for target, _ in _patched(old)}
    called = [call.func for call in nodes(old) if isinstance(call, ast.Call)]
    written = {unparse(call.func) for call in nodes(new) if isinstance(call, ast.Call)}
    own = change.path.removesuffix(".py").replace("/", ".")
    for target, line in _patched(new):
        if target in known:
            continue
        owner, _, last = target.rpartition(".")
        place = owner.rpartition(".")[2]
        plain = any(isinstance(f, ast.Name) and f.id == last for f in called) and last in imports
        member = any(
            isinstance(f, ast.Attribute)
            and f.attr == last
            and place in imports
            and (place[0].isupper() or unparse(f.value).rpartition(".")[2] == place)
            for f in called
        )
        plain = plain and (owner == "__name__" or own.endswith(owner) or target in written)
        if member or plain:
            message = f"test {name} replaces what it tests: {target}"
            yield Finding("error" if plain else "warning", message, change.path, line)


def _replaced_for_all(
    change: FileChange,
    old: Mapping[str, Function],
    new: Mapping[str, Function],
    written: Mapping[str, Collection[str]],
) -> Iterator[Finding]:
    """What the change writes, and a fixture that every test uses replaces."""
    for name, function in new.items():
        if not any("autouse=True" in unparse(d) for d in function.decorator_list):
            continue
        known = {target for target, _ in _patched(old[name])} if name in old else set()
        for target, line in _patched(function):
            owner, _, last = target.rpartition(".")
            if target not in known and last in written.get(owner.rpartition(".")[2], ()):
                message = f"the fixture {name} replaces {target} for all tests: they do not test it"
                yield Finding("warning", message, change.path, line)


def _patched(function: Function) -> Iterator[tuple[str, int]]:
    """Yield what a test has replaced for itself, as `owner.name`."""
    for call in nodes(function):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        means = unparse(call.func)
        match call.args:
            case [ast.Constant(value=str(target)), *_] if means.endswith(("patch", "setattr")):
                yield target, call.lineno
            case [ast.BinOp(left=ast.Name(id="__name__"), right=ast.Constant(value=str(rest))), *_]:
                yield f"__name__{rest}", call.lineno
            case [owner, ast.Constant(value=str(attr)), *_] if means.endswith(("patch.object", "setattr")):
                yield f"{unparse(owner)}.{attr}", call.lineno


def _without_table(change: FileChange, name: str, old: Function, new: Function) -> Iterator[Finding]:
    """A test that ran for each row of a table, or for examples of Hypothesis, and runs once, without its values."""
    rows = row_count(old, None)
    marks = [unparse(d) for d in new.decorator_list]
    if rows is None or rows < 2 or any(map(_TABLES.search, marks)):
        return
    given = {a.arg for a in new.args.args} - {a.arg for a in old.args.args}
    loops = any(isinstance(n, ast.For | ast.While | ast.comprehension) for n in nodes(new))
    values = {v for d in old.decorator_list if _TABLES.search(unparse(d)) for v in _constants(d)}
    kept = {v for v in values if v in (change.after or "")}
    if not given and not loops and not _TABLES.search(unparse(new)) and 2 * len(kept) <= len(values):
        message = f"test {name} runs once where it ran for {rows} rows"
        yield Finding("warning", message, change.path, new.lineno)


def _unawaited(
    change: FileChange, old: Mapping[str, Function], new: Mapping[str, Function], tree: ast.Module
) -> Iterator[Finding]:
    """A coroutine that lost the mark by which it is awaited, where other tests of the file need theirs."""
    marks = [
        unparse(node)
        for node in nodes(tree)
        if isinstance(node, ast.Assign) and unparse(node.targets[0]) == "pytestmark"
    ]
    marks += [unparse(d) for n in nodes(tree) if isinstance(n, ast.ClassDef) for d in n.decorator_list]
    if any(map(_AWAITED.search, marks)) or "TestCase" in (change.after or ""):
        return
    for name, function in new.items():
        if not isinstance(function, ast.AsyncFunctionDef) or not isinstance(old.get(name), ast.FunctionDef):
            continue
        waits = any(isinstance(n, ast.Await | ast.AsyncFor | ast.AsyncWith) for n in nodes(function))
        if name.rpartition("::")[2].startswith("test") and not waits and not _is_awaited(function):
            message = f"test {name} is a coroutine now, and awaits nothing: a runner may not run its body"
            yield Finding("warning", message, change.path, function.lineno)
    if not any(map(_is_awaited, new.values())):
        return
    for name, function in new.items():
        lost = name in old and _is_awaited(old[name]) and not _is_awaited(function)
        if isinstance(function, ast.AsyncFunctionDef) and lost:
            message = f"test {name} lost the mark by which its coroutine is awaited"
            yield Finding("warning", message, change.path, function.lineno)


def _is_awaited(function: Function) -> bool:
    return any(_AWAITED.search(unparse(d)) for d in function.decorator_list)
