"""Every setting, its meaning, its default, its limits, and who may set it. See docs/reference/configuration.md.

Trust is part of the schema. A cloned repository's `.lopen/config.toml` may set a key without a mark. It may only lower
a limit (`LOWER`) or turn a switch to its safe side (`RAISE`). The person confirms a model that it names once
(`CONFIRM`). It may never set a `USER_ONLY` key.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from lopen.core.money import MOST_USD
from lopen.settings.rule_numbers import RULE_NUMBERS


@dataclass(frozen=True, slots=True)
class Trust:
    """Who may set a key from within a repository."""

    rule: Literal["anyone", "lower", "raise", "confirm", "user_only"]


@dataclass(frozen=True, slots=True)
class Allowed:
    """The allowed values in words, where the type alone does not say them well."""

    words: str


LOWER = Trust("lower")  # 0 means "off" or "unlimited" and counts as the loosest value
RAISE = Trust("raise")  # for switches: true is the safe side
CONFIRM = Trust("confirm")
USER_ONLY = Trust("user_only")

Limit = Annotated[int, Field(ge=1), LOWER]
LimitOrNone = Annotated[int, Field(ge=0), LOWER]  # 0: no limit
Share = Annotated[float, Field(gt=0, le=1), LOWER]
Money = Annotated[float, Field(ge=0, le=MOST_USD), LOWER]
OwnNumber = Annotated[int, Field(ge=1), USER_ONLY]
OwnSwitch = Annotated[bool, USER_ONLY]
OwnText = Annotated[str, USER_ONLY]
OwnNames = Annotated[list[str], USER_ONLY]
Protection = Annotated[bool, RAISE]


class SettingsSection(BaseModel):
    """A table of the configuration file: closed, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)


# models

ALIASES = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5"}


def full_name(model: str) -> str:
    """Return the name of the model that an alias stands for."""
    return ALIASES.get(model, model)


ModelName = Annotated[str, AfterValidator(full_name)]
ConfirmedModel = Annotated[ModelName, CONFIRM]


class PhaseModels(SettingsSection):
    """The model of each phase."""

    requirement_gathering: ConfirmedModel = Field(
        "claude-sonnet-5-5", description="Model that drafts and refines the specification."
    )
    planning: ConfirmedModel = Field("claude-sonnet-5-5", description="Model of the planning steps.")
    building: ConfirmedModel = Field("claude-sonnet-5-5", description="Model that writes the code.")
    research: ConfirmedModel = Field("claude-sonnet-5-5", description="Model of research sub-agents.")
    fallback: Annotated[list[ModelName], CONFIRM] = Field(
        default_factory=lambda: ["claude-sonnet-5"],
        description="Models tried in this order when the chosen one stays unavailable.",
    )


class OracleSettings(SettingsSection):
    """The judge: the model that judges finished work."""

    model: ConfirmedModel = Field(
        "claude-haiku-5-5", description="The judge: the model that judges finished work."
    )
    mutation: Annotated[Literal["auto", "off"], USER_ONLY] = Field(
        "auto",
        description="Break the changed functions before a verdict: the tests must fail, and show which small faults they notice.",
    )


class ModelSettings(SettingsSection):
    """The connection to the model."""

    provider: Annotated[Literal["anthropic", "bedrock", "vertex", "foundry"], USER_ONLY] = Field(
        "anthropic", description="Service that serves the models."
    )
    base_url: Annotated[
        OwnText,
        Allowed(
            'an address that begins with http:// or https://, such as https://llm.example.org, or "" for none'
        ),
    ] = Field(
        "",
        pattern=r"^(https?://[^\s/?#]+\S*)?$",
        description="Address of an Anthropic-compatible endpoint; empty for the provider's own.",
    )
    max_tokens: Annotated[int, LOWER] = Field(
        32_000, ge=1024, le=128_000, description="Largest answer to one request, in tokens."
    )
    retry_base_s: Annotated[float, LOWER] = Field(
        0.5,
        gt=0,
        le=30,
        description="First wait before a failed request is tried again, in seconds; each further wait is longer.",
    )
    max_retries: Annotated[int, USER_ONLY] = Field(
        8,
        ge=0,
        le=20,
        description="Times a failed request is tried again before the next fallback model is used.",
    )
    silence_timeout_s: Annotated[float, LOWER] = Field(
        120.0, gt=0, le=3600, description="Longest silence within a response, in seconds."
    )


# limits


