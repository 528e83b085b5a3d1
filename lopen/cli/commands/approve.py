"""`lopen approve`: a person approves one exact specification."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import bring_home, command
from lopen.cli.parameters import SeveralModules
from lopen.core.errors import ExitCode, LopenError, WrongUsage
from lopen.core.escape import exact

NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="Note to store with the approval.")]
ExpectOption = Annotated[
    str | None,
    typer.Option("--expect", metavar="HASH", help="Fail if the specification has changed."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Approve without asking.")]
RemovalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-test-removal",
        metavar="GLOB",
        help="Let obsolete tests be removed from the files that GLOB names; can be given more than once.",
    ),
]
RunOption = Annotated[bool, typer.Option("--run", help="Run the module afterwards.")]


@command
def approve(
    context: CommandContext,
    modules: SeveralModules = None,
    note: NoteOption = "",
    expect: ExpectOption = None,
    yes: YesOption = False,
    run: RunOption = False,
    allow_test_removal: RemovalOption = None,
) -> ExitCode:
    """Approve a module's specification: its criteria and its verify commands. Several are asked for one by one.

    On a terminal it asks first; elsewhere it needs --yes, or --expect with the hash that was read.
    Only a person may run this command; it refuses to run inside a lopen session.
    """
    from lopen.application.decisions import checked, expected, record, recorded_plan, show, specification
    from lopen.application.estimate import tell
    from lopen.application.meant import module_to_approve
    from lopen.application.open_store import open_store
    from lopen.files.listing import glob_matcher
    from lopen.files.protection import ToolRefused
    from lopen.settings.sources import load
    from lopen.specification.modules import module_name
    from lopen.store.folder import is_worked_on

    removals = tuple(allow_test_removal or ())
    try:  # here, not at a verdict
        for glob in removals:
            glob_matcher(glob)
    except ToolRefused as error:
        raise WrongUsage(f"--allow-test-removal: {error.error}") from error
    if not modules:
        modules = [module_to_approve(context, open_store(context))]
    for module in modules:
        module_name(module)  # before anything is written
    if len(modules) > 1 and expect is not None:
        raise WrongUsage("--expect is the hash of one module", hint="approve them one by one")
    if run and not yes and expect is None:
        from lopen.application.session_model import require_credentials

        require_credentials(context.load().settings)  # a person is not asked in vain
    store = open_store(context, new=True)
    for module in dict.fromkeys(modules):
        spec = checked(specification(context.root, store, module))
        digest = show(context, store, spec)
        with suppress(LopenError):  # the run reports a configuration that cannot be read
            tell(context, spec, load(context.root).settings)
        if expect is not None:
            expected(spec, expect)
        elif not yes:
            _ask(context, module, digest)
        record(store, spec, note, removals)
        context.say(f"approved {module} ({digest[:16]})")
        for glob in removals:
            context.say(f"tests may be removed from: {exact(glob)}")
        plan = recorded_plan(store, spec)
        context.emit(
            "approved", module=module, spec_hash=digest, note=note, test_removals=removals, plan=plan
        )
    if all(is_worked_on(context.root, module) for module in modules):  # it asks at its own terminal
        context.say(f"the run that waits for it goes on; to follow it: lopen attach {modules[0]}")
        return ExitCode.OK
    if not run:
        context.say(f"next: lopen run {' '.join(modules)}")
        return ExitCode.OK
    from lopen.application.command_context import RunOptions

    store.database.close()
    if len(modules) > 1:
        from lopen.cli.rendering.together import watching
        from lopen.queue.together import run_together

        with watching(context, RunOptions()) as watch:
            return run_together(context, modules, RunOptions(), None, watch)
    from lopen.application.driving import drive_module

    bring_home(context, modules, drives=True)
    return drive_module(context, modules[0], RunOptions())


def _ask(context: CommandContext, module: str, digest: str) -> None:
    """Ask at the terminal; raise unless the answer is yes."""
    from lopen.cli.terminal import at_terminal, yes

    if context.json or not at_terminal():
        raise WrongUsage(
            "lopen approve asks on a terminal, and this is not one",
            hint=f"after reading the above: lopen approve {module} --expect {digest[:16]}",
        )
    if not yes(f"approve {module}?"):
        raise LopenError(
            f"nothing was approved; an earlier approval of {module}, if there is one, stands",
            hint=f"when it is right: lopen approve {module}",
        )
