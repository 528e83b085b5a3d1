"""The workbench: everything that the tools of one iteration work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lopen.core.clock import Clock
from lopen.core.events import AlertRaised
from lopen.files.module_branch import ModuleBranch
from lopen.files.workplace import Workplace
from lopen.files.workspace import Workspace
from lopen.git.repository import Repository
from lopen.judge.evidence import BuilderWork, RanCommand
from lopen.judge.judging import Judge
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.journal import Journal
from lopen.store.project_documents import Specifications
from lopen.tools.calls import ToolResult
from lopen.tools.questions import Person
from lopen.verification.runners import shown_output
from lopen.verification.test_files import is_data, looks_like_test
from lopen.verification.verifier import Verifier
from lopen.workflow.pauses import Pause
from lopen.workflow.session import Session

COMMANDS_KEPT = 10  # of the model's commands the judge is shown the last ones
OUTPUT_KEPT = 1_500  # characters of each one's output


@dataclass(frozen=True)
class Project:
    """The project as one session works on it: its files, specifications and commands."""

    place: Workplace
    workspace: Workspace
    specifications: Specifications
    sandbox: Sandbox
    verifier: Verifier
    sandbox_rules: str  # the rules of the sandbox, for the prompt

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
        return any(looks_like_test(p) and not is_data(p) for p in self.workspace.list_files().files)

    def load_spec(self, module: str) -> Specification:
        """Return a module's specification as it is now."""
        return self.specifications.load(module)


class Steps(Protocol):
    """The parts of the loop that tools may ask for."""

    def verify_done(self, bench: Workbench) -> Pause | None:
        """Verify the components that step 3 recorded as done; return the pause if a person is needed."""
        ...

    def research(self, bench: Workbench, topic: str, question: str) -> ToolResult:
        """Let a sub-agent answer the question and log its findings."""
        ...


@dataclass
class IterationEvidence:
    """The verifications of one iteration, and the written files that no commit will hold."""

    passed: dict[str, str] = field(default_factory=dict)  # verification tool → id of the tree it passed on
    failed: dict[str, str] = field(
        default_factory=dict
    )  # → the tree, or the judge's evidence, it failed on last
    ignored: set[str] = field(default_factory=set)  # written in this iteration, but git ignores them
    counted: bool = False  # a rejection counts already as the failed attempt that this iteration is
    confidence: str = "high"  # of the verdict that the next commit rests on
    commands: list[RanCommand] = field(default_factory=list)  # the last ones of the model

    def on(self, tree: str) -> frozenset[str]:
        """Return the tools that passed on the tree."""
        return frozenset(tool for tool, passed_on in self.passed.items() if passed_on == tree)

    def note(self, tool: str, tree: str | None) -> None:
        """Note that a verification passed on the tree, or with None that it counts no more."""
        self.passed.pop(tool, None)
        if tree is not None:
            self.passed[tool] = tree

    def note_written(self, path: str, *, ignored: bool) -> None:
        """Note a written file, and whether git ignores it."""
        (self.ignored.add if ignored else self.ignored.discard)(path)

    def note_command(self, command: str, exit_code: int | None, output: str) -> None:
        """Note a command that the model ran, with the lines of its output that tell something."""
        shown = shown_output(output, passed=exit_code == 0)[-OUTPUT_KEPT:]
        ran = RanCommand(command, exit_code, shown)
        self.commands[:] = [*(each for each in self.commands if each != ran), ran][-COMMANDS_KEPT:]

    def ran_last(self, command: str) -> bool:
        """Tell whether this was the model's last command."""
        return bool(self.commands) and self.commands[-1].command == command

    def builder(self, note: str) -> BuilderWork:
        """Return the builder's part of the evidence, with its word to the judge."""
        return BuilderWork(note, frozenset(self.ignored), tuple(self.commands))

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as JSON values; `restore` takes them in again."""
        return asdict(self) | {"ignored": sorted(self.ignored)}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take in the stored evidence of a conversation that goes on."""
        self.passed.update(stored.get("passed", {}))
        self.failed.update(stored.get("failed", {}))
        self.ignored.update(stored.get("ignored", ()))
        self.counted = stored.get("counted", self.counted)
        self.confidence = stored.get("confidence", self.confidence)
        self.commands.extend(RanCommand(**ran) for ran in stored.get("commands", ()))


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
    branch: ModuleBranch
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

    def run_command(self, command: Command) -> tuple[CommandResult, tuple[str, ...]]:
        """Run a command; put back and report the protected paths that it changed, and return them too.

        See docs/reference/sandbox.md.
        """
        restored: tuple[str, ...] = ()
        try:
            ran = self.project.sandbox.run(command)
        finally:
            if restored := self.project.place.put_back(self.session.module):
                message = f"a command changed protected paths; put back: {', '.join(restored)}"
                self.journal.tell(AlertRaised("protected_path", f"session:{self.session.id}", message))
        return ran, restored
