"""JavaScript and TypeScript tests: jest, vitest, mocha, jasmine, playwright, `node:test`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lopen.test_integrity.braces import Helpers, Region, chosen, regions, shallow, skip_calls
from lopen.test_integrity.javascript_checks import (
    BODY_SKIP,
    FOREIGN,
    exits,
    find_checks,
    helper_checks,
    other_words,
    skipping_hooks,
)
from lopen.test_integrity.lexing import Source, lex
from lopen.test_integrity.suite import Case, Language, Skip, Suite, numbered, support_cases

_SUFFIX = re.compile(r"\.[cm]?[jt]sx?$")
_COLLECTED = re.compile(
    r"(?:\.|[_-])(?:test|spec|cy|e2e)\.[cm]?[jt]sx?$|(?:^|/)(?:__tests__|tests?|spec|e2e)/.*\.[cm]?[jt]sx?$|(?:^|/)tests?\.[cm]?[jt]sx?$"
)
_CALL = re.compile(
    r"(?<![\w$.])(?:Deno\.|\w{1,2}\.(?=test\b)|await\s+\w{1,2}\.(?=test\b))?"
    r"(?P<word>x?describe|fdescribe|x?context|suite|x?it|x?test|fit|ftest|x?specify)"
    r"(?P<dots>(?:\s*\.\s*\w+){0,6})\s*(?P<open>\(|\")"
)
_GROUPS = re.compile(r"describe|context|suite")
_NO_TESTS = frozenset(
    {
        "before",
        "beforeEach",
        "after",
        "afterEach",
        "beforeAll",
        "afterAll",
        "use",
        "extend",
        "step",
        "mock",
        "setTimeout",
        "info",
        "slow",
        "configure",
    }
)
_SKIPPING = frozenset({"skip", "todo", "fixme", "skipIf", "runIf", "failing", "fails", "fail"})
_OPTION = re.compile(r"\b(?P<name>skip|todo|only)\s*:\s*(?!false\b)")
_FUNCTION = re.compile(r"=>|\bfunction\b")


@dataclass(frozen=True, slots=True)
class _Block:
    """A call of `describe` or `it`, from its first sign to its closing bracket. `opening` is the last bracket."""

    start: int
    end: int
    word: str
    dots: tuple[str, ...]
    opening: int
    table: int | None  # the bracket of `.each(…)`

    @property
    def is_group(self) -> bool:
        return bool(_GROUPS.search(self.word)) or bool(set(self.dots) & {"describe", "suite"})


def covers(path: str) -> bool:
    """Whether a path holds tests: JavaScript has no rule of its own, so its file names decide."""
    return bool(_SUFFIX.search(path) and _COLLECTED.search(path)) and "node_modules/" not in path


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; functions that check, whichever of the files defines them, count where they are called."""
    sources = {path: lex(text, "javascript") for path, text in files.items()}
    helpers = helper_checks(list(sources.values()))
    return {path: _suite(source, helpers) for path, source in sources.items()}


def _suite(source: Source, helpers: Helpers) -> Suite:
    blocks = shallow(_blocks(source), lambda block: (block.start, block.end))
    groups = [block for block in blocks if block.is_group]
    around = _Around(source, groups)
    cases = [_case(source, block, around, helpers) for block in blocks if not block.is_group]
    narrowing = [
        Skip(source.span(b.start, b.opening), source.line(b.start)) for b in blocks if _narrows(source, b)
    ]
    for skip in exits(source, 0, len(source.code)):
        narrowing.append(replace(skip, text=f"`{skip.text}` at the top of the file"))
    return Suite(numbered([*cases, *support_cases(helper_checks([source]))]), tuple(narrowing))


class _Around:
    """What stands around the tests of a file: groups, hooks that skip, other meanings of `it`."""

    def __init__(self, source: Source, groups: Sequence[_Block]) -> None:
        self.groups = groups
        self.words = other_words(source)
        self._hooks = [(hook, _innermost(groups, hook.at)) for hook in skipping_hooks(source)]

    def of(self, block: _Block) -> tuple[list[_Block], list[Skip]]:
        """The groups around a test, from the outside in, and what of all this keeps it from running."""
        groups = [g for g in self.groups if g.start < block.start < g.end]
        words = [self.words[b.word] for b in [*groups, block] if b.word in self.words]
        hooks = [s for hook, group in self._hooks if group is None or group in groups for s in hook.skips]
        return groups, [*dict.fromkeys(words), *hooks]


def _innermost(groups: Sequence[_Block], at: int) -> _Block | None:
    return max((g for g in groups if g.start < at < g.end), key=lambda g: g.start, default=None)


def _blocks(source: Source) -> Iterator[_Block]:
    for found in _CALL.finditer(source.code):
        dots = tuple(part.strip() for part in found["dots"].split(".") if part.strip())
        opening = found.end() - 1
        if set(dots) & _NO_TESTS:
            continue
        table = None
        if dots and dots[-1] in {"each", "for", "skipIf", "runIf", "todoIf"}:
            table = opening
            behind = re.compile(r"\s*\(").match(source.code, _argument_end(source, opening))
            if not behind:
                continue
            opening = behind.end() - 1
        elif found["open"] != "(":
            continue
        arguments = source.arguments(opening)
        if not arguments or (dots and dots[-1] in {"skip", "fixme"} and not _titled(source, arguments)):
            continue  # playwright's test.skip() inside a test: a call that skips, not a test
        yield _Block(found.start(), source.closing(opening), found["word"], dots, opening, table)


