"""Write docs/man/lopen.1 from the commands of the command line: python -m scripts.write_man_page"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from lopen import __version__
from lopen.cli.app import app
from lopen.cli.examples import EXAMPLES
from lopen.cli.parameters import Invocation

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "man" / "lopen.1"
CODES = DOCS / "reference" / "exit-codes.md"
SHARED = ("-C,", "--json", "-v,", "-h,")  # described once
_CODE = re.compile(r"^\| (\d+) \| (.+?) \|$", re.MULTILINE)


def page() -> str:
    """Return the whole page in the macros of man(7)."""
    root = get_command(app)
    context = root.make_context("lopen", [], resilient_parsing=True, obj=Invocation())
    summary = (root.help or "").partition("\n")[0]
    lines = [
        f'.TH LOPEN 1 "" "lopen {__version__}" "User Commands"',
        ".SH NAME",
        f"lopen \\- {_text(summary)}",
        ".SH SYNOPSIS",
        ".B lopen\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]",
        ".SH OPTIONS",
        *_options(root, context),
        ".SH COMMANDS",
        _text("Every command takes the options -C, --json (one JSON object per line), -v and -h."),
    ]
    for words, command, inner in _commands(root, context):
        lines += [f'.SS "{_usage(words, command, inner)}"', *_paragraphs(command.help or "")]
        lines += [*_options(command, inner), *_examples(words)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in _CODE.findall(CODES.read_text("utf-8")):
        lines += [".TP", f".B {code}", _text(re.sub(r"\[(.+?)\]\(.+?\)", r"\1", meaning).replace("`", ""))]
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any, words: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the words of every command below a group, the command and its context, in their order."""
    for name, listed in group.commands.items():
        inner = listed.make_context(
            name, [], parent=context, resilient_parsing=True, obj=Invocation()
        )  # loads the command
        yield f"{words} {name}".strip(), inner.command, inner
        if hasattr(inner.command, "commands"):
            yield from _commands(inner.command, inner, f"{words} {name}".strip())


def _usage(words: str, command: Any, context: Any) -> str:
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    operands = [piece.strip("{}").upper() for piece in pieces]
    return _text(" ".join(["lopen", words, *operands])).replace('"', "")


def _options(command: Any, context: Any) -> Iterator[str]:
    """Yield the options and arguments that have a help text, but of a subcommand not those that all have."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and not (context.parent and record[0].startswith(SHARED)):
            name, said = record
            yield from (".TP", f".B {_text(name)}", _text(said))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _examples(words: str) -> Iterator[str]:
    if lines := EXAMPLES.get(words):
        yield from (".PP", "Examples:", ".RS", ".nf", *map(_text, lines), ".fi", ".RE")


def _text(text: str) -> str:
    """Return text in which roff finds no escape, no request and no hyphen to turn into a dash."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("→", "to")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
