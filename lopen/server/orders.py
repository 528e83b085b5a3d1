"""The bodies of requests that change something; an unknown field is an error."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(max_length=10_000)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]


def _whole(given: object) -> object:
    """Return a number such as 5.0, which JSON Schema calls an integer, as one."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


class Order(BaseModel):
    """Everything a request may ask for."""

    model_config = ConfigDict(extra="forbid")


class ConfirmRequest(Order):
    """A confirmation."""

    note: Annotated[Text, Field(description="Told to the model.")] = ""


class AnswerRequest(Order):
    """The answer to the model's question."""

    text: Said


class SkipRequest(Order):
    """A task that a person gives up."""

    reason: Said


class ApproveRequest(Order):
    """The approval of exactly one text."""

    spec_hash: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$", description="Of the text that you read.")]
    note: Text = ""


class ExtendBudgetRequest(Order):
    """More tokens for a budget."""

    additional_tokens: Annotated[
        int, Field(strict=True, gt=0, le=1_000_000, examples=[100_000]), BeforeValidator(_whole)
    ]
    reason: Annotated[
        Said, Field(description="Kept with the extension.", examples=["the last task is close"])
    ]
