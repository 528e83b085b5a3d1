"""The vocabulary of the schema: trust, number ranges, and the type of a section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lopen.core.money import MOST_USD


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

Fraction = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]
Money = Annotated[float, Field(ge=0, le=MOST_USD)]


def path_in_project(path: str) -> str:
    """Return a path relative to the project's root, without `./` and a slash at the end.

    Raises:
        ValueError: it leaves the project, or names git's or lopen's own folder.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    own = {part.casefold() for part in parts} & {".git", ".lopen"}
    if path.startswith("/") or not parts or ".." in parts or own:
        raise ValueError("a path below the project's root, not in .git or .lopen")
    return "/".join(parts)


class SettingsSection(BaseModel):
    """A table of the configuration file: closed, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)
