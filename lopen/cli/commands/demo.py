"""`lopen demo`: build the bundled example from recorded answers; everything else is real."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext, RunOptions
from lopen.cli import parameters as o
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError
from lopen.core.money import dollars
from lopen.example import MODULE

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="New or empty folder (default: a temporary one).")
]


@command
def demo(
    context: CommandContext,
    folder: FolderArgument = None,
    quiet: o.QuietOption = False,
    no_color: o.NoColorOption = False,
    sandbox: o.SandboxOption = "",
) -> ExitCode:
    """Build the bundled example in a new git repository, from recorded answers: no key, no network.

    Tools, tests, verifications and commits are real. The default sandbox is the best that works here.
    """
    from lopen.application.demo_project import RECORDED, as_demo, prepare
    from lopen.application.driving import drive_module

    mode, how = (sandbox, "as requested") if sandbox else best_sandbox()
    options = RunOptions(model=RECORDED, quiet=quiet, no_color=no_color, sandbox=mode)
    options.flags()  # rejects a wrong mode before anything is created
    root = fresh_folder(folder)
    context = as_demo(replace(context, root=root, given=str(root)))
    context.say(f"Building the module {MODULE} in {context.root}")
    context.say("The model's answers are recorded: no API key is used, and nothing is sent anywhere.")
    context.say(
        "Tools, tests, verifications and commits are real. Cost and tokens are those of the recording."
    )
    context.say("The specification is bundled with lopen, so the demo approves it on your behalf.")
    context.say(f"sandbox for commands: {mode} ({how})\n")
    context.emit("demo_started", folder=str(context.root), module=MODULE, sandbox=mode, recorded=True)
    prepare(context)
    code = drive_module(context, MODULE, options)
    return _show(context) if code is ExitCode.OK else code


def fresh_folder(wanted: Path | None) -> Path:
    """Return an empty folder: `wanted`, created if missing, or a new temporary one."""
    if wanted is None:
        return Path(os.path.realpath(tempfile.mkdtemp(prefix="lopen-demo-")))
    another = "name a new folder, or none: lopen demo"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        is_empty = not any(wanted.iterdir())
    except OSError as error:
        raise LopenError(f"cannot use {wanted}: {error.strerror}", hint=another) from error
    if not is_empty:
        raise LopenError(f"{wanted} is not empty", hint=another)
    return Path(os.path.realpath(wanted))


def best_sandbox() -> tuple[str, str]:
    """Return the strongest sandbox that works here, with a remark; "none" if no sandbox works."""
    from lopen.sandbox.choice import probe

    if probe("bwrap").works:
        return "bwrap", "bubblewrap works here"
    if probe("landlock").works:
        return (
            "landlock",
            "bubblewrap does not work here; landlock protects other files, but does not block the network",
        )
    return "none", "NO SANDBOX WORKS HERE: commands run unprotected; see lopen doctor"


def _show(context: CommandContext) -> ExitCode:
    """Show the built, proved and spent, and how to look at it."""
    from lopen.application.event_lines import counted, test_counts
    from lopen.application.open_store import looked_up, open_store
    from lopen.application.reports import criterion_states, present_verdicts
    from lopen.store.audit import verifications

    store = open_store(context)
    session = store.latest()
    assert session is not None
    tasks = [(task.commit or "", task.name) for task in session.tree.tasks]
    built = "\n".join(f"  {commit[:8]} {name}" for commit, name in tasks)
    context.say(f"\nBuilt on {session.branch}, one commit a task:\n{built}")
    verdicts = present_verdicts(store, session)
    tests = [v for v in verifications(store, session.id) if v.tool == "verify_tests" and v.passed]
    rejected = sum(not verdict["passed"] for verdict in verdicts)
    mended = f"; the judge rejected {counted(rejected, 'attempt')} on the way" if rejected else ""
    context.say(
        f"Proved: the tests passed in a clean checkout of each commit ({test_counts(tests[-1].output)} at the end)"
        f"{mended}. The criteria now:"
    )
    for held in criterion_states(session, verdicts, session.plan.criteria):
        context.say(f"  {held.id} {held.state}: {held.text}")
    if budget := looked_up(context, store.database).of(f"session:{session.id}"):
        spent = f"{dollars(budget.cost_usd)}, {budget.tokens_used:,} tokens"
        context.say(f"Spent: {spent} when it was recorded, nothing now")
    context.say("To look at it:\n  lopen status\n  lopen log\n  lopen report")
    context.emit(
        "demo_complete",
        session=session.id,
        folder=str(context.root),
        recorded=True,
        branch=session.branch,
        commits=[{"commit": commit, "task": name} for commit, name in tasks],
    )
    return ExitCode.OK
