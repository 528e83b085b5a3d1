"""Every `--help`, as it was last read by a person: `python -m tests.cli.test_help` writes them anew."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lopen.cli.app import app
from lopen.cli.examples import EXAMPLES, with_examples
from lopen.cli.parameters import Invocation

SNAPSHOTS = Path(__file__).with_name("help.txt")
ROOT = with_examples(get_command(app), "")


def _helps(command: Any = ROOT, words: str = "", parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the words of every command and its help at 80 columns."""
    name = words.rpartition(" ")[2] or "lopen"
    context = command.make_context(
        name, [], parent=parent, resilient_parsing=True, terminal_width=80, obj=Invocation()
    )
    yield words, context.get_help()
    for inner, found in getattr(context.command, "commands", {}).items():
        yield from _helps(found, f"{words} {inner}".strip(), context)


HELPS = dict(_helps())


def test_every_help_is_the_one_that_was_read() -> None:
    seen = "".join(f"$ lopen {words}\n{text}\n\n" for words, text in HELPS.items())
    assert seen == SNAPSHOTS.read_text("utf-8"), "read the change, then: python -m tests.cli.test_help"


def test_every_help_ends_with_examples_and_nothing_is_cut() -> None:
    assert set(HELPS) == set(EXAMPLES)
    for words, text in HELPS.items():
        examples = text.rpartition("Examples:\n")[2].splitlines()
        assert examples == [f"    {line}" for line in EXAMPLES[words]], words
        assert 2 <= len(examples) <= 3, words
        assert not re.search(r"\w\.\.\.$|…|\[\[|\bnull\b", text, re.MULTILINE), words
        assert all(len(line) <= 80 for line in text.splitlines()), words


@pytest.mark.parametrize("words", sorted(EXAMPLES))
def test_the_examples_are_command_lines_that_parse(words: str) -> None:
    for example in EXAMPLES[words]:
        program, *arguments = shlex.split(example.partition(" > ")[0])
        assert program == "lopen"
        assert words == "" or " ".join(arguments).startswith(words)
        _parse(ROOT, arguments)


def _parse(command: Any, arguments: list[str], parent: Any = None) -> None:
    context = command.make_context(command.name, arguments, parent=parent, obj=Invocation())
    left = [*getattr(context, "_protected_args", ()), *context.args]
    if left:
        _, found, rest = context.command.resolve_command(context, left)
        _parse(found, rest, context)


if __name__ == "__main__":
    SNAPSHOTS.write_text("".join(f"$ lopen {words}\n{text}\n\n" for words, text in HELPS.items()), "utf-8")
