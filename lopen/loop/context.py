"""The adapters and settings of one session, in groups that have a meaning. `lopen.application.wiring` makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from lopen.core.clock import Clock
from lopen.files.module_branch import ModuleBranch
from lopen.judge.judging import Judge
from lopen.limits.meter import Meter
from lopen.loop.model_calls import ModelCalls
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.audit import AuditTrail
from lopen.store.journal import ConversationStore, Journal
from lopen.store.sessions import SessionStore
from lopen.tools.catalogue import Registry, Tool, catalogue
from lopen.tools.questions import Person
from lopen.tools.running import Watch
from lopen.tools.workbench import Project
from lopen.workflow.steps import Step, phase_of


class Approver(Protocol):
    """The person who may open the gate at this terminal, if there is one."""

    def approve(self, spec: Specification) -> bool:
        """Offer a review; True only where a person approved here and now (the approval is stored)."""
        ...


class NoApprover:
    """Nobody is there: the gate waits for `lopen approve`."""

    def approve(self, spec: Specification) -> bool:
        return False


@dataclass(frozen=True)
class People:
    """The people of this process: one answers the model, one may open the gate."""

    person: Person
    approver: Approver


class TaskIds:
    """Ids for new tasks: `<module>-t<n>`, a number that no task of the module has had."""

    def __init__(self, store: SessionStore, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._last = 0

    def __call__(self) -> str:
        module = self._journal.session.module
        self._last = max(self._last + 1, self._store.next_task_number(module))
        return f"{module}-t{self._last}"


@dataclass(frozen=True)
class SessionRecord:
    """The durable record of the session: its state and history, the audit trail, the drawn plan."""

    journal: Journal
    store: SessionStore
    audit: AuditTrail
    conversations: ConversationStore
    write_plan: Callable[[], None]
    new_task_id: Callable[[], str]


@dataclass(frozen=True)
class SessionModels:
    """The models that the session asks."""

    calls: ModelCalls
    judge: Judge
    override: str = ""  # one model for every phase


@dataclass(frozen=True)
class Guards:
    """The guards of spending and of tool calls."""

    meter: Meter
    watch: Watch


@dataclass(frozen=True)
class RunRequest:
    """The person's request for this run."""

    request: str = ""  # in their own words; the session keeps them
    draft: bool = False  # step 1 is asked for: converse even where the specification passes
    iterations_before: int = 0  # of the session, when this process took it up


@dataclass(frozen=True)
class SessionContext:
    """One session's adapters and settings. Every field is real; "off" is an adapter too."""

    settings: Settings
    clock: Clock
    project: Project
    record: SessionRecord
    models: SessionModels
    guards: Guards
    people: People
    branch: ModuleBranch
    asked: RunRequest = RunRequest()
    more_tools: Callable[[], tuple[Tool, ...]] = tuple

    def model_for(self, step: Step) -> str:
        """Return the model that does this step's phase."""
        return self.models.override or str(getattr(self.settings.models, phase_of(step)))

    def agent_for(self, step: Step) -> str:
        """Return the agent whose budget line a turn goes on."""
        return "builder" if phase_of(step) == "building" else "planner"

    @property
    def registry(self) -> Registry:
        """The tools, with the tools for the approved verify commands and the tools of the person's servers."""
        return _registry(tuple(self.project.verifier.commands.items()), self.more_tools())

    def take_commands(self, commands: Mapping[str, str | None]) -> None:
        """Use these as the approved verify commands from now on."""
        self.project.verifier.commands = commands

    def committed_tree(self) -> str:
        """Return the tree that work on a task starts from."""
        repository = self.project.repository
        head = repository.head().commit
        return repository.tree_of(head) if head else self.project.verifier.tree()

    @property
    def drafted(self) -> bool:
        """This process has held step 1's conversation."""
        return self.record.journal.session.limits.iterations > self.asked.iterations_before


@lru_cache(maxsize=8)
def _registry(commands: tuple[tuple[str, str | None], ...], more: tuple[Tool, ...]) -> Registry:
    return Registry((*catalogue(dict(commands)), *more))
