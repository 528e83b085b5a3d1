"""`lopen demo`: the bundled example, built here and now from recorded answers; everything but those is real."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lopen.cli import options as o
from lopen.cli.context import CommandContext, command
from lopen.errors import ExitCode, LopenError, PersonNeeded

if TYPE_CHECKING:
    from lopen.cli.showing import Built
    from lopen.settings.sources import Loaded

AGAIN = "lopen demo"
NOTE = "the specification is bundled with lopen; approved by `lopen demo` on the person's behalf"

FolderArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[DIR]", help="An empty or new folder; without it a new temporary one."),
]


class ExampleContext(CommandContext):
    """The demo is the same for everybody: lopen's defaults and the demo's own options, nobody's configuration.

    A recording is played from its beginning: nothing goes on in the middle.
    """

    resumable = False

    def load(self, flags: Mapping[str, Any] | None = None) -> Loaded:
        """The defaults, with `flags` over them."""
        from lopen.settings.keys import nest
        from lopen.settings.schema import Settings
        from lopen.settings.sources import Loaded

        given = {key: value for key, value in (flags or {}).items() if value is not None}
        return Loaded(Settings.model_validate(nest(given)), {})


@command
def demo(
    context: CommandContext,
    folder: FolderArgument = None,
    quiet: o.QuietOption = False,
    no_color: o.NoColorOption = False,
    sandbox: o.SandboxOption = "",
) -> ExitCode:
    """Build the bundled example in a new git repository, from recorded answers: no key, no network.

    Tools, tests, verifications and commits are real. Without `--sandbox` the best one that works here is taken.
    """
    from lopen.cli.driving import drive_module
    from lopen.cli.person import require_person
    from lopen.cli.showing import own_command
    from lopen.example import MODULE, RECORDING

    require_person("demo", context.root)
    mode, how = (sandbox, "as asked for") if sandbox else best_sandbox()
    options = o.RunOptions(model=f"replay:{RECORDING}", quiet=quiet, no_color=no_color, sandbox=mode)
    options.flags()  # a wrong mode is said before anything is made
    context = ExampleContext(fresh_folder(folder), context.json, context.verbose)
    context.say(f"lopen demo: builds the module {MODULE} in {context.root}")
    context.say("The model's answers are recorded; no key is used and nothing is sent anywhere.")
    context.say("Tools, tests, verifications and commits are real. Cost and tokens are the recording's.")
    context.say("The specification is bundled with lopen, so the demo approves it on your behalf.")
    context.say(f"sandbox for commands: {mode} ({how})\n")
    context.emit("demo_started", folder=str(context.root), module=MODULE, sandbox=mode, recorded=True)
    typed = own_command()  # before PATH is changed
    prepare(context)
    code = ExitCode.FAILED
    try:
        code = drive_module(context, MODULE, options)
    except PersonNeeded as error:
        error.command = AGAIN
        raise
    finally:  # also where it was interrupted
        if code is not ExitCode.OK:
            context.say(f"what was built so far lies in {context.root}; to begin again: {AGAIN}")
    if code is not ExitCode.OK:
        return code
    return _shown(context, mode, typed)


def fresh_folder(wanted: Path | None) -> Path:
    """An empty folder: the wanted one, made where it is missing, or a new temporary one."""
    if wanted is None:
        return Path(os.path.realpath(tempfile.mkdtemp(prefix="lopen-demo-")))
    another = "name a folder that does not exist yet, or none: lopen demo"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        taken = any(wanted.iterdir())
    except OSError as error:
        raise LopenError(f"{wanted} cannot be used: {error.strerror}", hint=another) from error
    if taken:
        raise LopenError(f"{wanted} is not empty", hint=another)
    return Path(os.path.realpath(wanted))


def best_sandbox() -> tuple[str, str]:
    """The strongest sandbox that works here, and what was seen; none where none does."""
    from lopen.sandbox.choice import probe

    if probe("bwrap").works:
        return "bwrap", "bubblewrap works here"
    if probe("landlock").works:
        return (
            "landlock",
            "bubblewrap does not work here; files outside are safe, the network is not shut off",
        )
    return "none", "NO SANDBOX WORKS HERE: the example's commands run unprotected; see lopen doctor"


def prepare(context: CommandContext) -> None:
    """Lay the example out in the context's folder as a repository with one commit, and approve its specification.

    From here on commands find the interpreter that runs lopen first.
    """
    from lopen.cli.approving import checked, record, specification
    from lopen.cli.store import open_store
    from lopen.clock import SystemClock
    from lopen.example import INTERPRETER, MODULE, lay_out
    from lopen.git.fresh import create

    os.environ["PATH"] = os.pathsep.join((str(INTERPRETER.parent), os.environ.get("PATH", os.defpath)))
    repository = create(context.root, clock=SystemClock())
    lay_out(context.root)
    repository.commit(repository.snapshot(), None, "Begin the project\n", "main")
    store = open_store(context, new=True)
    record(store, checked(specification(context.root, store, MODULE)), NOTE)
    store.database.close()


def _shown(context: CommandContext, mode: str, typed: str) -> ExitCode:
    """What was built, and its tests once more; the exit code is theirs."""
    from lopen.cli.showing import built, lines

    result = built(context, mode)
    for line in lines(result, typed, shutil.get_terminal_size((100, 24)).columns):
        context.say(line)
    _emit(context, result)
    return ExitCode.OK if result.tests.exit_code == 0 else ExitCode.FAILED


def _emit(context: CommandContext, result: Built) -> None:
    context.emit(
        "demo_complete",
        session=result.session,
        folder=str(context.root),
        recorded=True,
        branch=result.branch,
        commits=[{"commit": c.sha, "subject": c.subject, "verdict": c.verdict} for c in result.commits],
        verdicts=[asdict(verdict) for verdict in result.verdicts],
        tests={
            "command": result.command,
            "exit_code": result.tests.exit_code,
            "output": result.tests.output,
        },
    )
