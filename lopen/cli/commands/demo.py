"""`lopen demo`: build the bundled example from recorded answers; everything else is real."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.run_options import RunOptions
from lopen.cli import parameters as o
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError
from lopen.core.events import VerdictGiven
from lopen.example import INTERPRETER, MODULE
from lopen.git.commits import CommitInfo
from lopen.sandbox.command import CommandResult

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
    from lopen.application.person_only import require_person

    require_person("demo", context.root)
    mode, how = (sandbox, "as requested") if sandbox else best_sandbox()
    options = RunOptions(model=RECORDED, quiet=quiet, no_color=no_color, sandbox=mode)
    options.flags()  # rejects a wrong mode before anything is created
    typed = own_command()  # before PATH changes
    context = as_demo(replace(context, root=fresh_folder(folder)))
    context.say(f"lopen demo: building the module {MODULE} in {context.root}")
    context.say("The model's answers are recorded: no API key is used, and nothing is sent anywhere.")
    context.say(
        "Tools, tests, verifications and commits are real. Cost and tokens are those of the recording."
    )
    context.say("The specification is bundled with lopen, so the demo approves it on your behalf.")
    context.say(f"sandbox for commands: {mode} ({how})\n")
    context.emit("demo_started", folder=str(context.root), module=MODULE, sandbox=mode, recorded=True)
    prepare(context)
    code = ExitCode.FAILED
    try:
        code = drive_module(context, MODULE, options)
    finally:  # also where it was interrupted
        if code is not ExitCode.OK:
            context.say(f"to continue the demo: {typed} resume -C {shlex.quote(str(context.root))}")
    return _show(context, mode, typed) if code is ExitCode.OK else code


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


def own_command() -> str:
    """Return the command that starts lopen here: its name if PATH has it, else its path."""
    beside = INTERPRETER.with_name("lopen")
    if shutil.which("lopen"):
        return "lopen"
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(str(INTERPRETER))} -m lopen"


@dataclass(frozen=True, slots=True)
class Built:
    """A finished session: its commits, its verdicts, and a new run of its tests."""

    session: str
    branch: str
    commits: Sequence[CommitInfo]
    verdicts: Sequence[VerdictGiven]
    command: str
    tests: CommandResult


def _show(context: CommandContext, mode: str, typed: str) -> ExitCode:
    """Show the result, run its tests once more and return their exit code."""
    result = built(context, mode)
    for line in lines(context.root, result, typed):
        context.say(line)
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
    return ExitCode.OK if result.tests.exit_code == 0 else ExitCode.FAILED


def built(context: CommandContext, mode: str) -> Built:
    """Read the finished session back, and run the test command of its specification."""
    from lopen.application.open_store import open_store
    from lopen.application.workplaces import sandbox_for, temporary_workplace
    from lopen.core.clock import SystemClock
    from lopen.git.repository import Repository
    from lopen.sandbox.command import Command
    from lopen.sandbox.known_secrets import KnownSecrets

    store = open_store(context)
    session = store.latest()
    assert session is not None
    assert session.approval is not None
    repository = Repository.open(context.root, clock=SystemClock())
    line = session.approval.commands["verify-tests"] or "true"
    settings, branch = context.load({"sandbox.mode": mode}).settings, session.branch or ""
    secrets = KnownSecrets(context.root, os.environ)
    with temporary_workplace(context.root, settings, secrets, repository.branch_tip(branch) or "") as place:
        tests = sandbox_for(settings, place.root, session.id, context.root).run(Command(line, cwd=place.root))
    return Built(
        session=session.id,
        branch=branch,
        commits=repository.session_commits(session.id, within=branch),
        verdicts=[r.event for r in store.events(session.id) if isinstance(r.event, VerdictGiven)],
        command=line,
        tests=tests,
    )


def lines(root: Path, result: Built, lopen: str) -> Iterator[str]:
    """Yield the report. `lopen` is the command that starts lopen."""
    yield f"\nCommits on {result.branch}, one per task:"
    for commit in result.commits:
        yield f"  {commit.sha[:8]} {commit.subject}"
    yield "\nVerdicts, in order:"
    for verdict in result.verdicts:
        passed = "passed" if verdict.passed else "FAILED"
        yield f"  {passed} {verdict.scope} {verdict.subject}: {verdict.summary}"
    passed = "passed" if result.tests.exit_code == 0 else "FAILED"
    yield f"\nThe module's tests, run again:\n  $ {result.command}"
    yield textwrap.indent(result.tests.output.strip("\n"), "  ")
    yield f"  {passed} (exit code {result.tests.exit_code})"
    yield "\nThe model's answers were recorded. Everything else happened in this repository:"
    yield f"  cd {shlex.quote(str(root))}"
    yield f"  {lopen} status {MODULE}\n  {lopen} log\n  {lopen} diff {MODULE}\n  {lopen} merge {MODULE}"
