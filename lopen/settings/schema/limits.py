"""Settings of budgets, circuits, sub-agents and kept data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lopen.core.money import NAMES, ORDER, in_order
from lopen.settings.schema.parts import (
    LOWER,
    RAISE,
    USER_ONLY,
    Count,
    Fraction,
    Money,
    Positive,
    Seconds,
    SettingsSection,
)


class TaskTypeBudgets(SettingsSection):
    """Token budgets by the type of a task."""

    planning: Annotated[
        Count, Field(description="Token budget of a task of type `planning`; 0 means no limit."), LOWER
    ] = 200_000
    implement: Annotated[
        Count,
        Field(
            description="Token budget of a task of type `implement`; unset follows `budget.task_tokens`; 0 means no limit."
        ),
        LOWER,
    ] = 400_000
    review: Annotated[
        Count, Field(description="Token budget of a task of type `review`; 0 means no limit."), LOWER
    ] = 120_000
    test: Annotated[
        Count, Field(description="Token budget of a task of type `test`; 0 means no limit."), LOWER
    ] = 200_000
    deploy: Annotated[
        Count, Field(description="Token budget of a task of type `deploy`; 0 means no limit."), LOWER
    ] = 80_000
    design: Annotated[
        Count, Field(description="Token budget of a task of type `design`; 0 means no limit."), LOWER
    ] = 200_000


class Budget(SettingsSection):
    """Limits of tokens, requests and money."""

    enabled: Annotated[
        bool, Field(description="Count against the budgets and hold work back at their limits."), RAISE
    ] = True
    enforcement: Annotated[
        Literal["hard", "warn"],
        Field(description="Pause at a used-up budget (`hard`), or warn and go on (`warn`)."),
        USER_ONLY,
    ] = "hard"
    token_budget_per_module: Annotated[
        Count, Field(description="Token budget of a module over all its sessions; 0 means no limit."), LOWER
    ] = 0
    premium_request_budget: Annotated[
        Count,
        Field(description="Model requests that a module may make over all its sessions; 0 means no limit."),
        LOWER,
    ] = 0
    session_tokens: Annotated[
        Count, Field(description="Token budget of a session; 0 means no limit."), LOWER
    ] = 2_000_000
    task_tokens: Annotated[
        Count,
        Field(description="Token budget of a task whose type has none of its own; 0 means no limit."),
        LOWER,
    ] = 400_000
    by_task_type: TaskTypeBudgets = Field(default_factory=TaskTypeBudgets)
    warning_threshold: Annotated[
        Fraction, Field(description="Used share of a budget at which lopen warns."), LOWER
    ] = 0.8
    confirmation_threshold: Annotated[
        Fraction,
        Field(description="Used share of the module's budget at which a person has to confirm."),
        LOWER,
    ] = 0.9
    pause_threshold: Annotated[
        Fraction,
        Field(description="Used share of a budget at which work pauses until the budget is extended."),
        LOWER,
    ] = 1.0
    cache_read_weight: Annotated[
        float,
        Field(ge=0, le=1, description="Share of a token that a token read from the prompt cache counts as."),
        USER_ONLY,
    ] = 0.1
    max_cost_usd: Annotated[
        Money,
        Field(
            description="Most that a session may cost, in US dollars, oracle and sub-agents included; 0 means no limit."
        ),
        LOWER,
    ] = 0.0
    store: Annotated[
        str,
        Field(
            pattern=r"^(sqlite|rediss?://.+|unix://.+)$",
            description="Store of budgets and circuits: `sqlite` (in `.lopen/state.db`) or the address of a Redis server.",
        ),
        USER_ONLY,
    ] = "sqlite"
    key_prefix: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="First part of every key in Redis."),
        USER_ONLY,
    ] = "lopen"
    ttl_s: Annotated[
        Positive,
        Field(
            description="Time that a counter is kept after its last change, in seconds: each one in Redis; in `state.db` those of Claude Code's sessions."
        ),
        USER_ONLY,
    ] = 86_400

    @model_validator(mode="after")
    def _in_order(self) -> Budget:
        found = (self.warning_threshold, self.confirmation_threshold, self.pause_threshold)
        ordered = in_order(found, self.model_fields_set)
        if ordered is None:
            raise ValueError(f"{ORDER}, got {', '.join(map(str, found))}")
        self.__dict__.update(zip(NAMES, ordered, strict=True))  # without marking them as set
        return self


class Rule(SettingsSection):
    """One circuit rule; None keeps the rule's own default. `{calls}` stands for the description of the rule."""

    enabled: Annotated[bool, Field(description="Let the circuit trip on {calls}."), RAISE] = True
    threshold: Annotated[
        Positive | None,
        Field(
            description="Number of {calls} at which the circuit trips; unset keeps the default of the rule."
        ),
        LOWER,
    ] = None
    window: Annotated[
        float | None,
        Field(
            gt=0,
            description="Span in which {calls} are counted, in seconds or turns as the rule defines; unset keeps its default.",
        ),
        USER_ONLY,
    ] = None
    cooldown_base: Annotated[
        float | None,
        Field(
            ge=0,
            description="First cooldown after too many {calls}, in seconds; it scales the later ones; unset keeps the default.",
        ),
        USER_ONLY,
    ] = None


