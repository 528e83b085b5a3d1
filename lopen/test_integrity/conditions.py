"""The truth of conditions that keep tests from running, as far as it is known on the platform that lopen runs on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

# In this order "and" is the smaller one, "or" the larger one, and "not" is `ALWAYS - truth`.
NEVER = 0
ELSEWHERE = 1  # on another platform only
OPEN = 2
HERE = 3  # on this platform
ALWAYS = 4

_FOREIGN_NAME = r"[\"'`](?:win|nt\b|Windows|darwin|Darwin|cygwin|java\b|emscripten|wasi|aix|sunos|freebsd|netbsd|openbsd|plan9|js\b)"
_LINUX_NAME = r"[\"'`](?:linux|posix|Linux)"
_ELSEWHERE = re.compile(
    rf"(?:(?<![!=])={{2,3}}|[sS]tarts_?[wW]ith\(|\bin\b)\s*[\[({{]?\s*{_FOREIGN_NAME}"
    rf"|!==?\s*{_LINUX_NAME}"
    r"|\b(?:is_?|IS_?|on_?)?(?:wasi|emscripten|android|apple|windows|win32|pypy|WASI|EMSCRIPTEN|WINDOWS|WIN(?:32)?|PYPY|MAC|MACOS|OSX)\b"
    r"|\b[iI]s_?(?:Win|Mac|win|mac|Darwin)\w*|\bOS\.(?:WINDOWS|MAC|AIX|SOLARIS)\b|testing\.Short\(\)|mac os"
)
_HERE = re.compile(
    rf"(?:(?<![!=])={{2,3}}|[sS]tarts_?[wW]ith\()\s*{_LINUX_NAME}|!==?\s*{_FOREIGN_NAME}"
    r"|\b[iI]s_?[lL]inux\b|\bOS\.LINUX\b"
)
ENVIRONMENT = re.compile(
    r"process\.env|import\.meta\.env|os\.environ|os\.getenv|os\.Getenv|os\.LookupEnv|env::var|System\.getenv|System\.getProperty|Deno\.env|\bENV\[|\bENV\.\w|\bgetenv\(|GetEnvironmentVariable|\$_(?:ENV|SERVER)"
)
SKIP_WORD = re.compile(r"skip|disabled?\b|todo\b|ignored?\b|flaky|wip\b|pending", re.IGNORECASE)
_TRUE = frozenset({"true", "True", "1", "!0"})
_FALSE = frozenset({"false", "False", "0", "nil", "null", "None", "undefined", '""'})
_COMPARED = re.compile(r"^([\w.\"'-]+)\s*(===?|!==?|<=|>=|<|>|is not|is)\s*([\w.\"'-]+)$")
_LONGEST = 400  # characters of a comparison that is read
_LITERAL = re.compile(r"""^(?:true|false|null|nil|None|undefined|-?\d[\w.]*|"[^"]*"|'[^']*'|`[^`$]*`)$""")
_CALLS = re.compile(r"\w\s*[(!]")
_OPENERS, _CLOSERS = "([{", ")]}"
_WORDS = re.compile(r"\|\||&&|\b(?:or|and)\b")
_DEEPEST = 20

Atom = Callable[[str], int]


@lru_cache(maxsize=4096)
def truth(condition: str, atom: Atom | None = None, depth: int = 0) -> int:
    """The truth of a condition; `atom` judges its parts where a language has its own."""
    text = _stripped(condition)
    if depth > _DEEPEST:
        return OPEN
    for words, choose in ((("||", "or"), max), (("&&", "and"), min)):
        parts = list(_split(text, words))
        if len(parts) > 1:
            if _contradict(parts):
                return choose(ALWAYS, NEVER)
            return choose(truth(part, atom, depth + 1) for part in parts)
    if text.startswith("!") and not text.startswith("!="):
        return ALWAYS - truth(text[1:], atom, depth + 1)
    if text.startswith("not "):
        return ALWAYS - truth(text[4:], atom, depth + 1)
    return (atom or _atom)(text)


def _contradict(parts: Sequence[str]) -> bool:
    """Return True if one part is the other's opposite: `a` and `!a`, `a == b` and `a != b`."""
    told = {"".join(_stripped(part).split()) for part in parts}
    return any(f"!{part}" in told or ("==" in part and part.replace("==", "!=", 1) in told) for part in told)


def _stripped(condition: str) -> str:
    text = condition.strip()
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing(text: str) -> int:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in _OPENERS) - (sign in _CLOSERS)
        if depth == 0:
            return at
    return -1


def _split(text: str, words: tuple[str, ...]) -> Iterator[str]:
    """The parts between top-level words."""
    if not _WORDS.search(text):
        yield text
        return
    start = depth = at = 0
    quote = ""
    while at < len(text):
        sign = text[at]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`":
            quote = sign
        else:
            depth += (sign in _OPENERS) - (sign in _CLOSERS)
            word = _WORDS.match(text, at) if depth == 0 and sign in "|&oa" else None
            if word and word.group() in words and (at == 0 or not text[at - 1].isalnum() or sign in "|&"):
                yield text[start:at]
                start = at = word.end()
                continue
        at += 1
    yield text[start:]


def _atom(text: str) -> int:
    if text in _TRUE:
        return ALWAYS
    if text in _FALSE:
        return NEVER
    if _HERE.search(text):
        return HERE
    if _ELSEWHERE.search(text):
        return ELSEWHERE
    compared = _COMPARED.match(text) if len(text) <= _LONGEST else None
    if compared:
        return _comparison(compared[1], compared[2], compared[3])
    return OPEN


def _comparison(left: str, operator: str, right: str) -> int:
    equal = operator in {"==", "===", "<=", ">=", "is"}
    if left == right:
        return ALWAYS if equal else NEVER
    if is_literal(left) and is_literal(right) and operator in {"==", "===", "!=", "!=="}:
        return NEVER if equal else ALWAYS
    return OPEN


def split_arguments(text: str) -> list[str]:
    """The parts of a text between its top-level commas."""
    parts, depth, start, quote = [], 0, 0, ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote and text[at - 1] != "\\" else quote
        elif sign == '"':
            quote = sign
        elif sign == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
        else:
            depth += (sign in _OPENERS) - (sign in _CLOSERS)
    last = text[start:].strip()
    return [*parts, last] if last else parts


def is_literal(text: str) -> bool:
    """Return True if a text is one literal value."""
    return bool(_LITERAL.match(text))


def always_true(condition: str) -> bool:
    """Return True if a condition holds whatever the code under test does."""
    return truth(condition) == ALWAYS


def always_equal(left: str, right: str) -> bool:
    """Return True if two expressions are equal because they are the same text. Calls may differ from call to call."""
    return left == right and (is_literal(left) or not _CALLS.search(left))
