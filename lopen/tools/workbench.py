"""The workbench: what the tools of one iteration work with, and what they leave on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lopen.base.clock import Clock
from lopen.documents.spec import Specification
from lopen.oracle.verdict import Scope
from lopen.settings.schema import Settings
from lopen.storage.journal import Journal
from lopen.tools.commands import Commands
from lopen.tools.results import ToolResult
from lopen.tools.verification import Verifier
from lopen.workflow.session import Pause, Session
from lopen.workspace.workspace import Workspace


class Person(Protocol):
    """Whoever sits at the terminal, if anybody does."""

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        """Their answer; None where nobody can answer now."""
        ...


class Nobody:
    """The person who is not there."""

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        return None


@dataclass
class Workbench:
    """One iteration's. `judge` and `complete` and `research` are the loop's own, handed in."""

    root: Path
    settings: Settings
    journal: Journal
    clock: Clock
    workspace: Workspace
    commands: Commands
    verifier: Verifier
    person: Person
    write_paper: Callable[[str, str], None]  # name below the root, text
    load_spec: Callable[[str], Specification]  # by module name
    judge: Callable[[Workbench, Scope, str], ToolResult]  # on a subject's id
    complete: Callable[[Workbench, str], ToolResult]  # task id
    verify_done: Callable[[Workbench], None]  # lopen's own verification of components recorded as done
    research: Callable[[Workbench, str, str], ToolResult]  # topic, question
    new_task_id: Callable[[], str]
    passed: dict[str, str] = field(default_factory=dict)  # verification tool → tree it passed on
    ignored: set[str] = field(default_factory=set)  # files written in this iteration that enter no commit
    pause: Pause | None = None  # set by a tool that needs a person
    false_claim: bool = False  # this turn claimed a completion without what it requires
    recorded: bool = False  # the step's result is in
    confidence: str = "high"  # of the verdict the next commit rests on

    @property
    def fresh(self) -> frozenset[str]:
        """Verification tools that passed in this iteration on the work tree as it is now."""
        tree = self.verifier.tree()
        return frozenset(tool for tool, passed_on in self.passed.items() if passed_on == tree)

    @property
    def session(self) -> Session:
        """The session as it is now."""
        return self.journal.session
