"""TOML as text that people wrote: where a key stands, and setting one without touching the rest. Pure.

A statement (a table header, or a key with its value) ends at the first line up to which its lines parse on
their own; that is exact also for arrays and strings over several lines, and leaves the grammar to `tomllib`.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lopen.errors import WrongUsage

DEEPEST = 20
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """Lines `first` up to `last` (0-based, inclusive). `table` is the header it stands under.

    `header` is the table it opens, for a header; `values` what it sets, by key relative to `table`.
    """

    first: int
    last: int
    table: tuple[str, ...]
    header: tuple[str, ...] | None
    values: Mapping[tuple[str, ...], Any]

    def absolute(self) -> Iterator[tuple[str, ...]]:
        """Full paths of the keys it sets."""
        return (self.table + path for path in self.values)


def parse(text: str, origin: str) -> dict[str, Any]:
    """The file's tables; broken TOML, or what no setting is as deep as, is `WrongUsage` naming where."""
    try:
        tables = tomllib.loads(text)
        if not _within(tables, DEEPEST):
            raise RecursionError
        return tables
    except RecursionError:
        raise WrongUsage(f"{origin}: the values are nested too deeply", hint="mend the file") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _POSITION.search(message)
        line, column = text.count("\n") + 1, 1
        if found:
            message = message[: found.start()]
            if found[1]:
                line, column = int(found[1]), int(found[2])
        raise WrongUsage(
            f"{origin}:{line}:{column}: broken TOML: {message}", hint="mend that line"
        ) from error


def _within(tables: Mapping[str, Any], depth: int) -> bool:
    """Whether no table lies deeper than `depth`."""
    level: list[Mapping[str, Any]] = [tables]
    for _ in range(depth):
        level = [value for table in level for value in table.values() if isinstance(value, Mapping)]
    return not level


def statements(text: str) -> Iterator[Statement]:
    """The statements of valid TOML in order; blank lines and comments belong to none."""
    table: tuple[str, ...] = ()
    lines = text.split("\n")
    first = 0
    while first < len(lines):
        for last in range(first, len(lines)):
            try:
                found = tomllib.loads("\n".join(lines[first : last + 1]))
            except tomllib.TOMLDecodeError:
                continue
            break
        else:  # not reached for a text that parses as a whole
            return
        if lines[first].lstrip().startswith("["):
            table = _deepest(found)
            yield Statement(first, last, table, table, {})
        elif found:
            yield Statement(first, last, table, None, dict(_leaves(found)))
        first = last + 1


def line_of(text: str, key: str) -> int | None:
    """The 1-based line on which `key` (dotted) is set."""
    path = tuple(key.split("."))
    for statement in statements(text):
        if any(found[: len(path)] == path for found in statement.absolute()):
            return statement.first + 1
        if statement.header is not None and statement.header[: len(path)] == path:
            return statement.first + 1
    return None


def with_value(text: str, key: str, value: Any) -> str:
    """`text` with `key` set to `value`, everything else as it was, comments too."""
    path = tuple(key.split("."))
    lines = text.split("\n")
    known = list(statements(text))
    edit = _replace(lines, known, path, value) or _insert(lines, known, path, value)
    changed = "\n".join(edit)
    if _lookup(tomllib.loads(changed), path) != value:
        raise WrongUsage(f"{key} could not be set in this file", hint="edit it by hand")
    return changed


def literal(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    if isinstance(value, str):  # JSON's string escapes are TOML's, but for DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _replace(lines: list[str], known: list[Statement], path: tuple[str, ...], value: Any) -> list[str] | None:
    for statement in known:
        if path not in set(statement.absolute()):
            continue
        relative = path[len(statement.table) :]
        old = lines[statement.first : statement.last + 1]
        if len(statement.values) == 1:
            new = [_assignment(relative, value) + _comment("\n".join(old))]
        else:  # an inline table: spelled out, one line a key
            new = [_assignment(p, value if p == relative else v) for p, v in statement.values.items()]
        return [*lines[: statement.first], *new, *lines[statement.last + 1 :]]
    return None


def _insert(lines: list[str], known: list[Statement], path: tuple[str, ...], value: Any) -> list[str]:
    parent = path[:-1]
    siblings = [s for s in known if any(found[:-1] == parent for found in s.absolute())]
    headers = [s for s in known if s.header == parent]
    if siblings or headers:
        after = (siblings or headers)[-1]
        line = _assignment(path[len(after.table) :], value)
        return [*lines[: after.last + 1], line, *lines[after.last + 1 :]]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    gap = [""] if lines else []
    return [*lines, *gap, f"[{_dotted(parent)}]", _assignment(path[-1:], value), ""]


def _assignment(path: tuple[str, ...], value: Any) -> str:
    return f"{_dotted(path)} = {literal(value)}"


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(p if _BARE.fullmatch(p) else json.dumps(p) for p in path)


def _comment(statement: str) -> str:
    """The comment at the end of a statement, with the blanks before it."""
    whole = tomllib.loads(statement)
    for at, character in enumerate(statement):
        if character != "#":
            continue
        try:
            if tomllib.loads(statement[:at]) == whole:
                blanks = len(statement[:at]) - len(statement[:at].rstrip(" \t"))
                return statement[at - blanks :]
        except tomllib.TOMLDecodeError:
            continue  # that `#` is inside a string
    return ""


def _deepest(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The path of the one header a chunk holds; an array of tables counts as its table."""
    path: list[str] = []
    inner: Any = found
    while isinstance(inner, Mapping) and inner:
        name, inner = next(iter(inner.items()))
        path.append(name)
        if isinstance(inner, list):
            inner = inner[0] if inner else {}
    return tuple(path)


def _leaves(found: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in found.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _lookup(tables: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(tables, Mapping) or part not in tables:
            return None
        tables = tables[part]
    return tables
