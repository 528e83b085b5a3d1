"""`lopen demo`: build the bundled example from recorded answers; everything else is real."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lopen.application.command_context import CommandContext
from lopen.application.run_options import RunOptions
from lopen.cli import parameters as o
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError, PersonNeeded
from lopen.core.events import VerdictGiven
from lopen.example import INTERPRETER
from lopen.git.commits import CommitInfo
from lopen.sandbox.command import CommandResult

if TYPE_CHECKING:
    from lopen.settings.sources import Loaded

FolderArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR", help="New or empty folder, or one with an unfinished demo (default: a temporary one)."
    ),
]


class ExampleContext(CommandContext):
    """The context of a demo: only defaults and the demo's options, no configuration. `lopen demo` itself continues it."""

    resumable = False

    def load(self, flags: Mapping[str, Any] | None = None) -> Loaded:
        """Return the defaults, overridden by `flags`."""
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

    Tools, tests, verifications and commits are real. The default sandbox is the best that works here.
    """
    from lopen.application.person_only import require_person
    from lopen.example import RECORDING
    from lopen.models.replay import ReplayMismatch

    require_person("demo", context.root)
    mode, how = (sandbox, "as requested") if sandbox else best_sandbox()
    options = RunOptions(model=f"replay:{RECORDING}", quiet=quiet, no_color=no_color, sandbox=mode)
    options.flags()  # rejects a wrong mode before anything is created
    typed = own_command()  # before PATH changes
    if folder is not None and is_unfinished_demo(folder):
        try:
            return _build(
                _context(context, Path(os.path.realpath(folder))), options, how, typed, continued=True
            )
        except (
            ReplayMismatch
        ):  # what was cut off, such as a verification, has another result than the recorded one
            context.say(
                "the recorded answers do not fit what was interrupted: starting again in a new folder\n"
            )
            folder = None
    return _build(_context(context, fresh_folder(folder)), options, how, typed)


def _context(context: CommandContext, root: Path) -> ExampleContext:
    return ExampleContext(root, context.json, context.verbose, context.presentation)


def _build(
    context: ExampleContext, options: RunOptions, how: str, typed: str, *, continued: bool = False
) -> ExitCode:
    """Build the example in the context's folder and show the result. `typed` is the command that starts lopen."""
    from lopen.application.driving import drive_module
    from lopen.example import MODULE
    from lopen.models.replay import ReplayMismatch

    mode = options.sandbox
    verb = "continuing to build" if continued else "building"
    context.say(f"lopen demo: {verb} the module {MODULE} in {context.root}")
    context.say("The model's answers are recorded: no API key is used, and nothing is sent anywhere.")
    context.say(
        "Tools, tests, verifications and commits are real. Cost and tokens are those of the recording."
    )
    context.say("The specification is bundled with lopen, so the demo approves it on your behalf.")
    context.say(f"sandbox for commands: {mode} ({how})\n")
    context.emit("demo_started", folder=str(context.root), module=MODULE, sandbox=mode, recorded=True)
    if continued:
        put_interpreter_first()
    else:
        prepare(context)
    again = f"{typed} demo {shlex.quote(str(context.root))}"
    code = ExitCode.FAILED
    try:
        code = drive_module(context, MODULE, options)
    except ReplayMismatch:
        again = ""
        raise
    except PersonNeeded as error:
        error.command = again
        raise
    finally:  # also where it was interrupted
        if code is not ExitCode.OK and again:
            context.say(f"to continue the demo: {again}")
    if code is not ExitCode.OK:
        return code
    return _show(context, mode, typed)


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


def is_unfinished_demo(folder: Path) -> bool:
    """True for a folder in which a demo was cut short. Raise `LopenError` where it was reverted since."""
    from lopen.application.open_store import open_store
    from lopen.application.waiting import demo_command, require_intact
    from lopen.example import MODULE

    if not (folder / ".lopen" / "state.db").is_file():
        return False
    context = ExampleContext(Path(os.path.realpath(folder)))
    store = open_store(context)
    try:
        session = store.latest(module=MODULE, unfinished=True)
        command = demo_command(context.root, store, session) if session is not None else ""
        require_intact(context.root, command)
        return bool(command)
    finally:
        store.database.close()


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


def put_interpreter_first() -> None:
    """Put the folder of the interpreter that runs lopen first in PATH."""
    os.environ["PATH"] = os.pathsep.join((str(INTERPRETER.parent), os.environ.get("PATH", os.defpath)))


def prepare(context: CommandContext) -> None:
    """Create the example in the context's folder as a repository with one commit, and approve its specification.

    Put the interpreter that runs lopen first in PATH.
    """
    from lopen.application.approval import checked, record, specification
    from lopen.application.open_store import open_store
    from lopen.core.clock import SystemClock
    from lopen.example import APPROVAL_NOTE, MODULE, lay_out
    from lopen.git.creation import create_repository

    put_interpreter_first()
    repository = create_repository(context.root, clock=SystemClock())
    lay_out(context.root)
    repository.commit(repository.snapshot(), None, "Begin the project\n", "main")
    store = open_store(context, new=True)
    record(store, checked(specification(context.root, store, MODULE)), APPROVAL_NOTE)
    store.database.close()


def _show(context: CommandContext, mode: str, typed: str) -> ExitCode:
    """Show the result, run its tests once more and return their exit code."""
    result = built(context, mode)
    for line in lines(result, typed):
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
    """A finished session: its commits, its verdicts, and a new run of its tests."""

    root: Path
    session: str
    module: str
    branch: str
    commits: Sequence[CommitInfo]
    verdicts: Sequence[VerdictGiven]
    command: str
    tests: CommandResult


def built(context: CommandContext, mode: str) -> Built:
    """Read the finished session back, and run the test command of its specification."""
    from lopen.application.confinement import sandbox_for
    from lopen.application.open_store import open_store
    from lopen.core.clock import SystemClock
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
    """Return the command that starts lopen here: its name if PATH has it, else its path."""
    beside = INTERPRETER.with_name("lopen")
    if shutil.which("lopen"):
        return "lopen"
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(str(INTERPRETER))} -m lopen"


def lines(result: Built, lopen: str) -> Iterator[str]:
    """Yield the report. `lopen` is the command that starts lopen."""
    yield f"\nCommits on {result.branch}, one per task:"
    for commit in result.commits:
        yield f"  {commit.sha[:8]} {commit.subject}"
    yield "\nVerdicts, in order:"
    for verdict in result.verdicts:
        yield _verdict(verdict)
    passed = result.tests.exit_code == 0
    yield f"\nThe module's tests, run again:\n  $ {result.command}"
    yield textwrap.indent(result.tests.output.strip("\n"), "  ")
    yield f"  {'passed' if passed else 'FAILED'} (exit code {result.tests.exit_code})"
    yield "\nThe model's answers were recorded. Everything else happened in this repository:"
    yield f"  cd {shlex.quote(str(result.root))}"
    yield f"  {lopen} status {result.module}\n  {lopen} log\n  {lopen} diff {result.module}\n  {lopen} merge {result.module}"


def _verdict(verdict: VerdictGiven) -> str:
    result = "passed" if verdict.passed else "FAILED"
    return f"  {result} {verdict.scope} {verdict.subject}: {verdict.summary}"
