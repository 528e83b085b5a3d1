"""Settings of the models and of the connection to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lopen.settings.schema.parts import CONFIRM, LOWER, USER_ONLY, Allowed, SettingsSection

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
    """The model that judges finished work."""

    model: Annotated[ModelName, Field(description="Model that judges finished work."), CONFIRM] = (
        "claude-haiku-5-5"
    )
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
            description="Try the tests on mutants of the changed functions before a verdict: auto where they run under 10 s."
        ),
        USER_ONLY,
    ] = "auto"


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
