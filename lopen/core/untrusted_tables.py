"""Read JSON and TOML that a model or a repository wrote; any content becomes a value or an error."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Final

# An integer of more than 4,300 digits is a ValueError, as a lone surrogate is; depth is a RecursionError.
PARSER_ERRORS: Final = (
    ValueError,
    ArithmeticError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    MemoryError,
)


def read_json_table(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; None where no parser takes it, or it is something else."""
    try:
        value = json.loads(text)
    except PARSER_ERRORS:
        return None
    return value if isinstance(value, dict) else None


def read_toml_table(text: str) -> dict[str, Any] | None:
    """Return the tables of a TOML text; None where no parser takes it."""
    try:
        return tomllib.loads(text)
    except PARSER_ERRORS:
        return None
