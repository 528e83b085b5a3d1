"""What the loop works with: the adapters of one session, put together by `lopen.application.wiring` alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lopen.base.clock import Clock
from lopen.documents.spec import Specification
from lopen.git.checkout import Checkout
from lopen.limits.budgets.meter import Meter
from lopen.loop.model_calls import ModelCalls
from lopen.loop.oracle_calls import OracleCalls
from lopen.loop.task_commit import Committer
from lopen.settings.schema import Settings
from lopen.storage.audit import AuditTrail
from lopen.storage.journal import Journal
from lopen.storage.sessions import SessionStore
from lopen.storage.specifications import Specifications
from lopen.tools.catalogue import catalogue
from lopen.tools.commands import Commands
from lopen.tools.registry import Registry
from lopen.tools.verification import Verifier
from lopen.tools.watch import Watch
from lopen.tools.workbench import Person
from lopen.workflow.steps import Step, phase_of
from lopen.workspace.work_trees import WorkTree
from lopen.workspace.workspace import Workspace


class Approver(Protocol):
    """Whoever may open the gate at this terminal, if anybody can."""

    def approve(self, spec: Specification) -> bool:
        """Offer a review; True only where a person approved here and now (the approval is stored)."""
        ...


class NoApprover:
    """Nobody is there: the gate waits for `lopen approve`."""

    def approve(self, spec: Specification) -> bool:
        return False


@dataclass
class Ports:
    """One session's adapters and settings. Every field is real; "off" is an adapter too."""

    place: WorkTree
    settings: Settings
    clock: Clock
    store: SessionStore
    journal: Journal
    repository: Checkout
    workspace: Workspace
    commands: Commands
    sandbox_rules: str  # what commands may do, for the prompt
    meter: Meter
    asker: ModelCalls
    jury: OracleCalls
    committer: Committer
    verifier: Verifier
    registry: Registry
    audit: AuditTrail
    watch: Watch
    person: Person
    approver: Approver
    specifications: Specifications
    write_plan: Callable[[], None]
    model_override: str = ""
    request: str = ""  # the person's own words in this process; the session keeps them
    draft: bool = False  # step 1 was asked for: converse even where the specification passes
    drafted: bool = False  # step 1's conversation has been held in this process
    languages: tuple[str, ...] = field(default_factory=tuple)
    _task_number: int = 0

    @property
    def root(self) -> Path:
        """Where the work is done."""
        return self.place.root

    def model_for(self, step: Step) -> str:
        """The model that does this step's phase."""
        return self.model_override or str(getattr(self.settings.models, phase_of(step)))

    def agent_for(self, step: Step) -> str:
        """Whose budget line a turn goes on."""
        return "builder" if phase_of(step) == "building" else "planner"

    def load_spec(self, module: str) -> Specification:
        """A module's specification as it is now."""
        return self.specifications.load(module)

    def take_commands(self, commands: Mapping[str, str | None]) -> None:
        """From now on these are the approved verify commands, and the tools that run them are offered."""
        if dict(commands) != dict(self.verifier.commands):
            self.verifier.commands = commands
            self.registry = Registry(catalogue(commands))

    def new_task_id(self) -> str:
        """`<module>-t<n>`, a number no task of the module has had."""
        self._task_number = max(
            self._task_number + 1, self.store.next_task_number(self.journal.session.module)
        )
        return f"{self.journal.session.module}-t{self._task_number}"

    def committed_tree(self) -> str:
        """The tree that work on a task starts from: what is committed, or the work tree where nothing is."""
        head = self.repository.head().commit
        return self.repository.tree_of(head) if head and self.commits else self.verifier.tree()

    @property
    def commits(self) -> bool:
        """Completed work is committed; else it stays in the tree, and tree ids are recorded."""
        return self.settings.git.enabled and self.settings.git.auto_commit
