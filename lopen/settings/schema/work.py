"""Settings of the models, the workflow, sessions, git and guardrails."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lopen.settings.schema.parts import (
    CONFIRM,
    LOWER,
    USER_ONLY,
    Allowed,
    Count,
    Positive,
    SettingsSection,
)


class Workflow(SettingsSection):
    """The course of a run."""

    unattended: Annotated[
        bool, Field(description="Answer the questions of the model by their own default."), USER_ONLY
    ] = False
    max_iterations: Annotated[
        Positive,
        Field(description="Iterations that a session may use before a person has to grant more."),
        LOWER,
    ] = 100
    failure_threshold: Annotated[
        Positive,
        Field(description="Failures of one task in a row after which a person has to confirm."),
        LOWER,
    ] = 3
    max_nudges: Annotated[
        Count,
        Field(description="Times that a model which stops too early is told to go on, in one iteration."),
        LOWER,
    ] = 2
    max_clarifications: Annotated[
        Count,
        Field(
            description="Questions of the model that reach a person in one session; further ones get their default."
        ),
        LOWER,
    ] = 1
    templates: Annotated[
        str,
        Field(
            description="Folder of prompt templates that replace the bundled ones; empty for the bundled ones."
        ),
        USER_ONLY,
    ] = ""


class SessionSettings(SettingsSection):
    """Continuing and keeping sessions."""

    auto_resume: Annotated[
        bool, Field(description="Let `lopen run` continue the unfinished session of the module.")
    ] = True
    retention: Annotated[
        Positive,
        Field(le=10_000, description="Finished sessions kept before older ones are archived."),
        LOWER,
    ] = 10
    retention_days: Annotated[
        Positive, Field(le=3_650, description="Age at which a finished session is archived, in days."), LOWER
    ] = 7


class Git(SettingsSection):
    """The use of git."""

    convention: Annotated[Literal["conventional", "plain"], Field(description="Form of commit subjects.")] = (
        "conventional"
    )
    branch_prefix: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,60}$",
            description="First part of the name of a module's branch.",
        ),
        USER_ONLY,
    ] = "lopen/"
    sign: Annotated[bool, Field(description="Sign commits with your GPG key."), USER_ONLY] = False


class ToolDiscipline(SettingsSection):
    """Limits of wasteful tool use."""

    max_file_reads: Annotated[
        Positive, Field(description="Reads of one unchanged file after which the model is corrected."), LOWER
    ] = 3
    max_command_retries: Annotated[
        Positive, Field(description="Failures of one command after which the model is corrected."), LOWER
    ] = 3
    max_files_edited: Annotated[
        Positive,
        Field(
            description="Different files edited since the last test run after which the model is corrected."
        ),
        LOWER,
    ] = 5


class Guardrails(SettingsSection):
    """Guardrails that only advise."""

    disabled: Annotated[
        list[Literal["circular_behaviour", "tool_discipline"]],
        Field(description="Advisory guardrails that are switched off."),
        USER_ONLY,
    ] = Field(default_factory=list)


ALIASES = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5"}


def full_name(model: str) -> str:
    """Return the name of the model that an alias stands for."""
    return ALIASES.get(model, model)


ModelName = Annotated[str, AfterValidator(full_name)]


class PhaseModels(SettingsSection):
    """The model of each phase."""

    requirement_gathering: Annotated[
        ModelName, Field(description="Model that drafts and refines the specification."), CONFIRM
    ] = "claude-opus-5-5"
    planning: Annotated[ModelName, Field(description="Model of the planning steps."), CONFIRM] = (
        "claude-opus-5-5"
    )
    building: Annotated[ModelName, Field(description="Model that writes the code."), CONFIRM] = (
        "claude-sonnet-5-5"
    )
    research: Annotated[ModelName, Field(description="Model of research sub-agents."), CONFIRM] = (
        "claude-sonnet-5-5"
    )
    fallback: Annotated[
        list[ModelName],
        Field(description="Models tried in this order when the chosen one stays unavailable."),
        CONFIRM,
    ] = Field(default_factory=lambda: ["claude-sonnet-5"])


class OracleSettings(SettingsSection):
    """The oracle: the model that judges finished work."""

    model: Annotated[
        ModelName, Field(description="The oracle: the model that judges finished work."), CONFIRM
    ] = "claude-haiku-5-5"
    second_model: Annotated[
        ModelName,
        Field(
            description="Model asked once more where the first could not tell; empty for the planning model."
        ),
        CONFIRM,
    ] = ""
    evidence_tokens: Annotated[
        int,
        Field(
            ge=2_000,
            le=800_000,
            description="Size of the evidence that a judge is shown at once, in tokens; it can read the rest.",
        ),
        LOWER,
    ] = 100_000
    mutation: Annotated[
        Literal["auto", "off"],
        Field(
            description="Break the changed functions before a verdict: the tests must fail, and show which small faults they notice."
        ),
        USER_ONLY,
    ] = "auto"
    earlier_tests: Annotated[
        Literal["auto", "off"],
        Field(
            description="Run the earlier versions of changed tests, and unchanged tests without what is new beside them, on the new code before a verdict."
        ),
        USER_ONLY,
    ] = "auto"
    slower_suite: Annotated[
        float,
        Field(
            ge=1.1,
            description="How many times longer the tests may take than before a change until the judge is asked about it.",
        ),
        USER_ONLY,
    ] = 2.0


ADDRESS = r"^(https?://[^\s/?#]+\S*)?$"
ADDRESS_IN_WORDS = (
    'an address that begins with http:// or https://, such as https://llm.example.org, or "" for none'
)


class ModelSettings(SettingsSection):
    """The connection to the model."""

    provider: Annotated[
        Literal["anthropic", "bedrock", "vertex", "foundry"],
        Field(description="Service that serves the models."),
        USER_ONLY,
    ] = "anthropic"
    base_url: Annotated[
        str,
        Field(
            pattern=ADDRESS,
            description="Address of an Anthropic-compatible endpoint; empty for the provider's own.",
        ),
        USER_ONLY,
        Allowed(ADDRESS_IN_WORDS),
    ] = ""
    max_tokens: Annotated[
        int, Field(ge=1024, le=128_000, description="Largest answer to one request, in tokens."), LOWER
    ] = 32_000
    retry_base_s: Annotated[
        float,
        Field(
            gt=0,
            le=30,
            description="First wait before a failed request is tried again, in seconds; each further wait is longer.",
        ),
        LOWER,
    ] = 0.5
    max_retries: Annotated[
        int,
        Field(
            ge=0,
            le=20,
            description="Times a failed request is tried again before the next fallback model is used.",
        ),
        LOWER,
    ] = 8
    connect_timeout_s: Annotated[
        float,
        Field(gt=0, le=300, description="Longest wait for a connection to the endpoint, in seconds."),
        LOWER,
    ] = 10.0
    silence_timeout_s: Annotated[
        float, Field(gt=0, le=3600, description="Longest silence within a response, in seconds."), LOWER
    ] = 120.0
    context_tokens: Annotated[
        int,
        Field(
            ge=8_000, le=1_000_000, description="Largest prompt that a conversation starts with, in tokens."
        ),
        LOWER,
    ] = 60_000
