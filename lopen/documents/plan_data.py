"""The machine-readable part of `plan.md`: one HTML comment a component, JSON that can end no comment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from lopen.tasks.tree import Component, Found, State, Subtask, Task, Tree

_VERSION = 1
_COMPONENT_FIELDS, _TASK, _SUBTASK = (tuple(f.name for f in fields(c)) for c in (Component, Task, Subtask))
_HEAD = re.compile(r"^<!-- lopen:plan (\{.*\}) -->$", re.MULTILINE)
_COMPONENT = re.compile(r"^<!-- lopen:component (\{.*\}) -->$", re.MULTILINE)


def head_comment(tree: Tree) -> str:
    """Says how many components must follow, so that a plan cut short is seen to be."""
    return _comment("plan", {"version": _VERSION, "components": len(tree.components)})


def component_comment(component: Component) -> str:
    """The component whole, tasks included."""
    tasks = [
        _fields(t, _TASK) | {"subtasks": [_fields(s, _SUBTASK) for s in t.subtasks]} for t in component.tasks
    ]
    return _comment("component", _fields(component, _COMPONENT_FIELDS) | {"tasks": tasks})


def read_tree(text: str) -> Tree | None:
    """The tree of a text that holds such comments on lines of their own; None where they do not fit together."""
    heads = _HEAD.findall(text)
    found = _COMPONENT.findall(text)
    if len(heads) != 1:
        return None
    try:
        head = json.loads(heads[0])
        if head["version"] != _VERSION or head["components"] != len(found):
            return None
        return Tree(tuple(_component(json.loads(body)) for body in found))
    except (ValueError, KeyError, TypeError, RecursionError):  # changed past reading
        return None


def _fields(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    """As `dataclasses.asdict`, which would copy every text of ten thousand tasks on the way."""
    return {name: getattr(value, name) for name in names}


def _comment(kind: str, value: Mapping[str, Any]) -> str:
    """Neither `<`, `>` nor `--` is left in the JSON, and nothing beyond ASCII."""
    body = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
    body = body.replace("--", "-\\u002d")
    return f"<!-- lopen:{kind} {body} -->"


def _component(value: dict[str, Any]) -> Component:
    return Component(
        id=_text(value["id"]),
        name=_text(value["name"]),
        description=_text(value["description"]),
        depends_on=_texts(value["depends_on"]),
        spec_sections=_texts(value["spec_sections"]),
        criteria=_texts(value["criteria"]),
        found=_found(value["found"]),
        evidence=_texts(value["evidence"]),
        tasks=tuple(_task(t) for t in value["tasks"]),
        broken_down=_truth(value["broken_down"]),
        verified=_truth(value["verified"]),
        base=_maybe(value["base"]),
    )


def _task(value: dict[str, Any]) -> Task:
    return Task(
        id=_text(value["id"]),
        name=_text(value["name"]),
        description=_text(value["description"]),
        type=_text(value["type"]),
        state=State(value["state"]),
        subtasks=tuple(Subtask(_text(s["name"]), _truth(s["done"])) for s in value["subtasks"]),
        spec_sections=_texts(value["spec_sections"]),
        added=_truth(value["added"]),
        failures=int(value["failures"]),
        commit=_maybe(value["commit"]),
        base=_maybe(value["base"]),
        note=_text(value["note"]),
        given_up=_text(value["given_up"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _maybe(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is no list")
    return tuple(_text(v) for v in values)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _found(value: object) -> Found:
    for known in get_args(Found):
        if value == known:
            return known  # type: ignore[no-any-return]  # get_args has no types
    raise ValueError(f"{value!r} is no finding")
