"""The negative control: every function that a change adds or rewrites fails at its start, and the tests are to notice it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lopen.verification.mutants import changed_functions, language_of
from lopen.verification.syntax import COMMENTS, ParsedFile
from lopen.verification.test_files import FileChange, words

if TYPE_CHECKING:
    from lopen.verification.syntax import Node

_SCRIPT = 'throw new Error("lopen: negative control"); '
_NATIVE = "__builtin_trap(); "
# Behind an `if`, where a compiler refuses code that cannot be reached
FAILURE = {
    "python": 'raise RuntimeError("lopen: negative control")',
    "javascript": _SCRIPT,
    "typescript": f"if (true as boolean) {_SCRIPT}",
    "tsx": f"if (true as boolean) {_SCRIPT}",
    "go": ' if true { panic("lopen: negative control") }; ',
    "rust": ' if true { panic!("lopen: negative control"); } ',
    "java": ' if (true) throw new RuntimeException("lopen: negative control"); ',
    "c": _NATIVE,
    "cpp": _NATIVE,
}
_IN_ARROW = '(() => { throw new Error("lopen: negative control"); })() || '
_BODIES = words("block statement_block compound_statement constructor_body")
_NOTHING = re.compile(
    r"(?:pass|\.\.\.|raise NotImplementedError\b[^\n]*|return NotImplemented|todo!?_?\(\)|unimplemented!?_?\(\)|[{}\s;])*"
)
# Only the lines that a compiler or its build tool writes: output of a test or the program must not look like one
_COMPILER = {
    "go": r"^FAIL[\t ]+\S+ \[(?:build|setup) failed\]\s*$",
    "rust": r"^error\[E\d+\]: |^error: could not compile `",
    "java": r"^\[ERROR\] COMPILATION ERROR|^> Compilation failed; see the compiler|^> Task :(?:\S+:)?compile\w*Java FAILED"
    r"|^[ \t]*(?:\[javac\] )?\S+\.java:\d+: error: ",
    "typescript": r"^[^\n]*\.[cm]?tsx?(?:\(\d+,\d+\):|:\d+:\d+ -) error TS\d+: |^(?:error: )?TS\d+ \[ERROR\]: ",
    "c": r"^\S+\.\w+:\d+:\d+: (?:fatal )?error: ",
}
_COMPILER |= {"tsx": _COMPILER["typescript"], "cpp": _COMPILER["c"]}
_COLOUR = re.compile(r"\x1b\[[\d;]*m")

Edit = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class NegativeControl:
    """The edits that break the changed functions, by path, and the functions as `path:line`."""

    edits: Mapping[str, Edit]
    broken: tuple[str, ...]


def negative_control(changes: Sequence[FileChange]) -> NegativeControl:
    """Return the edits that make every added or changed function fail at its start; none where there is no function."""
    edits: dict[str, Edit] = {}
    broken: list[str] = []
    for change in changes:
        insertions: dict[int, bytes] = {}
        for parsed, function in changed_functions(change):
            place = _insertion(parsed, function)
            if place is not None:
                insertions[place[0]] = place[1].encode()
                broken.append(f"{change.path}:{parsed.text.count(bytes([10]), 0, function.start_byte) + 1}")
        if insertions:
            edits[change.path] = partial(_inserted, insertions=insertions)
    return NegativeControl(edits, tuple(broken))


def did_not_compile(path: str, output: str) -> bool:
    """Return True if a run failed because a compiler refused an edit of the file: then no test noticed anything."""
    pattern = _COMPILER.get(language_of(path) or "")
    return pattern is not None and re.search(pattern, _COLOUR.sub("", output), re.MULTILINE) is not None


def _insertion(parsed: ParsedFile, function: Node) -> tuple[int, str] | None:
    """Return where a function is to fail, and by which text; None where there is nothing in it to break."""
    failure = FAILURE[parsed.language]
    body = function.child_by_field_name("body")
    if body is None:
        body = next((child for child in function.named_children if child.type in _BODIES), None)
    if body is None:
        return None
    statements = [child for child in body.named_children if child.type not in COMMENTS]
    if parsed.language == "python":
        return _in_python(parsed, body, statements, failure)
    if function.type == "arrow_function" and body.type != "statement_block":
        return body.start_byte, _IN_ARROW
    if _NOTHING.fullmatch(parsed.of(body)):
        return None
    if parsed.text[body.start_byte : body.start_byte + 1] != b"{":
        return None
    if statements and statements[0].type == "explicit_constructor_invocation":
        return statements[0].end_byte, failure
    return body.start_byte + 1, failure


def _in_python(
    parsed: ParsedFile, body: Node, statements: Sequence[Node], failure: str
) -> tuple[int, str] | None:
    if body.type != "block":
        return None  # a lambda
    first = statements[0] if statements else None
    if (
        first is not None
        and first.type == "expression_statement"
        and first.named_children[0].type == "string"
    ):
        statements = statements[1:]
    code = " ".join(parsed.of(each) for each in statements)
    if not statements or _NOTHING.fullmatch(code):
        return None
    return statements[0].start_byte, f"{failure}; " if _is_simple(statements[0]) else _own_line(
        parsed, statements[0], failure
    )


def _is_simple(statement: Node) -> bool:
    return statement.start_point[0] == statement.end_point[0] and not statement.child_by_field_name("body")


def _own_line(parsed: ParsedFile, statement: Node, failure: str) -> str:
    start = statement.start_byte
    indent = parsed.source(parsed.text.rfind(b"\n", 0, start) + 1, start)
    return f"{failure}\n{indent}"


def _inserted(content: bytes, insertions: Mapping[int, bytes]) -> bytes:
    """Return the content with the insertions, the last one first."""
    for place in sorted(insertions, reverse=True):
        content = content[:place] + insertions[place] + content[place:]
    return content
