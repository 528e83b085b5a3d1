"""Set one value in a TOML file that a person wrote; comments, order and line ends stay as they are.

The only importer of `tomlkit`. Only commands that write a configuration load this module; `toml_text` reads.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Whitespace

from lopen.base.errors import WrongUsage


def with_value(text: str, key: str, value: Any) -> str:
    """Return the TOML `text` with the dotted `key` set to `value`.

    Raises `WrongUsage` where the file does not allow it, such as a number where a table has to be.
    """
    windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    path = key.split(".")
    try:
        changed = _edited(text.replace("\r\n", "\n") if windows else text, path, value)
        if windows:
            changed = changed.replace("\n", "\r\n")
        right = tomllib.loads(changed) == _set(tomllib.loads(text), path, value)
    except (TOMLKitError, tomllib.TOMLDecodeError, LookupError, TypeError, ValueError):
        right = False
    if not right:
        raise WrongUsage(f"cannot set {key} in this file", hint="edit the file by hand")
    return changed


def _edited(text: str, path: list[str], value: Any) -> str:
    if text and not text.endswith("\n"):
        text += "\n"
    document = tomlkit.parse(text)
    *parents, leaf = path
    table: Any = document
    for depth, name in enumerate(parents):
        if name in table:
            table = table[name]
            continue
        if isinstance(table, InlineTable):
            table.append(name, _set({}, path[depth + 1 :], value))
            return document.as_string()
        gap = "" if not text or text.endswith("\n\n") else "\n"
        return text + gap + tomlkit.dumps(_set({}, path, value))
    if leaf in table:
        if isinstance(table[leaf], Mapping):
            raise TypeError(f"{leaf} is a table")
        table[leaf] = value
    else:
        table.append(leaf, value)
        _move_before_comments(table, leaf)
    return document.as_string()


def _move_before_comments(table: Any, leaf: str) -> None:
    """Move the new `leaf` up to the last value before it: comments in between describe the next table."""
    body = getattr(getattr(table, "value", None), "body", None)
    if isinstance(table, InlineTable) or body is None:
        return
    at = next(index for index, (key, _) in enumerate(body) if key is not None and key.key == leaf)
    goal = at
    while goal and body[goal - 1][0] is None:
        goal -= 1
    if goal < at < len(body) - 1:  # `append` has put a blank line between the new value and the next table
        following = body[at + 1][1]
        if not isinstance(following, Whitespace):
            following.trivia.indent = following.trivia.indent.removeprefix("\n")
    body.insert(goal, body.pop(at))


def _set(tables: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """Set `value` at `path` in nested dictionaries and return them."""
    inner = tables
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value
    return tables
