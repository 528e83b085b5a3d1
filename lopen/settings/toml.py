"""TOML: parse a file, tell on which line each key stands, and set one value in a file that a person wrote. Pure.

A statement (a table header, or a key with its value) ends at the first newline outside of strings and brackets;
`tomllib` reads each. The time is linear: a repository brings this file along.
Setting a value leaves comments, order and line ends as they are; it alone needs `tomlkit`, imported there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from lopen.core.errors import WrongUsage

DEEPEST = 20
# What decides where a statement of valid TOML ends
_TOKENS = re.compile(
    r"""
    "{3} (?: [^\\"]++ | \\. | "{1,2}+(?!") )*+ "{3,5}
    | '{3} (?: [^']++ | '{1,2}+(?!') )*+ '{3,5}
    | " (?: [^\\"\n]++ | \\. )*+ "
    | ' [^'\n]*+ '
    | \# [^\n]*+
    | [\[\]{}\n]
    """,
    re.VERBOSE | re.DOTALL,
)
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
    """Return the 1-based line of every dotted key and table of valid TOML; the first line of a table counts."""
    found: dict[str, int] = {}
    table: tuple[str, ...] = ()
    for number, header, values in _statements(text.replace("\r\n", "\n")):
        if header:
            table = _deepest(values)
            paths = [table]
        else:
            paths = [table + path for path in _leaves(values)]
        for path in paths:
            for length in range(1, len(path) + 1):
                found.setdefault(".".join(path[:length]), number)
    return found


def _statements(text: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    """Yield each statement's first line (1-based), whether it is a header, and the values that it alone parses to."""
    start, first, line, depth = 0, 1, 1, 0
    for token in _TOKENS.finditer(f"{text}\n"):
        line += token[0].count("\n")
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if token[0] == "\n" and not depth:
            statement = text[start : token.start()]
            if values := tomllib.loads(statement):
                yield first, statement.lstrip().startswith("["), values
            start, first = token.end(), line


def _deepest(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path of the one header in `values`; an array of tables counts as its table."""
    path: list[str] = []
    inner: Any = values
    while isinstance(inner, Mapping) and inner:
        name, inner = next(iter(inner.items()))
        path.append(name)
        if isinstance(inner, list):
            inner = inner[0] if inner else {}
    return tuple(path)


def _leaves(tables: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value that is not a table with something in it."""
    for name, value in tables.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*prefix, name))
        else:
            yield (*prefix, name)


def with_value(text: str, key: str, value: Any) -> str:
    """Return the TOML `text` with the dotted `key` set to `value`.

    Raises `WrongUsage` where the file does not allow it, such as a number where a table has to be.
    """
    from tomlkit.exceptions import TOMLKitError

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


def _edited(text: str, path: list[str], value: Any) -> str:
    import tomlkit
    from tomlkit.items import InlineTable

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
    from tomlkit.items import InlineTable, Whitespace

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
