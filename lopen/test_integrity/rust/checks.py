"""What a Rust test checks: assertion macros, panics, helpers by name; and the truth of `cfg` conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import (
    ALWAYS,
    ELSEWHERE,
    HERE,
    NEVER,
    OPEN,
    always_equal,
    always_true,
    split_arguments,
)
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, ranks
from lopen.test_integrity.syntax import Link, ParsedFile

if TYPE_CHECKING:
    pass

_FIELD = re.compile(r"[({,:]\s*-?(?:\d|\"|')")  # a literal in a pattern
_WILDCARD = re.compile(r"\.\.|\b_\b")
_EMPTY = re.compile(r"^(?P<not>!?)(?P<of>[\w.\[\]()]+)\.is_empty\(\)$")
_ALL = re.compile(r"\.all\(")
_RANKS = ranks(
    exact="assert_eq assert_str_eq assert_snapshot assert_debug_snapshot assert_json_snapshot assert_yaml_snapshot "
    "assert_toml_snapshot assert_ron_snapshot assert_display_snapshot assert_compact_json_snapshot assert_json_eq",
    close="assert_relative_eq assert_abs_diff_eq assert_ulps_eq assert_approx_eq assert_float_eq",
    loose="assert_ne assert assert_relative_ne assert_ok assert_err",
)
_BOOLEAN = frozenset({"true", "false"})
_COUNTED = frozenset({"times", "once", "never"})
_OPPOSITES = {"is_ok": "is_err", "is_err": "is_ok", "is_some": "is_none", "is_none": "is_some"}
_OPPOSITE = re.compile(r"\.(is_ok|is_err|is_some|is_none)\(\)$")
_COMPOUND = re.compile(r"^(any|all|not)\((.*)\)$", re.DOTALL)
_LINUX = re.compile(
    r'^(?:unix|target_os = "linux"|target_family = "unix"|debug_assertions|target_arch = "(?:x86_64|aarch64)")$'
)
_OTHERS = re.compile(
    r"^(?:windows|miri|loom|target_os = .*|target_family = .*|target_arch = .*|target_env = .*)$"
)


def cfg_truth(condition: str, depth: int = 0) -> int:
    """The truth of a `cfg` condition while tests are built."""
    text = condition.strip()
    compound = _COMPOUND.match(text) if depth < 20 else None
    if compound:
        parts = [cfg_truth(part, depth + 1) for part in split_arguments(compound[2])]
        if compound[1] == "not":
            return ALWAYS - (parts or [OPEN])[0]
        return max(parts, default=NEVER) if compound[1] == "any" else min(parts, default=ALWAYS)
    if text in {"test", "true"}:
        return ALWAYS
    if text.lower() == "false":
        return NEVER
    if _LINUX.match(text):
        return HERE
    return ELSEWHERE if _OTHERS.match(text) else OPEN


def asserted(text: str, name: str, given: Sequence[str], line: int) -> Check:
    """An assertion macro as a check."""
    base = re.sub(r"^(?:prop_|debug_)|!$", "", name)
    subject = given[0] if given else ""
    if base == "assert_eq" and len(given) > 1:
        return _equal(text, given[0], given[1], name, line)
    if base == "assert" and given:
        if always_true(subject) or _is_either(subject):
            return Check(text, subject, 0, line, "vacuous")
        if re.match(r"(?:std::)?matches!", subject):
            parts = split_arguments(subject.partition("!")[2].strip()[1:-1])
            return Check(text, parts[0] if parts else "", _matching(parts[1:]), line)
        if re.search(r"[^=!<>]==[^=]", subject) and "||" not in subject:
            left, _, right = subject.partition("==")
            return _equal(text, left.strip(), right.strip(), name, line)
        if empty := _EMPTY.match(subject):
            return Check(text, empty["of"], LOOSE if empty["not"] else CLOSE, line)
        if _ALL.search(subject):
            return Check(text, subject, PARTIAL, line)
        if " || " in subject and not re.search(r"[(,] ?\|", subject):
            return Check(text, subject.split(" || ")[0], PRESENT, line)
        if "|" not in subject:
            subject = re.split(r" [<>]=? ", subject)[0].removeprefix("!")
    if base == "assert_matches":
        return Check(text, subject, _matching(given[1:]), line)
    rank = _RANKS.get(base, PARTIAL)
    rank = min(rank, CLOSE) if subject.endswith(".len()") or name.startswith("debug_") else rank
    return Check(text, subject.removesuffix(".len()"), rank, line)


def _is_either(condition: str) -> bool:
    """Return True for a condition and its opposite: `x.is_ok() || x.is_err()`."""
    parts = {part.strip() for part in condition.split(" || ")}
    told = [part for part in parts if _OPPOSITE.search(part)]
    opposite = {_OPPOSITE.sub(lambda found: f".{_OPPOSITES[found[1]]}()", part) for part in told}
    return bool(parts & opposite)


def _equal(text: str, left: str, right: str, name: str, line: int) -> Check:
    """An equality; with itself or with a boolean it says less than with another value."""
    if left == right:
        idle = always_equal(left, right)
        return Check(text, left, 0 if idle else PRESENT, line, "vacuous" if idle else "real")
    if {left, right} & _BOOLEAN:
        return Check(text, right if left in _BOOLEAN else left, LOOSE, line)
    wanted = re.match(r"^[\d\"&'-]|^(?:Some|Ok|Err|None|vec!|&\[|\[)", left)
    subject = right if wanted and not re.match(r"^[\d\"&'-]", right) else left
    close = subject.endswith(".len()") or name.startswith("debug_")
    return Check(text, subject.removesuffix(".len()"), CLOSE if close else EXACT, line)


def _matching(pattern: Sequence[str]) -> int:
    """How much a pattern pins down: a literal in it, a variant in a variant, or a variant alone."""
    text = pattern[0] if pattern else ""
    if " | " in text:
        return max(PRESENT, min(_matching([part]) for part in text.split(" | ")) - 1)
    if _FIELD.search(text):
        return CLOSE if _WILDCARD.search(text) else EXACT
    if " if " in text:
        return CLOSE
    return PARTIAL if re.search(r"[({]\s*&?\w+::\w|^\w+::\w", text) else LOOSE


def mocked(text: str, links: Sequence[Link], line: int) -> Iterator[Check]:
    """What a mock of mockall expects to be called with, and how often."""
    at = next(
        (i for i, each in enumerate(links) if each.name.startswith("expect_") and each.arguments == ()), 0
    )
    named = {link.name: link for link in links[at:]} if at else {}
    subject = f"the calls of {links[at].name}"
    if _COUNTED & set(named):
        rank = PRESENT if "times" in named and ".times(..)" in text else EXACT
        yield Check(f"{subject}: {'.'.join(named)}{' (..)' * (rank == PRESENT)}", subject, rank, line)
    if {"with", "withf"} & set(named):
        yield Check(
            f"the arguments of {text.partition('.returning')[0]}",
            f"the arguments of {links[at].name}",
            CLOSE,
            line,
        )


def of_a_command(source: ParsedFile, links: Sequence[Link], line: int) -> Iterator[Check]:
    """What assert_cmd asks of a command behind `.assert()`, and wiremock of its calls."""
    names = [link.name for link in links]
    if "mount" in names and "expect" in names:  # wiremock
        calls = links[names.index("expect")].arguments or ()
        yield Check(f"expect({', '.join(map(source.of, calls))})", "the calls", EXACT, line)
    at = names.index("assert") if "assert" in names else len(names)
    for link in links[at + 1 :]:
        given = [source.of(each) for each in link.arguments or ()]
        if link.name in {"stdout", "stderr"}:
            part = given and re.match(
                r"^(?:predicates?::)?(?:\w+::)*(?:contains|is_match|starts_with|ends_with|similar)\(",
                given[0],
            )
            yield Check(f"{link.name}({', '.join(given)})", link.name, PARTIAL if part else EXACT, line)
        elif link.name in {"success", "failure", "code", "interrupted"}:
            rank = EXACT if link.name == "code" else LOOSE
            yield Check(f"{link.name}({', '.join(given)})", "the exit code", rank, line)
