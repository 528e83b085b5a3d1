"""The help of every command, and the examples at its end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from lopen.cli.app import COMMANDS, load_command
from lopen.cli.parameters import Invocation


def _helps(command: Any, words: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the words of a command and its help at 80 columns, then those of its subcommands."""
    context = command.make_context(
        words, [], parent=parent, resilient_parsing=True, terminal_width=80, obj=Invocation()
    )
    yield words, context.get_help()
    for name, found in getattr(context.command, "commands", {}).items():
        yield from _helps(found, f"{words} {name}", context)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_whole_and_its_examples_parse(name: str) -> None:
    command = load_command(COMMANDS[name])
    for words, text in _helps(command, name):
        assert not re.search(r"\w\.\.\.$|…|\[\[|\bnull\b", text, re.MULTILINE), words
        assert all(len(line) <= 80 for line in text.splitlines()), words
    for example in COMMANDS[name].examples:
        assert f"  {example}" in text if command.name == words else True
        program, called, *arguments = shlex.split(example.partition(" > ")[0])
        assert (program, called) == ("lopen", name)
        _parse(command, arguments)


def _parse(command: Any, arguments: list[str], parent: Any = None) -> None:
    context = command.make_context(command.name, arguments, parent=parent, obj=Invocation())
    left = [*getattr(context, "_protected_args", ()), *context.args]
    if left:
        _, found, rest = context.command.resolve_command(context, left)
        _parse(found, rest, context)
