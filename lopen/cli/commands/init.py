"""`lopen init`: set up a project. Creates missing files and overwrites nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import outside_command
from lopen.core.errors import ExitCode, LopenError, WrongUsage
from lopen.example import MODULE, specification_text
from lopen.specification.modules import spec_path
from lopen.specification.spec import NEW_BEHAVIOUR, NEW_CRITERIA, NEW_DESCRIPTION, NEW_OVERVIEW
from lopen.store.folder import GITIGNORE
from lopen.verification.project_commands import NAMES, Detected, command_lines, detect, listing

NewModule = Annotated[
    str | None, typer.Argument(help="Module to write a specification for, to be filled in.")
]
Example = Annotated[
    bool,
    typer.Option("--example", help="Write a complete specification to read and to build (module tariff)."),
]


@outside_command
def init(
    context: CommandContext,
    module: NewModule = None,
    example: Example = False,
) -> ExitCode | None:
    """Set up a project, with verify commands detected from its files.

    MODULE gets a specification to fill in. --example writes one that is complete: a small Python module without
    dependencies, which `lopen run tariff` builds.
    """
    if example and module is not None:
        raise WrongUsage("--example writes a module of its own", hint="leave out MODULE, or --example")
    module = MODULE if example else module
    specification = spec_path(context.root, module) if module is not None else None
    root, detected = context.root, detect(listing(context.root))
    write_new(context, root / ".lopen" / ".gitignore", GITIGNORE)
    write_new(context, root / ".lopen" / "config.toml", CONFIG)
    written = False
    if module is not None and specification is not None:
        text = specification_text() if example else outline_text(module, detected)
        written = write_new(context, specification, text)
    _warn_without_repository(context)
    if example:
        context.say(f"next: lopen run {module}  (shows it and asks for your approval)")
        return None
    _report(context, detected, module, written=written)
    return None


def write_new(context: CommandContext, path: Path, text: str) -> bool:
    """Create the file; return False if it exists. Follow no symbolic link below the project's root."""
    shown = path.relative_to(context.root) if path.is_relative_to(context.root) else path
    for folder in path.parents:
        if folder == context.root:
            break
        if folder.is_symlink():
            raise LopenError(f"{folder} is a symbolic link", hint="replace it with an ordinary folder")
        if folder.exists() and not folder.is_dir():
            raise LopenError(f"{folder} is not a folder", hint="rename or remove it, then try again")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except FileExistsError:
        _tell(context, "kept", str(shown), "exists")
        return False
    except OSError as error:
        raise LopenError(f"{path}: {error.strerror}", hint=f"make {path.parent} writable") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    _tell(context, "wrote", str(shown))
    return True


def _tell(context: CommandContext, did: str, path: str, why: str = "") -> None:
    context.emit("init_file", action=did, path=path)
    if not context.json:
        context.say(f"{did} {path}" + (f" ({why})" if why else ""))


def _warn_without_repository(context: CommandContext) -> None:
    """Warn now that a run will fail without a git repository, or without its first commit."""
    from lopen.core.clock import SystemClock
    from lopen.git.refs import require_commit
    from lopen.git.repository import Repository

    try:
        require_commit(Repository.open(context.root, clock=SystemClock()).head())
    except LopenError as error:
        context.warn(f"lopen run will fail: {error.message}; {error.hint}")


def _report(context: CommandContext, detected: Detected, module: str | None, *, written: bool) -> None:
    """Print the detected commands and whether the specification got them, and name the next command."""
    if written:
        context.say("detected, and written into it:")
    elif not module:
        context.say("detected; lopen init MODULE writes it into a specification:")
    for name in NAMES:
        found = detected.commands[name]
        context.emit("init_command", name=name, command=found)
        if not context.json and (written or not module):
            context.say(f"  {name}: {found or 'none found'}")
    if written or not module:
        for what in detected.missing:
            context.warn(f"no {what} found: name its command under Skills & Hooks, or write none")
    if written:
        context.say(f"next: write specs/{module}/SPECIFICATION.md, then: lopen check {module}")
    else:
        context.say(f"next: lopen {f'check {module}' if module else 'init MODULE'}")


CONFIG = """\
# Settings of this project for lopen; may be committed. All keys and values: lopen config show
# A project may only tighten limits. Endpoint, sandbox, hooks and notification are set by each person.

[budget]
# session_tokens = 400000        # at most your own limit, set with: lopen config set --user
# token_budget_per_module = 0
# max_cost_usd = 0.0

[workflow]
# max_iterations = 100

[git]
# convention = "conventional"    # or "plain"
"""


def outline_text(module: str, detected: Detected) -> str:
    """Return a specification that `lopen check` accepts, to be rewritten."""
    title = module.replace("-", " ").replace("_", " ").capitalize()
    return f"""\
---
name: {module}
description: {NEW_DESCRIPTION.format(module=module)}
---

# {title}

## Overview

{NEW_OVERVIEW.format(module=module)}

## Behaviour

{NEW_BEHAVIOUR}

## Acceptance Criteria

{chr(10).join(f"- [ ] {criterion}" for criterion in NEW_CRITERIA)}

## Dependencies

- None beyond the standard library.

## Skills & Hooks

{chr(10).join(command_lines(detected))}
"""
