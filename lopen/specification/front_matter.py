"""Read the front matter of a specification, and read and write YAML. The only importer of `yaml`.

Reading composes nodes without constructing objects: no tag creates an object, no date or merge key can fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from lopen.specification.sections import BYTE_ORDER_MARK, Diagnostic, Outline

_KEYS = ("name", "description")
_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """An entry of a mapping. `value` is the scalar's text, "" for null, None if it is not a scalar."""

    key: str
    value: str | None
    index: int  # of the key in the text


class InvalidYaml(Exception):
    """Text that is not a YAML mapping. `index` is the character of the error."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index
        self.message = message


class NotAMapping(InvalidYaml):
    """YAML without `key: value` lines."""


def yaml_entries(content: str) -> list[YamlEntry]:
    """Return the entries of the mapping in `content` in order, with duplicates; none if it is empty."""
    import yaml

    root = _compose(content)
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise NotAMapping(0, "not a mapping")
    return [
        YamlEntry(
            key.value if isinstance(key, yaml.ScalarNode) else "",
            ("" if value.tag == _NULL else value.value) if isinstance(value, yaml.ScalarNode) else None,
            key.start_mark.index,
        )
        for key, value in root.value
    ]


def _compose(content: str) -> Any:
    import yaml

    try:
        return yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        index = error.problem_mark.index if error.problem_mark else 0
        raise InvalidYaml(index, error.problem or error.context or "malformed") from error
    except yaml.reader.ReaderError as error:
        raise InvalidYaml(error.position, error.reason) from error
    except RecursionError as error:
        raise InvalidYaml(0, "nested too deeply") from error
    except (ValueError, OverflowError) as error:  # PyYAML does not check the range of escapes and versions
        raise InvalidYaml(0, str(error)) from error


def dump_yaml(value: Any) -> str:
    """Return a JSON value as YAML with its keys in their order."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


@dataclass(slots=True)
class FrontMatterReading:
    """The two values, each "" if it is missing, and the problems."""

    name: str = ""
    description: str = ""
    problems: list[Diagnostic] = field(default_factory=list)
    unopened: bool = False  # its first `---` is missing, so that its lines look like a heading


class _Invalid(Exception):
    """Invalid front matter, with the line in the document."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(line, message)


def read_front_matter(outline: Outline) -> FrontMatterReading:
    """Read the name and description of a specification."""
    if outline.front_matter is None:
        text = outline.text.removeprefix(BYTE_ORDER_MARK)
        unopened = text.startswith(tuple(f"{key}:" for key in _KEYS)) and "\n---" in text
        message = (
            "the front matter is not closed by `---`"
            if text.startswith("---")
            else "the front matter does not begin with `---`: put that line before it"
            if unopened
            else "the front matter is missing: start with `---`, name, description, `---`"
        )
        return FrontMatterReading(problems=[Diagnostic(1, message)], unopened=unopened)
    content, first_line = outline.front_matter.content, outline.front_matter.first + 1
    try:
        values = dict(_scalars(content, first_line))
    except _Invalid as error:
        return FrontMatterReading(problems=[error.diagnostic])
    others = {e.key: first_line + content.count("\n", 0, e.index) for e in yaml_entries(content)}
    problems = [_without(key, others) for key in _KEYS if not values.get(key)]
    return FrontMatterReading(values.get("name", ""), values.get("description", ""), problems)


def _without(key: str, lines: Mapping[str, int]) -> Diagnostic:
    """Return the problem that a key is missing; `lines` are the lines of the keys that are there."""
    near = get_close_matches(key, lines.keys() - set(_KEYS), n=1, cutoff=0.7)
    if not near:
        return Diagnostic(1, f"the front matter has no {key}")
    return Diagnostic(lines[near[0]], f"the front matter has no {key}; did you mean that by {near[0]}?")


def _scalars(content: str, first_line: int) -> Iterator[tuple[str, str]]:
    """Yield `name` and `description`, each on one line. Raise `_Invalid` unless the content is a mapping to text."""

    def line(index: int) -> int:
        return first_line + content.count("\n", 0, index)

    try:
        found = yaml_entries(content)
    except NotAMapping as error:
        raise _Invalid(first_line, "the front matter must be `key: value` lines") from error
    except InvalidYaml as error:
        raise _Invalid(line(error.index), f"the front matter is not valid YAML: {error.message}") from error
    seen: set[str] = set()
    for entry in found:
        if entry.key not in _KEYS:
            continue
        if entry.key in seen:
            raise _Invalid(line(entry.index), f"duplicate {entry.key} in the front matter")
        seen.add(entry.key)
        if entry.value is None:
            raise _Invalid(line(entry.index), f"{entry.key} in the front matter must be text")
        yield entry.key, " ".join(entry.value.split())
