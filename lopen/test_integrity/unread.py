"""Changed files that lopen cannot read as the compiler does: nested too deeply, too large, in an encoding of their own.

What cannot be read cannot be compared. A test that becomes too large or too deep is an error: whoever writes it can write
it so that it is read. Valid syntax that a grammar does not know is a warning (docs/reference/completion.md).
"""

from __future__ import annotations

import codecs
import re
import sys
import tokenize
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lopen.test_integrity.python.tree import DEEPEST, parse_quietly, parsed
from lopen.test_integrity.suite import FileChange
from lopen.test_integrity.syntax import parsed_file
from lopen.verification.findings import Finding, Severity

MAX_CHARS = 300_000  # a larger file is data or generated; its tests are not read
_GRAMMARS = {
    "py": "python",
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    "cs": "csharp",
    "kt": "kotlin",
    "rb": "ruby",
    "php": "php",
}
_UNKNOWN = "its syntax is not understood"
_DATA = re.compile(  # files that tests read, and that may be broken on purpose
    r"(?:^|/)(?:tests?|spec|__tests__)/(?:.*/)?(?:data|fixtures?|resources|samples?|cases|inputs?)/"
    r"|(?:^|/)(?:test_?data|__fixtures__)/"
)
_INLINE_TESTS = re.compile(r"^\s*#\[(?:\w+::)*test\b|#\[cfg\(test\)\]", re.MULTILINE)
_UNICODE = frozenset({"utf-8", "utf-8-sig", "ascii"})
_SINGLE_BYTE = re.compile(r"cp(?:125\d|437|[78]\d\d)|iso8859-\d+|koi8-[rtu]|mac-\w+")
# Java's compiler replaces these before anything else; an even number of backslashes before one makes it plain text
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u+(?P<code>[0-9a-fA-F]{4})")
_COMMENT_END = re.compile(rb"(?:\*|\\u+002[aA])(?:/|\\u+002[fF])")
_KINDS = ("string_literal", "character_literal", "line_comment", "block_comment")
# what ends each kind of text, or keeps its end from being read; all ASCII is code elsewhere
_ENDS = {
    "string_literal": '\n\r"\\',
    "character_literal": "\n\r'\\",
    "line_comment": "\n\r",
    "block_comment": "",
}


def unread_findings(changes: Sequence[FileChange], tests: frozenset[str]) -> Iterator[Finding]:
    """Yield a finding for each changed source file that cannot be read whole. `tests` are the paths of test files."""
    gone = [change for change in changes if change.after is None]
    for changed in changes:
        change = _with_earlier(changed, gone)
        language = _GRAMMARS.get(change.path.rpartition(".")[2])
        same = (change.before or "").strip() == (change.after or "").strip()
        if language is None or change.after is None or same:
            continue
        inline = language == "rust" and _INLINE_TESTS.search(change.after) is not None
        yield from _unread(change, language, test=change.path in tests or inline)
        if language == "python":
            yield from _encoding(change)
        if language == "java":
            yield from _escapes(change)


def _unread(change: FileChange, language: str, *, test: bool) -> Iterator[Finding]:
    assert change.after is not None
    why, line = why_unread(change.after, language)
    was = why_unread(change.before, language)[0] if change.before is not None else ""
    if not why:
        if test and was and (len(change.before or "") > MAX_CHARS or "\0" in (change.before or "")):
            message = (
                f"the earlier version of this file could not be read ({was}): its tests are not compared"
            )
            yield Finding("warning", message, change.path)
        return
    newly = change.before is not None and not was
    severity: Severity = "warning" if newly or test or language == "python" else "info"
    invalid = language == "python" and why.startswith(_UNKNOWN) and not _DATA.search(change.path)
    if newly and (invalid or (test and not why.startswith(_UNKNOWN))):
        severity = "error"
    compared = "its tests cannot be compared" if test else "it cannot be searched or tried with mutants"
    advice = ": write it so that it can be read" if severity == "error" else ""
    yield Finding(severity, f"lopen cannot read this file ({why}), so {compared}{advice}", change.path, line)


def _with_earlier(change: FileChange, gone: Sequence[FileChange]) -> FileChange:
    """Return a new file with the deleted one that it was: of the same text, else of the same name."""
    if change.before is not None or not change.path.endswith((".py", ".java")):
        return change
    name = change.path.rpartition("/")[2]
    same = [each for each in gone if each.before == change.after]
    same += [each for each in gone if each.path.rpartition("/")[2] == name]
    return replace(change, before=same[0].before) if same else change


