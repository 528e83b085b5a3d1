"""What a mutant's result is held against (docs/reference/mutation.md): an edit of the text that changes no behaviour, and
the refusal of a mutant by its compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from lopen.test_integrity.mutants import changed_functions, language_of
from lopen.test_integrity.suite import FileChange
from lopen.test_integrity.syntax import ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

# A local name that linters do not call unused; in Python a comment would leave syntax tree and byte code as they were.
# The operators, none of which runs, are there for tests that count them.
_UNUSED = (
    "__traceback_info__ = 0",
    *(
        f"__traceback_info__ = __traceback_info__ and __traceback_info__ {sign} 1"
        for sign in ("+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=")
    ),
    "__traceback_info__ = __traceback_info__ and not __traceback_info__",
)
_SIMPLE = re.compile(r"(?:_statement|_declaration|assignment)$")

# Only the lines that a compiler or its build tool writes: what a test or the program prints must not look like one
_COMPILER = {
    "go": r"^FAIL[\t ]+\S+ \[(?:build|setup) failed\]\s*$",
    "rust": r"^error\[E\d+\]: |^error: could not compile `",
    "java": r"^\[ERROR\] COMPILATION ERROR|^> Compilation failed; see the compiler|^> Task :(?:\S+:)?compile\w*Java FAILED"
    r"|^[ \t]*(?:\[javac\] )?\S+\.java:\d+: error: ",
    "typescript": r"^[^\n]*\.[cm]?tsx?(?:\(\d+,\d+\):|:\d+:\d+ -) error TS\d+: |^(?:error: )?TS\d+ \[ERROR\]: ",
}
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_COMPILER["tsx"] = _COMPILER["typescript"]


@cache
def _compiler(language: str) -> re.Pattern[str] | None:
    pattern = _COMPILER.get(language)
    return re.compile(pattern, re.MULTILINE) if pattern else None


def did_not_compile(path: str, output: str) -> bool:
    """Return whether a run failed because its compiler refused the mutant: then the tests have noticed nothing."""
    pattern = _compiler(language_of(path, product=True) or "")
    return pattern is not None and pattern.search(_COLOUR.sub("", output)) is not None


def neutral_edit(change: FileChange) -> dict[int, bytes]:
    """Return what is to be inserted at which byte so that text, syntax and byte code change, and no behaviour does.

    Each function that has mutants gets statements or a comment, and a comment at the end of each simple line. A test that
    fails then reads the code itself.
    """
    found: dict[int, bytes] = {}
    for parsed, function in changed_functions(change, product=True):
        found |= {place: _mark(parsed) for place in _line_ends(parsed, function)}
        found |= dict(_insertion(parsed, function))
    return found


def one_line_edit(change: FileChange) -> dict[int, bytes]:
    """Return a comment at the end of one line: for a test that counts changed lines, what a mutant is."""
    for parsed, function in changed_functions(change, product=True):
        for place in _line_ends(parsed, function):
            return {place: _mark(parsed)}
    return {}


def _mark(parsed: ParsedFile) -> bytes:
    return b"  #" if parsed.language == "python" else b" //"


def _line_ends(parsed: ParsedFile, node: Node) -> Iterator[int]:
    """Yield where the lines end on which a statement, but for a docstring, stands by itself."""
    for child in node.named_children:
        if child.start_point[0] != child.end_point[0] or not _SIMPLE.search(child.type):
            yield from _line_ends(parsed, child)
        elif child.named_child_count and child.named_children[0].type != "string":
            end = parsed.text.find(b"\n", child.end_byte)
            rest = parsed.text[child.end_byte : end] if end >= 0 else b"?"
            if rest in (b"", b";"):
                yield child.end_byte + len(rest)


def _insertion(parsed: ParsedFile, function: Node) -> Iterator[tuple[int, bytes]]:
    body = function.child_by_field_name("body")
    if body is None or body.type not in {"block", "statement_block", "function_body", "constructor_body"}:
        return
    python = parsed.language == "python"
    statements = [node for node in body.named_children if python or "comment" not in node.type]
    if python and statements and statements[0].type == "expression_statement":
        statements = statements[1:] if statements[0].named_children[0].type == "string" else statements
    if not statements:
        return
    start = statements[0].start_byte
    before = parsed.text[parsed.text.rfind(b"\n", 0, start) + 1 : start]
    if not before.strip():
        lines = _UNUSED if python else ("// changes nothing",)
        yield start, b"".join(line.encode() + b"\n" + before for line in lines)
    else:
        yield start, f"{'; '.join(_UNUSED)}; ".encode() if python else b"/* changes nothing */ "


def inserted(content: bytes, insertions: Mapping[int, bytes]) -> bytes:
    """Return the content with the insertions, the last one first."""
    for place in sorted(insertions, reverse=True):
        content = content[:place] + insertions[place] + content[place:]
    return content
