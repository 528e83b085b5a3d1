"""The workbench: everything that the tools of one iteration work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lopen.core.clock import Clock
from lopen.files.workplace import Workplace
from lopen.files.workspace import Workspace
from lopen.git.commit_hooks import Runner
from lopen.git.repository import Repository
from lopen.guardrails.completion import is_test
from lopen.judge.judging import Judge
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.journal import Journal
from lopen.store.project_documents import Specifications
from lopen.tools.calls import ToolResult
from lopen.tools.commands import Commands
from lopen.verification.verifier import Verifier
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

    def verify_done(self, bench: Workbench) -> Pause | None:
        """Verify the components that step 3 recorded as done; the pause where a person is needed."""
        ...

    def research(self, bench: Workbench, topic: str, question: str) -> ToolResult:
        """Let a sub-agent answer the question and log its findings."""
        ...


class IterationEvidence:
    """The verifications of one iteration, and the files that it wrote in vain: kept here, changed nowhere else."""

    def __init__(self) -> None:
        self._passed: dict[str, str] = {}  # verification tool → tree id it passed on
        self._ignored: set[str] = set()
        self._confidence = "high"

    @property
    def tools(self) -> frozenset[str]:
        """The tools that passed, on whatever tree."""
        return frozenset(self._passed)

    @property
    def ignored(self) -> frozenset[str]:
        """The files written in this iteration that git ignores: they enter no commit."""
        return frozenset(self._ignored)

    @property
    def confidence(self) -> str:
        """The confidence of the verdict that the next commit rests on."""
        return self._confidence

    def on(self, tree: str) -> frozenset[str]:
        """Return the tools that passed on the tree."""
        return frozenset(tool for tool, passed_on in self._passed.items() if passed_on == tree)

    def note(self, tool: str, tree: str | None) -> None:
        """Note that a verification passed on the tree, or with None that it did not pass."""
        self.forget(tool)
        if tree is not None:
            self._passed[tool] = tree

    def forget(self, tool: str) -> None:
        """Let a verification count no more."""
        self._passed.pop(tool, None)

    def note_confidence(self, confidence: str) -> None:
        """Note the confidence of a verdict that passed."""
        self._confidence = confidence

    def note_written(self, path: str, *, ignored: bool) -> None:
        """Note a written file, and whether git ignores it."""
        (self._ignored.add if ignored else self._ignored.discard)(path)

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as JSON values; `restore` takes them in again."""
        return {
            "passed": dict(self._passed),
            "ignored": sorted(self._ignored),
            "confidence": self._confidence,
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take in the stored evidence of a conversation that goes on."""
        self._passed.update(stored.get("passed", {}))
        self._ignored.update(stored.get("ignored", ()))
        self._confidence = stored.get("confidence", self._confidence)


class Branch(Protocol):
    """The module's branch, in lopen's clone and in the person's repository."""

    def sync(self) -> Pause | None:
        """Take over what the person committed; the pause where that cannot be."""
        ...

    def publish(self) -> None:
        """Bring the branch into the person's repository."""
        ...


@dataclass(frozen=True)
class CommitHooks:
    """How the repository's own commit hooks run: in the sandbox, with a folder where they may write."""

    run: Runner
    scratch: Path


@dataclass(frozen=True)
class Workbench:
    """One iteration's project, journal and evidence, and the parts of the loop that tools may ask for."""

    settings: Settings
    clock: Clock
    journal: Journal
    project: Project
    person: Person
    judge: Judge
    steps: Steps
    hooks: CommitHooks
    branch: Branch
    new_task_id: Callable[[], str]
    evidence: IterationEvidence = field(default_factory=IterationEvidence)

    @property
    def fresh(self) -> frozenset[str]:
        """The verification tools that passed in this iteration on the work tree as it is now."""
        return self.evidence.on(self.project.verifier.tree())

    @property
    def session(self) -> Session:
        """The session as it is now."""
        return self.journal.session
