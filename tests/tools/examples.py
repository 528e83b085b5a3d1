"""A workbench over a real repository, with a sandbox that does what a test says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lopen.files.module_branch import ModuleBranch
from lopen.files.workplace import Workplace
from lopen.files.workspace import Workspace
from lopen.git.ignores import CACHE_PATTERNS
from lopen.git.repository import Repository
from lopen.judge.evidence import NO_BUILDER, BuilderWork
from lopen.judge.judging import BoundaryVerdict
from lopen.judge.verdict import Scope, Verdict
from lopen.models.messages import ToolUse
from lopen.sandbox.command import Command, CommandResult
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.audit import AuditTrail
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.project_documents import Specifications
from lopen.store.sessions import SessionStore
from lopen.tools.calls import ToolResult, done
from lopen.tools.catalogue import Registry, catalogue
from lopen.tools.questions import Nobody
from lopen.tools.workbench import Project, Workbench
from lopen.verification.clean_room import CleanRoom
from lopen.verification.verifier import VerificationLog, Verifier
from lopen.workflow.pauses import Pause
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State
from tests.fakes import FakeClock
from tests.models.prompts.examples import specification

VERIFY: Mapping[str, str | None] = {"verify-tests": "run-tests", "verify-lint": None, "verify-build": None}


@dataclass
class Acting:
    """A sandbox in which a command is what `act` does in its folder. It claims to protect like bubblewrap."""

    act: Callable[[str, Path], CommandResult] = lambda *_: CommandResult(exit_code=0, output="1 passed")
    name: str = "bwrap"
    warning: str = ""
    ran: list[str] = field(default_factory=list)

    def run(self, command: Command) -> CommandResult:
        text = command.line if isinstance(command.line, str) else " ".join(command.line)
        self.ran.append(text)
        return self.act(text, command.room.files if command.room else command.cwd)


@dataclass
class Bench:
    """A workbench and what a test looks at beside it."""

    at: Workbench
    sandbox: Acting
    repository: Repository
    store: SessionStore
    registry: Registry
    steps: ScriptedSteps
    recorded: bool = False  # a call recorded the step's result
    pause: Pause | None = None  # of the last call that needs a person

    @property
    def completed(self) -> list[str]:
        """The tasks that are complete."""
        return [task.id for task in self.at.session.tree.tasks if task.state is State.COMPLETE]

    def call(self, tool: str, **given: Any) -> ToolResult:
        """A tool call as the model makes it, in the session's step."""
        result = self.registry.run(ToolUse("call", tool, given), self.at)
        self.recorded = self.recorded or result.recorded
        self.pause = result.pause or self.pause
        return result


def git(folder: Path, *arguments: str) -> str:
    """git as a person would run it."""
    ran = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def project(folder: Path) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/exclude").write_text(
        "".join(f"{line}\n" for line in CACHE_PATTERNS)
    )  # as in a clone
    (folder / "README").write_text("Read me\n", "utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Begin")
    return folder


def verdict(scope: Scope, subject: str, *, passed: bool = True) -> BoundaryVerdict:
    """A verdict without findings."""
    given = Verdict(passed, "high", f"{scope} {subject} is fine", (), scope, subject, "0" * 64)
    return BoundaryVerdict(given, (), passed)


class ScriptedJudge:
    """Lets everything through, or what a test wants; keeps what it was asked."""

    def __init__(self, judge: Callable[[Scope, str], BoundaryVerdict]) -> None:
        self._judge = judge

    def verdict_on(self, scope: Scope, subject: str, builder: BuilderWork = NO_BUILDER) -> BoundaryVerdict:
        return self._judge(scope, subject)

    def accepted_by_person(self, task: str) -> BoundaryVerdict | None:
        return None


class LoneBranch(ModuleBranch):
    """A branch whose clone is the person's repository itself: there is nothing to bring together."""

    def sync(self) -> Pause | None:
        return None

    def publish(self) -> None: ...


class ScriptedSteps:
    """The loop's own part, as a test wants it; each can be replaced."""

    def __init__(self) -> None:
        self.verify_done: Callable[[Workbench], Pause | None] = lambda _: None
        self.research: Callable[[Workbench, str, str], ToolResult] = lambda _, topic, question: done(
            path=topic, summary=question
        )


class PlainWorkplace(Workplace):
    """A repository that is no clone of lopen's: no command of a test changes what is the person's."""

    def put_back(self, module: str) -> tuple[str, ...]:
        return ()


class OneSpecification(Specifications):
    """The same specification, whatever module is asked for."""

    def __init__(self, root: Path, store: SessionStore, spec: Specification) -> None:
        super().__init__(root, store)
        self._spec = spec

    def load(self, module: str) -> Specification:
        return self._spec


def bench(
    root: Path,
    session: Session,
    *,
    commands: Mapping[str, str | None] = VERIFY,
    judge: Callable[[Scope, str], BoundaryVerdict] = verdict,
    spec: Specification | None = None,
    settings: Settings | None = None,
    database: Database | None = None,
) -> Bench:
    """A workbench for one iteration over the repository at `root`."""
    clock, sandbox = FakeClock(), Acting()
    store = SessionStore(database or Database(root.parent / "state.db"))
    journal = Journal(store, session, clock, redact=str)
    journal.save(session)
    repository = Repository.open(root, clock=clock)
    place = PlainWorkplace(repository, repository)
    log = VerificationLog(journal, AuditTrail(store.database, session.id, str), clock)
    room = CleanRoom(root.parent / "rooms", place, mounted=True)
    verifier = Verifier(commands, room, sandbox, log, timeout_s=60, network=False)
    numbers = iter(range(100, 10_000))
    steps = ScriptedSteps()
    at = Workbench(
        settings=settings or Settings(),
        clock=clock,
        journal=journal,
        project=Project(
            place=place,
            workspace=Workspace(root, repository.files),
            specifications=OneSpecification(root, store, spec or specification()),
            sandbox=sandbox,
            verifier=verifier,
            sandbox_rules="",
        ),
        person=Nobody(),
        judge=ScriptedJudge(judge),
        steps=steps,
        branch=LoneBranch(place, journal, store, "conventional"),
        new_task_id=lambda: f"calc-t{next(numbers)}",
    )
    return Bench(at, sandbox, repository, store, Registry(catalogue(commands)), steps)
