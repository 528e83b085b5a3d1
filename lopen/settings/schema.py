"""Every setting, its default, its limits, and who may set it (contract §12, §13).

Trust is part of the schema: a cloned repository's `.lopen/config.toml` may set an `anyone` key, may only
lower a limit (`LOWER`) or turn a switch to its safe side (`RAISE`), has a model it names confirmed once by
the person (`CONFIRM`), and may never set a `USER_ONLY` key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


@dataclass(frozen=True, slots=True)
class Trust:
    """Who may set a key from within a repository."""

    rule: Literal["anyone", "lower", "raise", "confirm", "user_only"]


LOWER = Trust("lower")  # 0 means "off" or "unlimited" and counts as the loosest value
RAISE = Trust("raise")  # for switches: true is the safe side
CONFIRM = Trust("confirm")
USER_ONLY = Trust("user_only")

Fraction = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
Money = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A table of the configuration file: closed, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Models(Section):
    requirement_gathering: Annotated[str, CONFIRM] = "claude-opus-5-5"
    planning: Annotated[str, CONFIRM] = "claude-opus-5-5"
    building: Annotated[str, CONFIRM] = "claude-sonnet-5-5"
    research: Annotated[str, CONFIRM] = "claude-sonnet-5-5"
    fallback: Annotated[list[str], CONFIRM] = Field(default_factory=lambda: ["claude-sonnet-5"])


class Oracle(Section):
    model: Annotated[str, CONFIRM] = "claude-haiku-5-5"


ADDRESS = r"^(https?://[^\s/?#]+\S*)?$"
ADDRESS_IN_WORDS = (
    'an address that begins with http:// or https://, such as https://llm.example.org, or "" for none'
)


class Model(Section):
    provider: Annotated[Literal["anthropic", "bedrock", "vertex", "foundry"], USER_ONLY] = "anthropic"
    base_url: Annotated[str, Field(pattern=ADDRESS, description=ADDRESS_IN_WORDS), USER_ONLY] = ""
    max_tokens: Annotated[int, Field(ge=1024, le=128_000), LOWER] = 16_000
    retry_base_s: Annotated[float, Field(gt=0, le=30), LOWER] = 0.5
    max_retries: Annotated[int, Field(ge=0, le=20), LOWER] = 8
    connect_timeout_s: Annotated[float, Field(gt=0, le=300), LOWER] = 10.0
    silence_timeout_s: Annotated[float, Field(gt=0, le=3600), LOWER] = 120.0
    context_tokens: Annotated[int, Field(ge=8_000, le=1_000_000), LOWER] = 60_000


class TaskTypeBudgets(Section):
    planning: Annotated[Count, LOWER] = 50_000
    implement: Annotated[Count, LOWER] = 100_000
    review: Annotated[Count, LOWER] = 30_000
    test: Annotated[Count, LOWER] = 50_000
    deploy: Annotated[Count, LOWER] = 20_000
    design: Annotated[Count, LOWER] = 50_000


class Budget(Section):
    enabled: Annotated[bool, RAISE] = True
    enforcement: Annotated[Literal["hard", "warn"], USER_ONLY] = "hard"
    token_budget_per_module: Annotated[Count, LOWER] = 0
    premium_request_budget: Annotated[Count, LOWER] = 0
    session_tokens: Annotated[Count, LOWER] = 500_000
    task_tokens: Annotated[Count, LOWER] = 100_000
    by_task_type: TaskTypeBudgets = Field(default_factory=TaskTypeBudgets)
    warning_threshold: Annotated[Fraction, LOWER] = 0.8
    confirmation_threshold: Annotated[Fraction, LOWER] = 0.9
    pause_threshold: Annotated[Fraction, LOWER] = 1.0
    cache_read_weight: Annotated[float, Field(ge=0, le=1), USER_ONLY] = 0.1
    max_cost_usd: Annotated[Money, LOWER] = 0.0
    store: Annotated[str, Field(pattern=r"^(sqlite|rediss?://.+|unix://.+)$"), USER_ONLY] = "sqlite"
    key_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$"), USER_ONLY] = "lopen"
    ttl_s: Annotated[Positive, USER_ONLY] = 86_400

    @model_validator(mode="after")
    def _in_order(self) -> Budget:
        if not self.warning_threshold < self.confirmation_threshold <= self.pause_threshold:
            raise ValueError(
                "warning_threshold < confirmation_threshold <= pause_threshold must hold, got "
                f"{self.warning_threshold}, {self.confirmation_threshold}, {self.pause_threshold}"
            )
        return self


class Workflow(Section):
    unattended: bool = False
    max_iterations: Annotated[Positive, LOWER] = 100
    failure_threshold: Annotated[Positive, LOWER] = 3
    max_nudges: Annotated[Count, LOWER] = 2
    max_clarifications: Annotated[Count, LOWER] = 1
    templates: Annotated[str, USER_ONLY] = ""  # a folder of prompt templates that replace the bundled ones


class SessionSettings(Section):
    auto_resume: bool = True
    retention: Annotated[Positive, Field(le=10_000), LOWER] = 10
    retention_days: Annotated[Positive, Field(le=3_650), LOWER] = 7


class Git(Section):
    enabled: bool = True
    auto_commit: bool = True
    convention: Literal["conventional", "plain"] = "conventional"
    branch_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,60}$")] = "lopen/"
    isolation: Literal["branch", "worktree"] = "branch"
    sign: Annotated[bool, USER_ONLY] = False

    @model_validator(mode="after")
    def _work_comes_back(self) -> Git:
        if self.isolation == "worktree" and not (self.enabled and self.auto_commit):
            raise ValueError(
                'isolation = "worktree" needs enabled and auto_commit: only commits bring the work back '
                "from a work tree beside your checkout"
            )
        return self


class ToolDiscipline(Section):
    max_file_reads: Annotated[Positive, LOWER] = 3
    max_command_retries: Annotated[Positive, LOWER] = 3
    max_files_edited: Annotated[Positive, LOWER] = 5


class Guardrails(Section):
    disabled: Annotated[list[Literal["circular_behaviour", "tool_discipline"]], USER_ONLY] = Field(
        default_factory=list
    )


class Sandbox(Section):
    mode: Annotated[Literal["auto", "bwrap", "landlock", "none"], USER_ONLY] = "auto"
    network: Annotated[bool, USER_ONLY] = False
    max_processes: Annotated[Positive, USER_ONLY] = 512
    max_memory_mb: Annotated[Positive, USER_ONLY] = 4_096
    max_file_mb: Annotated[Positive, USER_ONLY] = 1_024
    verify_timeout_s: Annotated[float, Field(gt=0, le=7_200), LOWER] = 600.0


class Rule(Section):
    """One circuit rule; None keeps the rule's own default."""

    enabled: Annotated[bool, RAISE] = True
    threshold: Annotated[Positive | None, LOWER] = None
    window: Annotated[float | None, Field(gt=0), USER_ONLY] = None
    cooldown_base: Annotated[float | None, Field(ge=0), USER_ONLY] = None


