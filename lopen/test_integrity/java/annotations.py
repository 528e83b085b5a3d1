"""Annotations of Java classes, methods and fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lopen.test_integrity.syntax import ParsedFile

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation: its last name, its arguments as text, its node."""

    name: str
    arguments: str
    node: Node


def annotations_of(source: ParsedFile, node: Node) -> list[Annotation]:
    """The annotations of a class, method or field."""
    modifiers = [child for child in node.named_children if child.type == "modifiers"]
    found = []
    for each in modifiers[0].named_children if modifiers else ():
        if each.type in {"annotation", "marker_annotation"}:
            name = source.of(each.child_by_field_name("name")).rpartition(".")[2]
            arguments = source.of(each.child_by_field_name("arguments"))
            found.append(Annotation(name, arguments.removeprefix("(").removesuffix(")"), each))
    return found
