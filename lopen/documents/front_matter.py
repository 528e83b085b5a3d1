"""The YAML front matter of a specification: `name` and `description`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lopen.documents.remark import Remark
from lopen.documents.sections import BYTE_ORDER_MARK, Outline
from lopen.documents.yaml_text import NoMapping, NotReadable, entries


@dataclass(slots=True)
class FrontMatterReading:
    """The two values, each empty where it is missing, and what is wrong."""

    name: str = ""
    description: str = ""
    problems: list[Remark] = field(default_factory=list)


class _Unfit(Exception):
    """Front matter that cannot be used; carries the line in the document."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.remark = Remark(line, message)


def read_front_matter(outline: Outline) -> FrontMatterReading:
    """Name and description of the specification."""
    if outline.front_matter is None:
        unclosed = outline.text.removeprefix(BYTE_ORDER_MARK).startswith("---")
        message = (
            "the front matter is not closed by `---`"
            if unclosed
            else ("no front matter: begin with `---`, name, description, `---`")
        )
        return FrontMatterReading(problems=[Remark(1, message)])
    content, first_line = outline.front_matter.content, outline.front_matter.first + 1
    try:
        values = dict(_scalars(content, first_line))
    except _Unfit as error:
        return FrontMatterReading(problems=[error.remark])
    problems = [
        Remark(1, f"the front matter has no {key}") for key in ("name", "description") if not values.get(key)
    ]
    return FrontMatterReading(values.get("name", ""), values.get("description", ""), problems)


def _scalars(content: str, first_line: int) -> Iterator[tuple[str, str]]:
    """`name` and `description`, on one line each. `_Unfit` for what is no YAML mapping of text."""

    def line(index: int) -> int:
        return first_line + content.count("\n", 0, index)

    try:
        found = entries(content)
    except NoMapping as error:
        raise _Unfit(first_line, "the front matter must be `key: value` lines") from error
    except NotReadable as error:
        raise _Unfit(line(error.index), f"the front matter is no YAML: {error.message}") from error
    seen: set[str] = set()
    for entry in found:
        if entry.key not in ("name", "description"):
            continue
        if entry.key in seen:
            raise _Unfit(line(entry.index), f"{entry.key} stands twice in the front matter")
        seen.add(entry.key)
        if entry.value is None:
            raise _Unfit(line(entry.index), f"{entry.key} in the front matter must be text")
        yield entry.key, " ".join(entry.value.split())