class TaskTypeBudgets(SettingsSection):
    """Token budgets by the type of a task."""

    planning: LimitOrNone = Field(
        200_000, description="Token budget of a task of type `planning`; 0 means no limit."
    )
    implement: LimitOrNone = Field(
        400_000,
        description="Token budget of a task of type `implement`; unset follows `budget.task_tokens`; 0 means no limit.",
    )
    review: LimitOrNone = Field(
        120_000, description="Token budget of a task of type `review`; 0 means no limit."
    )
    test: LimitOrNone = Field(200_000, description="Token budget of a task of type `test`; 0 means no limit.")
    deploy: LimitOrNone = Field(
        80_000, description="Token budget of a task of type `deploy`; 0 means no limit."
    )
    design: LimitOrNone = Field(
        200_000, description="Token budget of a task of type `design`; 0 means no limit."
    )


class Budget(SettingsSection):
    """Limits of tokens, requests and money."""

    enabled: Protection = Field(
        True, description="Count against the budgets and hold work back at their limits."
    )
    enforcement: Annotated[Literal["hard", "warn"], USER_ONLY] = Field(
        "hard", description="Pause at a used-up budget (`hard`), or warn and go on (`warn`)."
    )
    token_budget_per_module: LimitOrNone = Field(
        0, description="Token budget of a module over all its sessions; 0 means no limit."
    )
    premium_request_budget: LimitOrNone = Field(
        0, description="Model requests that a module may make over all its sessions; 0 means no limit."
    )
    session_tokens: LimitOrNone = Field(2_000_000, description="Token budget of a session; 0 means no limit.")
    task_tokens: LimitOrNone = Field(
        400_000, description="Token budget of a task whose type has none of its own; 0 means no limit."
    )
    by_task_type: TaskTypeBudgets = Field(default_factory=TaskTypeBudgets)
    warning_threshold: Share = Field(0.8, description="Used share of a budget at which lopen warns.")
    confirmation_threshold: Share = Field(
        0.9, description="Used share of the module's budget at which a person has to confirm."
    )
    pause_threshold: Share = Field(
        1.0, description="Used share of a budget at which work pauses until the budget is extended."
    )
    max_cost_usd: Money = Field(
        0.0,
        description="Most that a session may cost, in US dollars, judge and sub-agents included; 0 means no limit.",
    )
    store: OwnText = Field(
        "sqlite",
        pattern=r"^(sqlite|rediss?://.+|unix://.+)$",
        description="Store of budgets and circuits: `sqlite` (in `.lopen/state.db`) or the address of a Redis server.",
    )
    key_prefix: OwnText = Field(
        "lopen", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="First part of every key in Redis."
    )
    ttl_s: OwnNumber = Field(
        86_400,
        description="Time that a counter is kept after its last change, in seconds: each one in Redis; in `state.db` those of Claude Code's sessions.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Budget:
        """Move the thresholds that are not set between the others; refuse what cannot be put in order."""
        warning, confirmation, pause = (
            self.warning_threshold,
            self.confirmation_threshold,
            self.pause_threshold,
        )
        given, found = self.model_fields_set, f"{warning}, {confirmation}, {pause}"
        if "warning_threshold" not in given and warning >= pause:
            warning = round(0.8 * pause, 4)
        if "confirmation_threshold" not in given and not warning < confirmation <= pause:
            confirmation = round((warning + pause) / 2, 4)
        if not warning < confirmation <= pause:
            rule = "warning_threshold < confirmation_threshold <= pause_threshold"
            raise ValueError(f"{rule} must hold, got {found}")
        moved = {"warning_threshold": warning, "confirmation_threshold": confirmation}
        self.__dict__.update(moved)  # without marking them as set
        return self


class AcknowledgedRule(SettingsSection):
    """A circuit rule that only a person's acknowledgement ends. `{calls}` stands for the description of the rule."""

    threshold: Limit = Field(description="Number of {calls} at which the circuit trips.")


class CooldownRule(AcknowledgedRule):
    """A circuit rule that ends by cooling down."""

    enabled: Protection = Field(True, description="Let the circuit trip on {calls}.")
    window: Annotated[float, USER_ONLY] = Field(
        gt=0, description="Span in which {calls} are counted, in seconds or turns as the rule defines."
    )
    cooldown_base: Annotated[float, USER_ONLY] = Field(
        ge=0, description="First cooldown after too many {calls}, in seconds; it scales the later ones."
    )


class Circuit(SettingsSection):
    """The circuit breaker and its rules."""

    enabled: Protection = Field(True, description="Let circuits trip.")
    max_iterations: AcknowledgedRule = Field(description="tool calls since the last passing verify command")
    duplicate_call: AcknowledgedRule = Field(description="identical calls in a row")
    rapid_fire: CooldownRule = Field(description="calls in quick succession")
    tool_failure: CooldownRule = Field(description="failures of one tool")
    sequential_tool: CooldownRule = Field(description="calls of one tool within a turn")
    hook_recursion: CooldownRule = Field(description="hooks inside of hooks")
    agent_spawn: CooldownRule = Field(description="starts of sub-agents")
    external_api: CooldownRule = Field(description="external API calls")

    @model_validator(mode="before")
    @classmethod
    def _with_own_numbers(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Give each rule its own numbers where no source sets them."""
        rules = {name: asdict(numbers) for name, numbers in RULE_NUMBERS.items()}
        own = {name: {k: v for k, v in rule.items() if v} for name, rule in rules.items()}
        return {**given, **{name: {**rule, **given.get(name, {})} for name, rule in own.items()}}


class Resources(SettingsSection):
    """Limits of sub-agents, and of the cost of sub-agents and external calls."""

    max_concurrent_agents: Limit = Field(5, description="Sub-agents that may run at the same time.")
    max_agents_per_session: Limit = Field(10, description="Sub-agents that one session may start.")
    agent_spawn_cooldown_s: Annotated[float, USER_ONLY] = Field(
        10.0, ge=0, description="Shortest time between two starts of sub-agents, in seconds."
    )
    api_session_max: Limit = Field(50, description="External API calls that one session may make.")
    cost_warn_usd: Money = Field(
        1.0,
        description="Cost of sub-agents and external calls in a session at which lopen warns, in US dollars; 0 switches it off.",
    )
    cost_block_usd: Money = Field(
        5.0,
        description="Cost of sub-agents and external calls in a session at which further ones are refused, in US dollars; 0 switches it off.",
    )


class ToolDiscipline(SettingsSection):
    """Limits of wasteful tool use."""

    max_file_reads: Limit = Field(
        3, description="Reads of one unchanged file after which the model is corrected."
    )
    max_command_retries: Limit = Field(
        3, description="Failures of one command after which the model is corrected."
    )
    max_files_edited: Limit = Field(
        5, description="Different files edited since the last test run after which the model is corrected."
    )


# the course of the work


class Workflow(SettingsSection):
    """The course of a run."""

    unattended: OwnSwitch = Field(
        False, description="Answer the questions of the model by their own default."
    )
    max_iterations: Limit = Field(
        100, description="Iterations that a session may use before a person has to grant more."
    )
    failure_threshold: Limit = Field(
        3,
        description="Attempts at one task, planning step or boundary that are not accepted, after which a person has to confirm.",
    )
    templates: OwnText = Field(
        "",
        description="Folder of prompt templates that replace the bundled ones; empty for the bundled ones.",
    )
    record: OwnSwitch = Field(
        True, description="Keep the exchanges with the model in `.lopen/recordings/`, without secrets."
    )
    notify_command: OwnText = Field(
        "", description="Shell command run when a run ends or needs a person; empty for none."
    )


class Git(SettingsSection):
    """The use of git."""

    convention: Literal["conventional", "plain"] = Field(
        "conventional", description="Form of commit subjects."
    )
    sign: OwnSwitch = Field(False, description="Sign commits with your GPG key.")


def _path_in_project(path: str) -> str:
    """Return a path relative to the project's root, without `./` and a slash at the end.

    Raises:
        ValueError: it leaves the project, or names git's or lopen's own folder.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    own = {part.casefold() for part in parts} & {".git", ".lopen"}
    if path.startswith("/") or not parts or ".." in parts or own:
        raise ValueError("a path below the project's root, not in .git or .lopen")
    return "/".join(parts)


class SandboxSettings(SettingsSection):
    """The confinement of commands."""

    mode: Annotated[Literal["auto", "bwrap", "landlock", "none"], USER_ONLY] = Field(
        "auto",
        description="Sandbox that commands run in; `auto` takes bubblewrap, else Landlock, else refuses to run commands.",
    )
    network: OwnSwitch = Field(False, description="Let commands reach the network.")
    readable: OwnNames = Field(
        default_factory=list,
        description="Files and folders of the machine that commands may read besides the project, the system's programs and the tools on `PATH`.",
    )
    max_memory_mb: OwnNumber = Field(
        4_096,
        description="Memory that the processes of a command may use together, in MB; its temporary files may take as much again.",
    )
    verify_timeout_s: Annotated[float, LOWER] = Field(
        600.0, gt=0, le=7_200, description="Longest run of a verify command, in seconds."
    )


class Verify(SettingsSection):
    """The clean room in which verify commands run."""

    carry: Annotated[list[Annotated[str, AfterValidator(_path_in_project)]], USER_ONLY] = Field(
        default_factory=list,
        description="Files and folders of the project that git ignores and verify commands need all the same, such as `.env.test`: they are there read-only.",
    )


# kept data


class Memory(SettingsSection):
    """Sizes and ages of the files in `.lopen/`."""

    log_max_kb: Limit = Field(50, le=1_000_000, description="Size at which a log file is rotated, in KiB.")
    log_max_lines: Limit = Field(
        1_000, le=10_000_000, description="Number of lines at which a log file is rotated."
    )
    log_max_age_days: Limit = Field(7, le=3_650, description="Age at which a log file is rotated, in days.")
    log_keep: Limit = Field(
        5, le=1_000, description="Rotated files kept of each log, and tracebacks of each kind."
    )
    sessions_kept: Limit = Field(
        10, le=10_000, description="Finished sessions kept before older ones are archived."
    )
    session_max_age_days: Limit = Field(
        7, le=3_650, description="Age at which a finished session is archived, in days."
    )
    evidence_max: Limit = Field(
        100, le=100_000, description="Entries kept in a list of evidence; older ones are summarised."
    )
    tool_history_max: OwnNumber = Field(
        50, le=100_000, description="Recent tool calls in which the circuits look for patterns."
    )


# other programs


class McpServer(SettingsSection):
    """One MCP server: a program whose tools the model is given."""

    command: Annotated[str, Field(min_length=1)]
    args: list[str] = Field(default_factory=list)
    env: list[str] = Field(
        default_factory=list
    )  # names of variables that it is given besides HOME, PATH and the like
    read_only: bool = True  # only tools that it declares read-only are offered
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 60.0  # of one call


class Mcp(SettingsSection):
    """Servers of the Model Context Protocol."""

    servers: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")], McpServer],
        USER_ONLY,
        Allowed(
            "tables with `command`, and optionally `args`, `env` (names of variables), `read_only` and `timeout_s`"
        ),
    ] = Field(
        default_factory=dict,
        description="MCP servers whose tools the model is given; a table `[mcp.servers.NAME]` for each, see the page MCP.",
    )


class Hooks(SettingsSection):
    """The hooks for Claude Code."""

    external_commands: OwnNames = Field(
        default_factory=lambda: ["oracle.py", "swarm.py", "research.py"],
        description="Programs that count as external API calls when Claude Code runs them.",
    )
    timeout_s: Annotated[float, USER_ONLY] = Field(
        2.0,
        gt=0,
        le=30,
        description="Longest time a hook may take before it lets the call through, in seconds; Claude Code ends it after 5.",
    )


class Queue(SettingsSection):
    """The queue that builds of several machines share."""

    url: OwnText = Field(
        "",
        pattern=r"^(postgresql://.+)?$",
        description="Postgres database of the queue; empty means `.lopen/queue.db`, for workers of this machine.",
    )
    remote: OwnText = Field(
        "origin",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,99}$",
        description="Remote of git over which the queue's workers exchange code; the project itself where it has none.",
    )


class Settings(SettingsSection):
    """All of it. Immutable; made by `lopen.settings.sources.load`."""

    models: PhaseModels = Field(default_factory=PhaseModels)
    oracle: OracleSettings = Field(default_factory=OracleSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    budget: Budget = Field(default_factory=Budget)
    workflow: Workflow = Field(default_factory=Workflow)
    git: Git = Field(default_factory=Git)
    tool_discipline: ToolDiscipline = Field(default_factory=ToolDiscipline)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    verify: Verify = Field(default_factory=Verify)
    circuit: Circuit = Field(default_factory=lambda: Circuit.model_validate({}))
    resources: Resources = Field(default_factory=Resources)
    memory: Memory = Field(default_factory=Memory)
    mcp: Mcp = Field(default_factory=Mcp)
    hooks: Hooks = Field(default_factory=Hooks)
    queue: Queue = Field(default_factory=Queue)
