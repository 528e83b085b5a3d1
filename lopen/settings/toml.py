"""TOML: parse a file, tell on which line each key stands, and set one value in a file that a person wrote. Pure.

Setting a value leaves comments and order as they are; it alone needs `tomlkit`, imported there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lopen.core.errors import WrongUsage

DEEPEST = 20
_HEADER = re.compile(r"\s*\[+([^]#]+)\]")
_KEY = re.compile(r"\s*([\w.\"' -]+?)\s*=")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse(text: str, origin: str) -> dict[str, Any]:
    """Return the tables of the file `origin`.

    Raises `WrongUsage` with line and column for invalid TOML, and for tables nested deeper than `DEEPEST`.
    """
    try:
        tables = tomllib.loads(text)
        if not _within(tables, DEEPEST):
            raise RecursionError
        return tables
    except RecursionError:
        raise WrongUsage(f"{origin}: the values are nested too deeply", hint="fix the file") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _POSITION.search(message)
        line, column = text.count("\n") + 1, 1
        if found:
            message = message[: found.start()]
            if found[1]:
                line, column = int(found[1]), int(found[2])
        raise WrongUsage(
            f"{origin}:{line}:{column}: invalid TOML: {message}", hint="correct that line"
        ) from error


def _within(tables: Mapping[str, Any], depth: int) -> bool:
    """Return True if no table lies deeper than `depth`."""
    level: list[Mapping[str, Any]] = [tables]
    for _ in range(depth):
        level = [value for table in level for value in table.values() if isinstance(value, Mapping)]
    return not level


def lines(text: str) -> dict[str, int]:
    """Return the 1-based line of every dotted key and table that begins a line; the first line of a table counts."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            name = table = _plain(header[1])
        elif key := _KEY.match(line):
            name = f"{table}.{_plain(key[1])}" if table else _plain(key[1])
        else:
            continue
        found.setdefault(name, number)
    return found


def _plain(name: str) -> str:
    """Return a name as it stands in a file without quotes and blanks."""
    return re.sub(r"[\s\"']", "", name)


def with_value(text: str, key: str, value: Any) -> str:
    """Return the TOML `text` with the dotted `key` set to `value`.

    Raises `WrongUsage` where the file does not allow it, such as a number where a table has to be.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    *parents, leaf = key.split(".")
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for name in parents:
            table = table[name] if name in table else table.setdefault(name, tomlkit.table())
        if isinstance(table.get(leaf), Mapping):
            raise TypeError(f"{leaf} is a table")
        table[leaf] = value
        changed = document.as_string()
        if text.count("\n") == text.count("\r\n") > 0:  # tomlkit ends its own lines otherwise
            changed = re.sub(r"\r?\n", "\r\n", changed)
        tomllib.loads(changed)
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError, ValueError, AttributeError) as error:
        raise WrongUsage(f"cannot set {key} in this file", hint="edit the file by hand") from error
    return changed


def without(text: str, key: str) -> str:
    """Return the TOML `text` without the dotted `key`, the rest of it untouched; the same text where it is not set."""
    import tomlkit

    document = tomlkit.parse(text)
    *parents, leaf = key.split(".")
    table: Any = document
    for name in parents:
        table = table.get(name, {}) if isinstance(table, Mapping) else {}
    if leaf not in table:
        return text
    del table[leaf]
    return document.as_string()