class Circuit(SettingsSection):
    """The circuit breaker and its rules."""

    enabled: Annotated[bool, Field(description="Let circuits trip."), RAISE] = True
    max_iterations: Rule = Field(
        default_factory=Rule, description="tool calls since the last passing verify command"
    )
    duplicate_call: Rule = Field(default_factory=Rule, description="identical calls in a row")
    rapid_fire: Rule = Field(default_factory=Rule, description="calls in quick succession")
    tool_failure: Rule = Field(default_factory=Rule, description="failures of one tool")
    sequential_tool: Rule = Field(default_factory=Rule, description="calls of one tool within a turn")
    hook_recursion: Rule = Field(default_factory=Rule, description="hooks inside of hooks")
    agent_spawn: Rule = Field(default_factory=Rule, description="starts of sub-agents")
    external_api: Rule = Field(default_factory=Rule, description="external API calls")


class Resources(SettingsSection):
    """Limits of sub-agents and of what they and external calls cost."""

    max_concurrent_agents: Annotated[
        Positive, Field(description="Sub-agents that may run at the same time."), LOWER
    ] = 5
    max_agents_per_session: Annotated[
        Positive, Field(description="Sub-agents that one session may start."), LOWER
    ] = 10
    agent_spawn_cooldown_s: Annotated[
        Seconds, Field(description="Shortest time between two starts of sub-agents, in seconds."), USER_ONLY
    ] = 10.0
    api_session_max: Annotated[
        Positive, Field(description="External API calls that one session may make."), LOWER
    ] = 50
    cost_warn_usd: Annotated[
        Money,
        Field(
            description="Cost of sub-agents and external calls in a session at which lopen warns, in US dollars; 0 switches it off."
        ),
        LOWER,
    ] = 1.0
    cost_block_usd: Annotated[
        Money,
        Field(
            description="Cost of sub-agents and external calls in a session at which further ones are refused, in US dollars; 0 switches it off."
        ),
        LOWER,
    ] = 5.0


class Memory(SettingsSection):
    """Sizes and ages of what lopen keeps in `.lopen/`."""

    log_max_kb: Annotated[
        Positive, Field(le=1_000_000, description="Size at which a log file is rotated, in KiB."), LOWER
    ] = 50
    log_max_lines: Annotated[
        Positive, Field(le=10_000_000, description="Number of lines at which a log file is rotated."), LOWER
    ] = 1_000
    log_max_age_days: Annotated[
        Positive, Field(le=3_650, description="Age at which a log file is rotated, in days."), LOWER
    ] = 7
    log_keep: Annotated[
        Positive,
        Field(le=1_000, description="Rotated files kept of each log, and tracebacks of each kind."),
        LOWER,
    ] = 5
    evidence_max: Annotated[
        Positive,
        Field(le=100_000, description="Entries kept in a list of evidence; older ones are summarised."),
        LOWER,
    ] = 100
    tool_history_max: Annotated[
        Positive,
        Field(le=100_000, description="Recent tool calls in which the circuits look for patterns."),
        USER_ONLY,
    ] = 50
    state_max_mb: Annotated[
        Positive,
        Field(
            le=10_000, description="Size that `.lopen/` is kept under, recordings and archives apart, in MiB."
        ),
        LOWER,
    ] = 5