def why_unread(text: str, language: str) -> tuple[str, int | None]:
    """Return why a text cannot be read whole, and the line; ("", None) where it can."""
    if len(text) > MAX_CHARS:
        return f"it has more than {MAX_CHARS:,} characters", None
    if "\0" in text:
        return "it holds NUL characters", text.count("\n", 0, text.index("\0")) + 1
    if language == "python":
        return _why_not_python(text) if parsed(text) is None else ("", None)
    source = parsed_file(text, language)
    if not source.root.has_error:
        return "", None
    node = source.root
    while inner := next((child for child in node.children if child.has_error), None):
        node = inner
    return _UNKNOWN, source.line(node)


def _why_not_python(text: str) -> tuple[str, int | None]:
    deep = (
        f"it nests expressions or blocks more than {DEEPEST} levels deep; a long `elif` or `+` is nested too"
    )
    try:
        parse_quietly(text)
    except SyntaxError as error:
        return f"{_UNKNOWN}: {error.msg}", error.lineno
    except (ValueError, RecursionError, MemoryError):
        pass
    return deep, None


def _encoding(change: FileChange) -> Iterator[Finding]:
    """A coding cookie by which Python reads other text than stands in the file."""
    name = _cookie(change.after or "")
    if name:
        known = _cookie(change.before or "") == name or _DATA.search(change.path)
        severity: Severity = "warning" if known else "error"
        message = f"Python reads this file in the encoding {name}, not as it is shown: write it as UTF-8 without a coding line"
        yield Finding(severity, message, change.path, 1)


def _cookie(text: str) -> str:
    """Return the encoding that the first two lines name, "" where it leaves ASCII as it is."""
    lines = [f"{line}\n".encode("utf-8", "replace") for line in re.split(r"\r\n?|\n", text[:10_000])[:2]]
    if not any(b"coding" in line for line in lines):
        return ""
    try:
        name = tokenize.detect_encoding(iter(lines).__next__)[0]
        codec = codecs.lookup(name).name
        ascii_text = bytes(range(128))
        same = _SINGLE_BYTE.fullmatch(codec) and ascii_text.decode(codec) == ascii_text.decode("ascii")
        return "" if codec in _UNICODE or same else name
    except (SyntaxError, LookupError, UnicodeError):
        found = re.search(rb"coding[:=]\s*([-\w.]+)", b"".join(lines))
        return found[1].decode("ascii", "replace") if found else "unknown"


def _escapes(change: FileChange) -> Iterator[Finding]:
    """Java's Unicode escapes that make code: a line end, a quote, the end of a comment, or part of a word."""
    known = Counter((kind, code) for kind, code, _ in _active_escapes(change.before or ""))
    for kind, code, line in _active_escapes(change.after or ""):
        if known[kind, code]:
            known[kind, code] -= 1
            continue
        text = (change.after or "").split("\n")[line - 1].strip()
        message = f"the compiler reads this escape as code: `{text[:80]}`; write the character itself"
        yield Finding("error", message, change.path, line)
        return


def _active_escapes(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind of text in which each such escape stands, what it stands for, and its line."""
    if "\\u" not in text or len(text) > MAX_CHARS:
        return
    source = parsed_file(text, "java")
    spans = {
        kind: [(node.start_byte, node.end_byte) for node in source.find(f"({kind}) @text", "text")]
        for kind in _KINDS
    }
    start = 0
    for number, line in enumerate(source.text.split(b"\n"), 1):
        ends = [(start + found.start(), start + found.end()) for found in _COMMENT_END.finditer(line)]
        for found in _ESCAPE.finditer(line):
            character, place = chr(int(found["code"], 16)), start + found.end() - 1
            kind = next((kind for kind in _KINDS if _is_within(place, spans[kind])), "")
            ending = kind == "block_comment" and _is_within(place, ends)
            if ending or character in _ENDS.get(kind, "") or (not kind and character.isascii()):
                yield kind, character, number
        start += len(line) + 1


def _is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return True if a place is in one of the spans, which stand in their order."""
    at = bisect_right(spans, (place, sys.maxsize)) - 1
    return at >= 0 and place < spans[at][1]
