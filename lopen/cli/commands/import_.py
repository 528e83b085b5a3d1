"""`lopen import`: make a specification from one of another tool, or from plain Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from unicodedata import combining, normalize

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import outside_command
from lopen.core.errors import ExitCode, LopenError

Source = Annotated[Path, typer.Argument(help="Folder or file of spec-kit, Kiro or Markdown.")]
Module = Annotated[
    str, typer.Option("--module", metavar="NAME", help="Module (default: from the source's name).")
]

MAX_FILES = 50


@outside_command
def import_(context: CommandContext, source: Source, module: Module = "") -> ExitCode:
    """Write specs/MODULE/SPECIFICATION.md from another tool's specification.

    Criteria are checkboxes, lines such as **FR-001**: text, and lists under Acceptance Criteria,
    Acceptance Scenarios or Success Criteria. Overview, Introduction, Purpose, Why or Summary becomes the overview,
    Dependencies the dependencies, and every other section Behaviour.

    lopen invents nothing: it marks what the source lacks with TODO. It does not overwrite a specification.
    """
    from lopen.application.verify_detection import command_lines, detect, listing
    from lopen.cli.commands.init import write_new
    from lopen.cli.rendering.lines import counted
    from lopen.specification.modules import spec_path
    from lopen.specification.spec import parse_specification
    from lopen.specification.spec_import import COUNTED, gaps, imported, specification

    files, name = _markdown(source)
    module = module or _module_of(name)
    path = spec_path(context.root, module)
    if path.exists():
        raise LopenError(f"{path} exists", hint="name another module with --module, or remove it first")
    found = imported(files)
    text = specification(found, module, list(command_lines(detect(listing(context.root)))), str(source))
    write_new(context, path, text)
    problems = [
        str(p) for p in parse_specification(text, module=module, path=path.relative_to(context.root)).problems
    ]
    missing = gaps(text)
    context.emit(
        "imported", module=module, path=str(path), gaps=missing, left_out=found.left_out, problems=problems
    )
    criteria = (
        "1 acceptance criterion" if len(found.criteria) == 1 else f"{len(found.criteria)} acceptance criteria"
    )
    context.say(f"{criteria}, {counted(len(missing), 'gap')} marked TODO")
    if not found.criteria:
        context.say(COUNTED)
    for line in (*missing, *(f"not taken over: {line}" for line in found.left_out), *problems):
        context.say(f"  {line}")
    context.say(f"next: lopen check {module}")
    return ExitCode.FAILED if problems else ExitCode.OK


def _markdown(source: Path) -> tuple[Mapping[str, str], str]:
    """Return the Markdown files of the source (name → text), and the name of the feature."""
    from lopen.specification.modules import read_source

    if not source.name or not source.exists():
        raise LopenError(
            f"{str(source) if source.name else repr('')} does not exist",
            hint="name a Markdown file, or a folder with spec.md or requirements.md",
        )
    if source.is_dir():
        paths = sorted(source.glob("*.md"))[:MAX_FILES]
        if not paths:
            raise LopenError(
                f"{source} contains no Markdown file", hint="name the folder with spec.md or requirements.md"
            )
        return {path.name: read_source(path) for path in paths}, source.resolve().name
    generic = source.name in ("spec.md", "requirements.md", "README.md")
    return {source.name: read_source(source)}, source.resolve().parent.name if generic else source.stem


def _module_of(name: str) -> str:
    """Return a module's name for a feature's name: `001-user auth` → `user-auth`."""
    letters = "".join(c for c in normalize("NFKD", name.casefold()) if not combining(c))  # é → e
    plain = re.sub(r"[^a-z0-9_]+", "-", re.sub(r"^\d+[-_ ]+", "", letters)).strip("-")
    return plain[:64].strip("-") or "imported"
