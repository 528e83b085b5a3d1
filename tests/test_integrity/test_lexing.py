"""Masking what is no code, at the same positions."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lopen.test_integrity.lexing import Syntax, lex

SYNTAXES: tuple[Syntax, ...] = ("javascript", "go", "rust", "java")

MASKED: list[tuple[Syntax, str, str]] = [
    ("javascript", "a('{' /* ) */) // }", "a('_' )"),
    ("javascript", "x = `a ${b + `}` } c`; y", "x = '_'; y"),
    ("javascript", "x = /[{/]\\/}/g.test(y)", "x = '_'.test(y)"),
    ("javascript", "x = a / b / c", "x = a / b / c"),
    ("javascript", "return /}/", "return '_'"),
    ("go", "a := `{\n}` // {", "a := '_'"),
    ("go", "b := '{'", "b := '_'"),
    ("rust", "fn f<'a>(x: &'a str) { '{' }", "fn f<'a>(x: &'a str) { '_' }"),
    ("rust", '/* a /* b */ } */ r#"}"}"#', "'_'"),
    ("rust", "'\\u{7d}' '\\''", "'_' '_'"),
    ("java", 's = """\n  } " }\n  """; c', "s = '_'; c"),
    ("java", 's = "\\"}"; // "', "s = '_';"),
]


@pytest.mark.parametrize(("syntax", "text", "code"), MASKED)
def test_strings_and_comments_are_masked(syntax: Syntax, text: str, code: str) -> None:
    masked = re.sub(r'"[_\n]*"', "'_'", lex(text, syntax).code)

    assert " ".join(masked.split()) == code


@given(st.sampled_from(SYNTAXES), st.text(alphabet="ab(){}[]\"'`/*\\\n$#r ", max_size=80))
@example("javascript", "`\n")
def test_every_position_stays_in_its_place(syntax: Syntax, text: str) -> None:
    source = lex(text, syntax)

    assert len(source.bare) == len(source.code) == len(text)
    assert [i for i, sign in enumerate(source.code) if sign == "\n"] == [
        i for i, sign in enumerate(text) if sign == "\n"
    ]


def test_arguments_are_split_at_top_level_commas_only() -> None:
    source = lex("f(a, g(b, c), [d, e], 'x, y')", "javascript")

    assert [source.span(*each) for each in source.arguments(1)] == ["a", "g(b, c)", "[d, e]", "'x, y'"]


def test_lines_are_counted_from_one() -> None:
    source = lex("a\nb\n", "go")

    assert [source.line(at) for at in range(4)] == [1, 1, 2, 2]
