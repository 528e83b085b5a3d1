"""YAML, in and out. The only importer of `yaml`.

Read text is only composed, never constructed: no tag of it makes an object, no date and no merge key fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lopen.documents.diagnostic import Diagnostic
from lopen.documents.sections import BYTE_ORDER_MARK, Outline

_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """One entry of a mapping. `value` is its plain text, "" for null, None where it is no plain value."""

    key: str
    value: str | None
    index: int  # of the key in the text


class NotReadable(Exception):
    """Text that is no YAML, or no mapping. `index` is the character where that shows."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index
        self.message = message


class NoMapping(NotReadable):
    """YAML, but no `key: value` lines."""


def entries(content: str) -> list[YamlEntry]:
    """The entries of the mapping in `content` in order, also those that come twice; none where it is empty."""
    import yaml

    root = _composed(content)
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise NoMapping(0, "no mapping")
    return [
        YamlEntry(
            key.value if isinstance(key, yaml.ScalarNode) else "",
            ("" if value.tag == _NULL else value.value) if isinstance(value, yaml.ScalarNode) else None,
            key.start_mark.index,
        )
        for key, value in root.value
    ]


def _composed(content: str) -> Any:
    import yaml

    try:
        return yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        index = error.problem_mark.index if error.problem_mark else 0
        raise NotReadable(index, error.problem or error.context or "malformed") from error
    except yaml.reader.ReaderError as error:
        raise NotReadable(error.position, error.reason) from error
    except RecursionError as error:
        raise NotReadable(0, "nested too deeply") from error
    except (ValueError, OverflowError) as error:  # PyYAML lets escapes and versions beyond all limits through
        raise NotReadable(0, str(error)) from error


def dumped(value: Any) -> str:
    """A JSON-able value as YAML, its keys in their order."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


@dataclass(slots=True)
class FrontMatterReading:
    """The two values, each empty where it is missing, and what is wrong."""

    name: str = ""
    description: str = ""
    problems: list[Diagnostic] = field(default_factory=list)


class _Unfit(Exception):
    """Front matter that cannot be used; carries the line in the document."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.remark = Diagnostic(line, message)


def read_front_matter(outline: Outline) -> FrontMatterReading:
    """Name and description of the specification."""
    if outline.front_matter is None:
        unclosed = outline.text.removeprefix(BYTE_ORDER_MARK).startswith("---")
        message = (
            "the front matter is not closed by `---`"
            if unclosed
            else ("no front matter: begin with `---`, name, description, `---`")
        )
        return FrontMatterReading(problems=[Diagnostic(1, message)])
    content, first_line = outline.front_matter.content, outline.front_matter.first + 1
    try:
        values = dict(_scalars(content, first_line))
    except _Unfit as error:
        return FrontMatterReading(problems=[error.remark])
    problems = [
        Diagnostic(1, f"the front matter has no {key}")
        for key in ("name", "description")
        if not values.get(key)
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