class Circuit(Section):
    enabled: Annotated[bool, RAISE] = True
    max_iterations: Rule = Field(default_factory=Rule)
    duplicate_call: Rule = Field(default_factory=Rule)
    rapid_fire: Rule = Field(default_factory=Rule)
    tool_failure: Rule = Field(default_factory=Rule)
    sequential_tool: Rule = Field(default_factory=Rule)
    hook_recursion: Rule = Field(default_factory=Rule)
    agent_spawn: Rule = Field(default_factory=Rule)
    external_api: Rule = Field(default_factory=Rule)


class Resources(Section):
    max_concurrent_agents: Annotated[Positive, LOWER] = 5
    max_agents_per_session: Annotated[Positive, LOWER] = 10
    agent_spawn_cooldown_s: Annotated[Seconds, USER_ONLY] = 10.0
    api_session_max: Annotated[Positive, LOWER] = 50
    cost_warn_usd: Annotated[Money, LOWER] = 1.0
    cost_block_usd: Annotated[Money, LOWER] = 5.0


class Memory(Section):
    log_max_kb: Annotated[Positive, Field(le=1_000_000), LOWER] = 50
    log_max_lines: Annotated[Positive, Field(le=10_000_000), LOWER] = 1_000
    log_max_age_days: Annotated[Positive, Field(le=3_650), LOWER] = 7
    log_keep: Annotated[Positive, Field(le=1_000), LOWER] = 5
    evidence_max: Annotated[Positive, Field(le=100_000), LOWER] = 100
    tool_history_max: Annotated[Positive, Field(le=100_000), USER_ONLY] = 50
    state_max_mb: Annotated[Positive, Field(le=10_000), LOWER] = 5


class Hooks(Section):
    external_commands: Annotated[list[str], USER_ONLY] = Field(
        default_factory=lambda: ["oracle.py", "swarm.py", "research.py"]
    )
    timeout_s: Annotated[float, Field(gt=0, le=30), USER_ONLY] = 2.0


class Notify(Section):
    command: Annotated[str, USER_ONLY] = ""


class Recording(Section):
    enabled: Annotated[bool, USER_ONLY] = True


class Serve(Section):
    host: Annotated[str, USER_ONLY] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535), USER_ONLY] = 8_750


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
