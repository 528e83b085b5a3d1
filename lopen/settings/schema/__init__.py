"""Every setting, its meaning, its default, its limits, and who may set it. See docs/reference/configuration.md.

Trust is part of the schema: a cloned repository's `.lopen/config.toml` may set an `anyone` key, may only
lower a limit (`LOWER`) or turn a switch to its safe side (`RAISE`), has a model it names confirmed once by
the person (`CONFIRM`), and may never set a `USER_ONLY` key.
"""

from __future__ import annotations

from pydantic import Field

from lopen.settings.schema.limits import Budget, Circuit, Memory, Resources
from lopen.settings.schema.machine import (
    Hooks,
    Mcp,
    Notify,
    RecordingSettings,
    SandboxSettings,
    Serve,
    Verify,
)
from lopen.settings.schema.parts import Allowed, SettingsSection, Trust
from lopen.settings.schema.work import (
    Git,
    Guardrails,
    ModelSettings,
    OracleSettings,
    PhaseModels,
    SessionSettings,
    ToolDiscipline,
    Workflow,
)

__all__ = ["Allowed", "Budget", "Git", "ModelSettings", "Settings", "SettingsSection", "Trust"]


class Settings(SettingsSection):
    """All of it. Immutable; made by `lopen.settings.sources.load`."""

    models: PhaseModels = Field(default_factory=PhaseModels)
    oracle: OracleSettings = Field(default_factory=OracleSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    budget: Budget = Field(default_factory=Budget)
    workflow: Workflow = Field(default_factory=Workflow)
    session: SessionSettings = Field(default_factory=SessionSettings)
    git: Git = Field(default_factory=Git)
    tool_discipline: ToolDiscipline = Field(default_factory=ToolDiscipline)
    guardrails: Guardrails = Field(default_factory=Guardrails)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    verify: Verify = Field(default_factory=Verify)
    circuit: Circuit = Field(default_factory=Circuit)
    resources: Resources = Field(default_factory=Resources)
    memory: Memory = Field(default_factory=Memory)
    mcp: Mcp = Field(default_factory=Mcp)
    hooks: Hooks = Field(default_factory=Hooks)
    notify: Notify = Field(default_factory=Notify)
    recording: RecordingSettings = Field(default_factory=RecordingSettings)
    serve: Serve = Field(default_factory=Serve)
