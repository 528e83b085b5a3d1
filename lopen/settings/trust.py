"""The limits on a repository's settings: the rules, and the person's confirmations of models it names.

Confirmations lie in the person's own data folder, never in the repository. They hold for one project folder, one key
and one value: a repository that names another model later asks again.

See docs/reference/configuration.md.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from pydantic import TypeAdapter, ValidationError

from lopen.core.files import read_own, write_config
from lopen.core.person import data_folder, required
from lopen.settings.keys import Key, Value, shown


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """A model that only the repository names, and no person confirmed yet."""

    key: str
    value: Value


def objection(key: Key, value: Value, own: Value) -> str:
    """Why a repository may not set `key` to `value` where the person's own value is `own`; empty if it may."""
    rule = key.trust.rule
    match rule:
        case "anyone" | "confirm":
            return ""
        case "user_only":
            return f"may not be set by a project; for yourself: lopen config set --user {key.name} VALUE"
        case "lower":
            if _looseness(value) <= _looseness(own):
                return ""
            return f"is looser than your own {shown(key.name, own)}, and a project may only lower it"
        case "raise":
            return "" if value or not own else "switches off what protects you; a project may not"
        case _:
            assert_never(rule)


def _looseness(value: Value) -> float:
    """Return the amount that a limit lets through: 0 means no limit at all."""
    return float(value) or math.inf


def trust_file() -> Path:
    """Where confirmations are kept."""
    return required(data_folder()) / "trust.json"


def is_confirmed(project: Path, key: str, value: Value) -> bool:
    """Return True if the person said yes to exactly this key and value in this project."""
    return _entry(value) in _confirmed(trust_file()).get(os.path.realpath(project), {}).get(key, [])


def confirm(project: Path, key: str, value: Value) -> None:
    """Remember the person's yes. Two at the same instant may lose one: it is then asked for again."""
    file = trust_file()
    known = _confirmed(file)
    entries = known.setdefault(os.path.realpath(project), {}).setdefault(key, [])
    if _entry(value) not in entries:
        entries.append(_entry(value))
        write_config(file, json.dumps(known, indent=1, sort_keys=True) + "\n", mode=0o600)


def _entry(value: Value) -> str:
    return json.dumps(value, sort_keys=True)


def _confirmed(file: Path) -> dict[str, dict[str, list[str]]]:
    """Return the confirmations in the file; none where it cannot be understood."""
    try:
        return TypeAdapter(dict[str, dict[str, list[str]]]).validate_json(read_own(file) or "{}")
    except ValidationError:
        return {}
