"""`lopen run`, `resume`, `plan` and `spec`: drive a session."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext, ResumeOptions, RunOptions
from lopen.cli.command import bring_home, outside_command
from lopen.cli.parameters import JobsOption, ModuleArgument, OptionalSession, SeveralModules
from lopen.core.errors import ExitCode, WrongUsage

DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what it may cost, the limits and where it would begin; send nothing.",
    ),
]

AllOption = Annotated[bool, typer.Option("--all", help="Every module that is approved and not complete.")]
UnfinishedOption = Annotated[bool, typer.Option("--all", help="Every unfinished session.")]
DetachOption = Annotated[
    bool,
    typer.Option("--detach", help="Run in the background; lopen attach follows it, lopen pause stops it."),
]


@outside_command
def run(
    context: CommandContext,
    options: RunOptions,
    modules: SeveralModules = None,
    dry_run: DryRunOption = False,
    detach: DetachOption = False,
    all: AllOption = False,
    jobs: JobsOption = None,
) -> ExitCode:
    """Build a module from its specification: up to your approval, then to the end.

    An unfinished session of the module is resumed. Without a specification, describe with -p what to draft. Several
    modules are built side by side; what --max-cost and budget.session_tokens allow, they share.
    Exit codes: 0 complete, 1 failed, 3 a person is needed (the last line names the command).
    """
    if all or len(modules or ()) > 1:
        return _run_together(
            context, modules or [], options, all=all, jobs=jobs, detach=detach, dry_run=dry_run
        )
    if modules:
        module = modules[0]
    else:
        from lopen.application.meant import module_to_build
        from lopen.application.open_store import open_store

        module = module_to_build(context, open_store(context))
        bring_home(context, [module], drives=True)
    if detach and not dry_run:
        from lopen.application.detached import run_detached
        from lopen.specification.modules import module_name

        return run_detached(context, module_name(module), [a for a in sys.argv[1:] if a != "--detach"])
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, dry_run=dry_run)


def _run_together(
    context: CommandContext,
    modules: list[str],
    options: RunOptions,
    *,
    all: bool,
    jobs: int | None,
    detach: bool,
    dry_run: bool,
) -> ExitCode:
    from lopen.cli.rendering.together import preview_together, watching
    from lopen.queue.together import run_together

    if modules and all:
        raise WrongUsage("--all takes every module: name none", hint="see lopen run --help")
    if dry_run:
        return preview_together(context, modules, options)
    if detach:
        raise WrongUsage("--detach takes one module", hint="see lopen run --help")
    with watching(context, options) as watch:
        return run_together(context, modules, options, jobs, watch)


@outside_command
def resume(
    context: CommandContext,
    options: ResumeOptions,
    session: OptionalSession = None,
    all: UnfinishedOption = False,
    jobs: JobsOption = None,
) -> ExitCode:
    """Continue a session after an interruption, a pause or a crash (default: the latest unfinished one)."""
    if all:
        from lopen.cli.rendering.together import watching
        from lopen.queue.together import resume_together

        if session is not None:
            raise WrongUsage(
                "--all takes every unfinished session: name none", hint="see lopen resume --help"
            )
        with watching(context, options) as watch:
            return resume_together(context, options, jobs, watch)
    from lopen.application.driving import drive_session

    return drive_session(context, session, options)


@outside_command
def plan(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Run only the planning phase, up to the tasks of the first component. It needs your approval too."""
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="planning")


@outside_command
def spec(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Draft a module's specification, or refine it, in conversation with the model; describe the request with -p."""
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="requirement_gathering")
