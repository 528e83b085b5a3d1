"""YAML, in and out. The only importer of `yaml`.

Read text is only composed, never constructed: no tag of it makes an object, no date and no merge key fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Entry:
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


def entries(content: str) -> list[Entry]:
    """The entries of the mapping in `content` in order, also those that come twice; none where it is empty."""
    import yaml

    root = _composed(content)
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise NoMapping(0, "no mapping")
    return [
        Entry(
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
