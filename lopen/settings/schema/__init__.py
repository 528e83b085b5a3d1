"""Every setting, its meaning, its default, its limits, and who may set it. See docs/reference/configuration.md.

Trust is part of the schema: a cloned repository's `.lopen/config.toml` may set an `anyone` key, may only
lower a limit (`LOWER`) or turn a switch to its safe side (`RAISE`), has a model it names confirmed once by
the person (`CONFIRM`), and may never set a `USER_ONLY` key.
"""

from __future__ import annotations

from pydantic import Field

from lopen.settings.schema.limits import Budget, Circuit, Memory, Resources
from lopen.settings.schema.machine import Hooks, Notify, Recording, Sandbox, Serve
from lopen.settings.schema.models import Model, Models, Oracle
from lopen.settings.schema.parts import Allowed, Section, Trust
from lopen.settings.schema.work import Git, Guardrails, SessionSettings, ToolDiscipline, Workflow

__all__ = ["Allowed", "Budget", "Git", "Model", "Section", "Settings", "Trust"]


class Settings(Section):
    """All of it. Immutable; made by `lopen.settings.sources.load`."""

    models: Models = Field(default_factory=Models)
    oracle: Oracle = Field(default_factory=Oracle)
    model: Model = Field(default_factory=Model)
    budget: Budget = Field(default_factory=Budget)
    workflow: Workflow = Field(default_factory=Workflow)
    session: SessionSettings = Field(default_factory=SessionSettings)
    git: Git = Field(default_factory=Git)
    tool_discipline: ToolDiscipline = Field(default_factory=ToolDiscipline)
    guardrails: Guardrails = Field(default_factory=Guardrails)
    sandbox: Sandbox = Field(default_factory=Sandbox)
    circuit: Circuit = Field(default_factory=Circuit)
    resources: Resources = Field(default_factory=Resources)
    memory: Memory = Field(default_factory=Memory)
    hooks: Hooks = Field(default_factory=Hooks)
    notify: Notify = Field(default_factory=Notify)
    recording: Recording = Field(default_factory=Recording)
    serve: Serve = Field(default_factory=Serve)