def _argument_end(source: Source, opening: int) -> int:
    """Behind the table: a bracket's end, or that of a template literal."""
    if source.code[opening] == "(":
        return source.closing(opening) + 1
    return source.code.find('"', opening + 1) + 1


def _titled(source: Source, arguments: Sequence[tuple[int, int]]) -> bool:
    first = source.bare[slice(*arguments[0])].strip()
    return first[:1] in {'"', "'", "`"} or len(arguments) > 1


def _case(source: Source, block: _Block, outside: _Around, helpers: Helpers) -> Case:
    around, skips = outside.of(block)
    names = [_title(source, g) for g in [*around, block]]
    start, end = _body(source, block)
    idle: list[Region] = regions(source, start, end, swallowing=None) if start else []
    checks = chosen(find_checks(source, block.opening + 1, block.end, helpers), idle)
    if "expect" in outside.words and any(check.text.startswith("expect") for check in checks):
        skips.append(outside.words["expect"])
    skips += [s for b in [*around, block] for s in _skips(source, b)]
    if start:
        skips += [*skip_calls(source, start, end, BODY_SKIP, FOREIGN), *exits(source, start, end)]
    content = source.span(*_content(source, block))
    if block.table is not None:
        content = f"{source.span(block.table, _argument_end(source, block.table))} {content}"
    rows = _rows(source, block) if block.table is not None else None
    empty = bool(start) and not source.code[start:end].strip(" \t\r\n;")
    return Case(" > ".join(names), source.line(block.start), content, checks, tuple(skips), rows, empty)


def _title(source: Source, block: _Block) -> str:
    start, stop = source.arguments(block.opening)[0]
    return " ".join(source.bare[start:stop].split()).strip("\"'`")[:200]


def _content(source: Source, block: _Block) -> tuple[int, int]:
    """All behind the title."""
    arguments = source.arguments(block.opening)
    return (arguments[1][0], block.end) if len(arguments) > 1 else (block.end, block.end)


def _body(source: Source, block: _Block) -> tuple[int, int]:
    """The inside of the function block; (0, 0) where there is none (`it("later")`, `() => expect(…)`)."""
    for start, stop in source.arguments(block.opening)[1:]:
        arrow = _FUNCTION.search(source.code, start, stop)
        if arrow:
            brace = re.compile(r"[^{]*?\{" if arrow.group() == "function" else r"\s*\{").match(
                source.code, arrow.end(), stop
            )
            return (brace.end(), source.closing(brace.end() - 1)) if brace else (0, 0)
    return 0, 0


def _skips(source: Source, block: _Block) -> Iterator[Skip]:
    line = source.line(block.start)
    written = block.word + "".join(f".{dot}" for dot in block.dots)
    conditional = [dot for dot in block.dots if dot in {"skipIf", "runIf", "todoIf"}]
    if conditional and block.table is not None:
        condition = source.span(block.table + 1, source.closing(block.table))
        if condition not in {"false", "0"} or "runIf" in conditional:
            yield Skip(f"{written} if {condition}", line, not FOREIGN.search(condition))
    elif block.word.startswith("x") or set(block.dots) & _SKIPPING:
        yield Skip(written, line)
    arguments = source.arguments(block.opening)
    for start, stop in arguments[1:]:
        if source.code[start:stop].lstrip().startswith("{"):
            for found in _OPTION.finditer(source.code, start, stop):
                if found["name"] != "only":
                    yield Skip(f"{written} with {{ {found['name']} }}", line)
    if not block.is_group and len(arguments) == 1 and not block.dots and not block.word.startswith("x"):
        yield Skip(f"{written} without a body", line)


def _narrows(source: Source, block: _Block) -> bool:
    if "only" in block.dots or block.word in {"fit", "fdescribe", "ftest"}:
        return True
    return any(
        source.code[start:stop].lstrip().startswith("{")
        and re.search(r"\bonly\s*:\s*true\b", source.code[start:stop])
        for start, stop in source.arguments(block.opening)[1:]
    )


def _rows(source: Source, block: _Block) -> int | None:
    """How many rows `.each([…])` has."""
    if block.table is None or "each" not in block.dots:
        return None
    if source.code[block.table] == '"':
        template = source.bare[block.table : _argument_end(source, block.table)]
        return max(0, len([line for line in template.splitlines() if "${" in line]))
    arguments = source.arguments(block.table)
    if not arguments:
        return 0
    bracket = re.compile(r"\s*\[").match(source.code, arguments[0][0])
    return len(source.arguments(bracket.end() - 1)) if bracket else None


LANGUAGE = Language("JavaScript", covers, lambda path: bool(_COLLECTED.search(path)), read)
