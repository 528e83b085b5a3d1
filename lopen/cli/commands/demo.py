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

from lopen.application.command_context import CommandContext
from lopen.application.run_options import RunOptions
from lopen.base.errors import ExitCode, LopenError, PersonNeeded
from lopen.cli import parameters as o
from lopen.cli.command import command

if TYPE_CHECKING:
    from lopen.settings.sources import Loaded


import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lopen.base.events import VerdictGiven
from lopen.example import INTERPRETER
from lopen.git.commits import CommitInfo
from lopen.sandbox.command import CommandResult

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
    from lopen.application.driving import drive_module
    from lopen.application.person_only import require_person
    from lopen.example import MODULE, RECORDING

    require_person("demo", context.root)
    mode, how = (sandbox, "as asked for") if sandbox else best_sandbox()
    options = RunOptions(model=f"replay:{RECORDING}", quiet=quiet, no_color=no_color, sandbox=mode)
    options.flags()  # a wrong mode is said before anything is made
    context = ExampleContext(fresh_folder(folder), context.json, context.verbose, context.presentation)
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
    from lopen.application.approval import checked, record, specification
    from lopen.application.open_store import open_store
    from lopen.base.clock import SystemClock
    from lopen.example import INTERPRETER, MODULE, lay_out
    from lopen.git.creation import create_repository

    os.environ["PATH"] = os.pathsep.join((str(INTERPRETER.parent), os.environ.get("PATH", os.defpath)))
    repository = create_repository(context.root, clock=SystemClock())
    lay_out(context.root)
    repository.commit(repository.snapshot(), None, "Begin the project\n", "main")
    store = open_store(context, new=True)
    record(store, checked(specification(context.root, store, MODULE)), NOTE)
    store.database.close()


def _shown(context: CommandContext, mode: str, typed: str) -> ExitCode:
    """What was built, and its tests once more; the exit code is theirs."""

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


@dataclass(frozen=True, slots=True)
class Built:
    """A finished session as its repository and its state tell it."""

    root: Path
    session: str
    module: str
    branch: str
    commits: Sequence[CommitInfo]
    verdicts: Sequence[VerdictGiven]
    command: str
    tests: CommandResult


def built(context: CommandContext, mode: str) -> Built:
    """Read it back, and run the test command of the approved specification."""
    from lopen.application.confinement import sandbox_for
    from lopen.application.open_store import open_store
    from lopen.base.clock import SystemClock
    from lopen.git.repository import Repository
    from lopen.sandbox.command import Command

    store = open_store(context)
    session = store.latest()
    assert session is not None
    assert session.approval is not None
    repository = Repository.open(context.root, clock=SystemClock())
    line = session.approval.commands["verify-tests"] or "true"
    sandbox = sandbox_for(context.load({"sandbox.mode": mode}).settings, context.root, session.id)
    return Built(
        root=context.root,
        session=session.id,
        module=session.module,
        branch=session.branch or "",
        commits=repository.session_commits(session.id, within="HEAD"),
        verdicts=[r.event for r in store.events(session.id) if isinstance(r.event, VerdictGiven)],
        command=line,
        tests=sandbox.run(Command(line, cwd=context.root)),
    )


def own_command() -> str:
    """How a person gives lopen's commands here: by its name where PATH finds it, else by where it lies."""
    beside = INTERPRETER.with_name("lopen")
    if shutil.which("lopen"):
        return "lopen"
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(str(INTERPRETER))} -m lopen"


def lines(result: Built, lopen: str, width: int) -> Iterator[str]:
    """For people, wrapped at `width` characters. `lopen` is what they type for it."""
    yield f"\nCommits on {result.branch}, one a task:"
    for commit in result.commits:
        yield f"  {commit.sha[:8]} {commit.subject}"
    yield "\nVerdicts, in the order in which they were given:"
    for verdict in result.verdicts:
        yield from _verdict(verdict, width)
    passed = result.tests.exit_code == 0
    yield f"\nThe module's tests, run once more, now:\n  $ {result.command}"
    yield textwrap.indent(result.tests.output.strip("\n"), "  ")
    yield f"  {'passed' if passed else 'FAILED'} (exit code {result.tests.exit_code})"
    yield "\nThe model's answers were recorded. Everything else happened here, in this repository:"
    yield f"  cd {shlex.quote(str(result.root))}"
    yield f"  git log\n  {lopen} status {result.module}\n  {lopen} log"


def _verdict(verdict: VerdictGiven, width: int) -> Iterator[str]:
    word = "passed" if verdict.passed else "FAILED"
    text = f"{word} {verdict.scope} {verdict.subject}: {verdict.summary}"
    yield textwrap.fill(text, width, initial_indent="  ", subsequent_indent=" " * 9)
