"""The workbench: everything that the tools of one iteration work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lopen.core.clock import Clock
from lopen.files.workplace import Workplace
from lopen.files.workspace import Workspace
from lopen.git.repository import Repository
from lopen.guardrails.completion import is_test
from lopen.judge.verdict import Scope
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.journal import Journal
from lopen.store.project_documents import Specifications
from lopen.tools.calls import ToolResult
from lopen.tools.commands import Commands
from lopen.tools.verification import Verifier
from lopen.workflow.pauses import Pause
from lopen.workflow.session import Session


class Person(Protocol):
    """Whoever sits at the terminal, if anybody does."""

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        """Return their answer; None where nobody can answer now."""
        ...


class Nobody:
    """The person who is not there."""

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        return None


@dataclass(frozen=True)
class Project:
    """The project as one session works on it: its files, specifications and commands."""

    place: Workplace
    workspace: Workspace
    specifications: Specifications
    commands: Commands
    verifier: Verifier
    sandbox_rules: str  # what commands may do, for the prompt

    @property
    def root(self) -> Path:
        """The folder in which the work is done."""
        return self.place.root

    @property
    def repository(self) -> Repository:
        """lopen's clone."""
        return self.place.repository

    @property
    def test_command(self) -> str | None:
        """The approved verify-tests command; None where there is none."""
        return self.verifier.commands.get("verify-tests")

    def has_tests(self) -> bool:
        """Tell whether a file of the project is a test by its name."""
        return any(map(is_test, self.workspace.list_files().files))

    def load_spec(self, module: str) -> Specification:
        """Return a module's specification as it is now."""
        return self.specifications.load(module)


class Steps(Protocol):
    """The parts of the loop that tools may ask for."""

    def judge(self, bench: Workbench, scope: Scope, subject: str, note: str = "") -> ToolResult:
        """Return the verdict on a task, component or module, by its id. `note` is the builder's claim."""
        ...

    def complete(self, bench: Workbench, task_id: str) -> ToolResult:
        """Commit the task in progress and record it complete, or say why not."""
        ...

    def verify_done(self, bench: Workbench) -> Pause | None:
        """Verify the components that step 3 recorded as done; the pause where a person is needed."""
        ...

    def research(self, bench: Workbench, topic: str, question: str) -> ToolResult:
        """Let a sub-agent answer the question and log its findings."""
        ...


@dataclass
class IterationEvidence:
    """The verifications of one iteration, and the files that it wrote in vain."""

    passed: dict[str, str] = field(default_factory=dict)  # verification tool → tree id it passed on
    ignored: set[str] = field(default_factory=set)  # files written in this iteration that enter no commit
    confidence: str = "high"  # of the verdict that the next commit rests on


@dataclass(frozen=True)
class Workbench:
    """One iteration's project, journal and evidence, and the parts of the loop that tools may ask for."""

    settings: Settings
    clock: Clock
    journal: Journal
    project: Project
    person: Person
    steps: Steps
    new_task_id: Callable[[], str]
    evidence: IterationEvidence = field(default_factory=IterationEvidence)

    @property
    def fresh(self) -> frozenset[str]:
        """The verification tools that passed in this iteration on the work tree as it is now."""
        tree = self.project.verifier.tree()
        return frozenset(tool for tool, passed_on in self.evidence.passed.items() if passed_on == tree)

    @property
    def session(self) -> Session:
        """The session as it is now."""
        return self.journal.session
