"""What the demo shows at its end: the commits, the verdicts, and the tests run once more, for real."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.cli.context import CommandContext
from lopen.events import VerdictGiven
from lopen.example import INTERPRETER
from lopen.git.commits import CommitInfo
from lopen.sandbox.command import CommandResult


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
    from lopen.cli.confinement import sandbox_for
    from lopen.cli.store import open_store
    from lopen.clock import SystemClock
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
