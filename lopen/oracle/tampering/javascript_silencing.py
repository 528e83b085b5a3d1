"""What keeps JavaScript tests from running without standing on them: hooks that skip, `it` as something else, exits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lopen.oracle.tampering.braces import FAILS, shallow, skip_calls, statement_end
from lopen.oracle.tampering.lexing import Source
from lopen.oracle.tampering.suite import Skip

BODY_SKIP = re.compile(
    r"(?<![\w$])(?:this|t|ctx|context|test|it|testInfo)\s*\.\s*(?:skip|todo|fixme)\s*\(|(?<![\w$.])pending\s*\("
)
FOREIGN = re.compile(r"===?\s*[\"'](?:win32|darwin|aix|freebsd|sunos)|!==?\s*[\"']linux|\b[iI]sWin|\bisMac")
_HOOK = re.compile(r"(?<![\w$.])(?:(?:test|it)\s*\.\s*)?(?P<name>before(?:Each|All)?|suiteSetup|setup)\s*\(")
_EXIT = re.compile(r"(?<![\w$.])(?:process|Deno)\s*\.\s*(?:exit|reallyExit)\s*\(\s*(?:0\s*)?\)")
_BOUND = re.compile(
    r"(?<![\w$.])(?:(?:const|let|var)\s+|(?:globalThis|global|window)\s*\.\s*)?"
    r"(?P<name>it|test|describe|context|suite|specify|expect)\s*(?::[^=;{]{1,80})?=(?![=>])\s*"
    r"(?P<value>(?P<skipping>x(?:it|test|describe|context)\b|(?:it|test|describe|context|suite|specify)\s*\.\s*(?:skip|todo|fixme)\b)"
    r"|(?:async\s+)?(?:function\b|\(|\w+\s*=>))"
)
_DECLARED = re.compile(r"(?<![\w$.])function\s+(?P<name>it|test|describe|context|suite|specify|expect)\s*\(")
_HEAD = re.compile(
    r"(?:async\s+)?(?:function\b[^(]*)?\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?::[^={]{1,80})?(?:=>|(?=\{))|(?:async\s+)?\w+\s*=>"
)
_CALLS = re.compile(r"[\w$)\]]\s*\(")


@dataclass(frozen=True, slots=True)
class Hook:
    """A set-up hook that skips: where it stands, and the skips in it."""

    at: int
    skips: tuple[Skip, ...]


def skipping_hooks(source: Source) -> list[Hook]:
    """The hooks that skip what they set up for."""
    found = []
    hooks = shallow(_HOOK.finditer(source.code), lambda m: (m.start(), source.closing(m.end() - 1)))
    for match in hooks:
        opening = match.end() - 1
        skips = skip_calls(source, opening, source.closing(opening), BODY_SKIP, FOREIGN)
        if skips:
            named = [Skip(f"{match['name']}'s {s.text}", s.line, s.certain) for s in skips]
            found.append(Hook(match.start(), tuple(named)))
    return found


def exits(source: Source, start: int, end: int) -> Iterator[Skip]:
    """Exits with success that nothing stands around: they end the whole run."""
    for found in source.outermost(start, end, _EXIT):
        yield Skip(" ".join(found.group().split()), source.line(found.start()))


def other_words(source: Source) -> dict[str, Skip]:
    """Words of the test framework that a file binds to something that runs, or checks, nothing."""
    found: dict[str, Skip] = {}
    for match in source.top_level(0, len(source.code), _BOUND):
        name, line = match["name"], source.line(match.start())
        if match["skipping"]:
            found[name] = Skip(f"{name} bound to {match['skipping']}", line)
        elif _does_nothing(source, match.start("value"), name):
            found[name] = Skip(f"a {name} of its own, which does nothing", line)
    for match in source.top_level(0, len(source.code), _DECLARED):
        if _does_nothing(source, match.start(), match["name"]):
            line = source.line(match.start())
            found[match["name"]] = Skip(f"a {match['name']} of its own, which does nothing", line)
    return found


def _does_nothing(source: Source, at: int, name: str) -> bool:
    """Whether the function at a position calls nothing; for `expect`, whether nothing in it can fail."""
    written = source.code[at : statement_end(source, at, len(source.code))]
    head = _HEAD.match(written)
    if not head:
        return False  # a value in brackets
    pattern = FAILS if name == "expect" else _CALLS
    return not pattern.search(written, head.end())
