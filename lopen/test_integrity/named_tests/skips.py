"""What keeps a test of C#, Kotlin, Ruby, PHP, C or C++ from running: marks, calls, an early end, the preprocessor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import (
    ALWAYS,
    ELSEWHERE,
    ENVIRONMENT,
    NEVER,
    OPEN,
    split_arguments,
    truth,
)
from lopen.test_integrity.named_tests.tables import Table
from lopen.test_integrity.suite import Skip
from lopen.test_integrity.syntax import ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_CONDITIONAL = frozenset({"if_statement", "if", "unless", "if_modifier", "unless_modifier", "if_expression"})
_LEAVING = frozenset(
    {"return_statement", "return_expression", "return", "jump_expression", "throw_statement"}
)
_INNER_BLOCKS = frozenset(
    {"block", "statements", "body_statement", "function_body", "annotated_lambda", "lambda_literal"}
)
_DIRECTIVES = frozenset({"preproc_if", "preproc_ifdef"})
_ASKING = re.compile(
    r"^assume(?:True|False)$|^Skip\.If(?:Not)?$|^Assume\.That$|^Assert\.Skip(?:When|Unless)$"
)
_USUAL = re.compile(r"^(?:defined\()?(?:_*linux_*|_*unix_*|_*GNUC_*|__cplusplus|N?DEBUG|NET\w*|RELEASE)\)?$")


def marks(table: Table, head: str) -> list[str]:
    return [" ".join(found.group().strip(" ,[]").split())[:80] for found in re.finditer(table.skipped, head)]


def calls(source: ParsedFile, table: Table, body: Node | None) -> Iterator[Skip]:
    """The calls in a body that skip its test, each with the condition that it stands under."""
    if body is None:
        return
    pattern = re.compile(table.skips.encode(), re.MULTILINE)
    for found in pattern.finditer(source.code, body.start_byte, body.end_byte):
        at = found.start() + len(found.group()) - len(found.group().lstrip())
        node = source.root.descendant_for_byte_range(at, at + 1)
        if node is not None and node.start_byte >= body.start_byte:
            name = " ".join(found.group().decode("utf-8", "replace").rstrip("( )").split())
            if _ASKING.search(name):
                yield from _assumed(source, name, node, found.end())
            else:
                yield from conditional(source, name, node, body)


def _assumed(source: ParsedFile, name: str, node: Node, start: int) -> Iterator[Skip]:
    """A call that skips where its first argument does not hold (or does)."""
    rest = source.span(start, min(start + 1000, len(source.text)))
    asked = (split_arguments(_to_closing(rest)) or [""])[0]
    wanted = not re.search(r"False$|\bIf$|When$", name)
    holds = truth(asked)
    skipped = ALWAYS - holds if wanted else holds
    if skipped != NEVER:
        condition = f"not ({asked})" if wanted else asked
        yield Skip(
            f"{name} if {condition}" if skipped != ALWAYS else name, source.line(node), skipped != ELSEWHERE
        )


def _to_closing(text: str) -> str:
    """What stands before the bracket that closes one opened before the text."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return text[:at]
    return text


def left_early(source: ParsedFile, body: Node | None) -> Iterator[Skip]:
    """A statement of the body itself that leaves it before its last one."""
    while body is not None and body.named_child_count == 1 and body.named_children[0].type in _INNER_BLOCKS:
        body = body.named_children[0]
    for statement in body.named_children[:-1] if body is not None else ():
        text = source.of(statement)
        asks = ENVIRONMENT.search(text) and statement.type in _CONDITIONAL
        if asks and re.search(r"\b(?:return|next)\b", text) and len(text) < 200:
            yield Skip(text, source.line(statement))
            return
        if statement.type in _LEAVING or text.startswith("Assert.Pass("):
            yield Skip(source.of(statement)[:60].rstrip("; "), source.line(statement))
            return


def conditional(source: ParsedFile, name: str, node: Node, body: Node) -> Iterator[Skip]:
    line = source.line(node)
    for parent in ancestors(node):
        if parent.start_byte < body.start_byte:
            break
        if parent.type in _DIRECTIVES:
            asked = parent.child_by_field_name("name") or parent.child_by_field_name("condition")
            yield Skip(f"{name} if {source.of(asked)}", line, bool(_USUAL.match(source.of(asked))))
            return
        if parent.type in _CONDITIONAL:
            condition = source.of(parent.child_by_field_name("condition"))
            holds = truth(condition)
            if parent.type.startswith("unless"):
                holds, condition = ALWAYS - holds, f"not ({condition})"
            if holds != NEVER:
                yield Skip(f"{name} if {condition}" if holds != ALWAYS else name, line, holds != ELSEWHERE)
            return
    yield Skip(name, line)


def under_condition(source: ParsedFile, node: Node) -> Iterator[Skip]:
    """The conditions that a test's declaration itself stands under (Ruby)."""
    for each in ancestors(node) if source.language == "ruby" else ():
        if each.type in _CONDITIONAL:
            condition = source.of(each.child_by_field_name("condition"))
            holds = ALWAYS - truth(condition) if each.type.startswith("unless") else truth(condition)
            if holds == NEVER or (holds == OPEN and ENVIRONMENT.search(condition)):
                yield Skip(f"{each.type.partition('_')[0]} {condition}", source.line(each))


def left_out(source: ParsedFile, node: Node) -> Iterator[Skip]:
    """The preprocessor's conditions around a test, where they ask for a name that nothing may define."""
    for each in ancestors(node):
        if each.type == "preproc_if":
            condition = source.of(each.child_by_field_name("condition"))
        elif each.type == "preproc_ifdef" and source.of(each).startswith("#ifdef"):
            condition = source.of(each.child_by_field_name("name"))
        else:
            continue
        holds = truth(condition)
        if holds == NEVER:
            yield Skip(f"#if {condition}", source.line(each))
        elif holds < ALWAYS and not condition.startswith("!") and not _USUAL.match(condition):
            yield Skip(f"#if {condition}", source.line(each), certain=False)
