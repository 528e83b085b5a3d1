"""The schema as dotted keys: their names, allowed values and who may set them. Pure.

`budget.session_tokens` is a key; `budget` alone is a section. Everything that names a setting to a person
(errors, provenance, `lopen config`) speaks in keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.fields import FieldInfo

from lopen.settings.schema import Allowed, Settings, Trust

Value = Any  # any value of TOML or JSON

ANYONE = Trust("anyone")
SHOWN_CHARACTERS = 60

_USERINFO = re.compile(r"//[^/@\s]*@")  # name and password in an address


@dataclass(frozen=True)
class Key:
    """One setting: its dotted name, its field in the schema, and what its circuit rule counts."""

    name: str
    field: FieldInfo
    calls: str = ""

    @property
    def trust(self) -> Trust:
        """Who may set it from within a repository; `anyone` where the schema says nothing."""
        return next((m for m in self.field.metadata if isinstance(m, Trust)), ANYONE)

    @property
    def default(self) -> Value:
        """The value where no source sets it."""
        return value_of(_defaults(), self.name)

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Validates one value of this key, limits included."""
        annotated: Any = Annotated[self.field.annotation, ANYONE, *self.field.metadata]
        return TypeAdapter(annotated, config=ConfigDict(allow_inf_nan=False))

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LOPEN_" + self.name.upper().replace(".", "__")

    def allowed(self) -> str:
        """Return the allowed values in words."""
        words = next((m.words for m in self.field.metadata if isinstance(m, Allowed)), "")
        return words or _in_words(self.adapter.json_schema())

    @property
    def meaning(self) -> str:
        """One sentence about the setting, with its unit."""
        return (self.field.description or "").replace("{calls}", self.calls)


def _walk(model: type[BaseModel], prefix: str, calls: str = "") -> Iterator[Key]:
    for name, field in model.model_fields.items():
        dotted = f"{prefix}{name}"
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _walk(annotation, f"{dotted}.", field.description or "")
        else:
            yield Key(dotted, field, calls)


@lru_cache(maxsize=1)
def _defaults() -> Settings:
    return Settings()


@lru_cache(maxsize=1)
def keys() -> Mapping[str, Key]:
    """Every key by name, in the order of the schema."""
    return MappingProxyType({key.name: key for key in _walk(Settings, "")})


@lru_cache(maxsize=1)
def sections() -> frozenset[str]:
    """Every table name: `budget`, `budget.by_task_type`, …"""
    return frozenset(name.rsplit(".", depth)[0] for name in keys() for depth in range(1, name.count(".") + 1))


def nearest(name: str) -> str:
    """The known key a person most likely meant; empty if none is near.

    A small slip counts first, then a key of the same name in another section, then a distant likeness.
    """
    leaf = name.rsplit(".", 1)[-1]
    candidates = (
        *get_close_matches(name, keys(), n=1, cutoff=0.85),
        *(known for known in keys() if known.rsplit(".", 1)[-1] == leaf),
        *get_close_matches(name, keys(), n=1, cutoff=0.6),
    )
    return next(iter(candidates), "")


def flatten(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """(dotted name, value) for everything a file sets; names may be unknown ones."""
    for name, value in tables.items():
        dotted = f"{prefix}{name}"
        if dotted in keys() or not isinstance(value, Mapping):
            yield dotted, value
        elif value:
            yield from flatten(value, f"{dotted}.")
        elif dotted not in sections():
            yield dotted, value


def nest(values: Mapping[str, Value]) -> dict[str, Any]:
    """Dotted values as the nested tables that the schema reads."""
    tables: dict[str, Any] = {}
    for name, value in values.items():
        *path, leaf = name.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[leaf] = value
    return tables


def value_of(settings: Settings, name: str) -> Value:
    """The value `settings` holds for a known key."""
    found: Any = settings
    for part in name.split("."):
        found = getattr(found, part)
    return found


def shown(name: str, value: Value, *, limit: int = SHOWN_CHARACTERS) -> str:
    """A value for people: one line of at most `limit` characters, with no password and no misplaced key."""
    leaf = name.rsplit(".", 1)[-1].lower()
    if isinstance(value, str) and leaf.endswith(("key", "token", "secret", "password")):
        return '"…"'
    text = _USERINFO.sub("//…@", json.dumps(value, default=_plain))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(value: object) -> object:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)


def _in_words(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return "one of " + ", ".join(f'"{v}"' for v in schema["enum"])
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer":
            return "a whole number" + _limits(schema)
        case "number":
            return "a number" + _limits(schema)
        case "array":
            return "a list, each item " + _in_words(schema.get("items", {}))
        case _:
            return f"text matching {schema['pattern']}" if "pattern" in schema else "text"


def _limits(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    found = [f"{word} {schema[name]:,}" for name, word in words.items() if name in schema]
    return ", " + " and ".join(found) if found else ""
