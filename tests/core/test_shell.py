"""The simple commands of a shell's line."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from lopen.core.shell import has_open_quote, simple_commands, unwrapped
from tests.fuzz.inputs import ANY_TEXT, bounded, pieces


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a 'b c' \"d\"e \\f", [("a", "b c", "de", "f")]),
        ("a && b || c; d & e\nf", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]),
        ("a | b |& c", [("a",), ("b",), ("c",)]),
        ("if a; then b; else c; fi; { d; }; ! e", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("(a; b $(c)) > out", [("a",), ("b", "$"), ("c",), ()]),
        ("cat <<E\nit's text\nE\na", [("cat",), ("a",)]),
        ("cat <<A <<'B' | d\nx\nA\ny'\n B\nz", [("cat",), ("d",), ("z",)]),
        ("a <<y\nb", [("a",), ("b",)]),
        ("a \\\n b", [("a", "b")]),
        ("a  # don't", [("a",)]),
        ("a 'b", []),
        ("", []),
    ],
)
def test_commands_are_told_apart(text: str, commands: list[tuple[str, ...]]) -> None:
    assert [command.words for command in simple_commands(text)] == commands


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("a > b", ("b",)),
        ("a 2>> b &> 'c d' < e >| f", ("b", "c d", "f")),
        ("a 2>&1", ()),
        ("a >&2", ()),
        ("(a)>b", ("b",)),
    ],
)
def test_what_a_command_writes_is_named(text: str, outputs: tuple[str, ...]) -> None:
    assert simple_commands(text)[-1].outputs == outputs


def test_what_stands_before_a_command_is_named() -> None:
    found = simple_commands("a && b; if c; then d; else e; fi | f")
    assert [command.before for command in found] == [
        (),
        ("&&",),
        (";", "if"),
        (";", "then"),
        (";", "else"),
        (";", "fi", "|"),
    ]


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("FOO=1 env -i X=y timeout -k 5 60s pytest -q", "pytest"),
        ("uv run --frozen pytest", "pytest"),
        ("pnpm exec vitest", "vitest"),
        ("pnpm install", "pnpm"),
        (".venv/bin/python3.12 -I -m pytest tests", "pytest"),
        ("python run.py -m x", "python"),
        ("bash -c 'a b'", "a b"),
        ("env", ""),
    ],
)
def test_the_program_behind_wrappers_is_found(text: str, program: str) -> None:
    assert "".join(unwrapped(simple_commands(text)[0].words)[:1]) == program


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a '' \"'\" '"])
def test_an_open_quote_is_seen(text: str) -> None:
    assert has_open_quote(text)
    assert not has_open_quote(f"{text}'\"".replace("'", "").replace('"', ""))


@given(
    ANY_TEXT | pieces("a ", "'", '"', "\\", "<<E\n", "E\n", "$(", ")", "|", "&", ">", "2>&1", "#", "{", ";;")
)
@example("<<a " * 2_000)
@bounded(200)
def test_any_text_is_read(text: str) -> None:
    for command in simple_commands(text):
        assert command.words or command.outputs
