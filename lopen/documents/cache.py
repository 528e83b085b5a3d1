"""Specifications kept parsed, in memory, for as long as their content is the same.

The file is read every time and its content decides. Path, size, inode and both times together would still
not do: two writes can fall into one clock tick, a time can be set back, and writing through a memory map
may move no time at all. Reading costs a thousandth of what parsing does, and parsing is what is saved.
Sections come from the kept specification's outline, which indexes its headings once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from lopen.documents.source import read_source
from lopen.documents.spec import Specification, parse

KEPT_SPECIFICATIONS = 8

_Key = tuple[str, Path, frozenset[tuple[str, str]]]


class SpecCache:
    """The specifications used last. Safe to use from several threads."""

    def __init__(self, size: int = KEPT_SPECIFICATIONS) -> None:
        self._size = size
        self._kept: OrderedDict[_Key, Specification] = OrderedDict()
        self._lock = Lock()

    def load(
        self, path: Path, *, module: str, known_ids: Mapping[str, str] = MappingProxyType({})
    ) -> Specification:
        """As `spec.load`: what stands in the file now. The same object while that is unchanged."""
        text = read_source(path)
        key = (module, path, frozenset(known_ids.items()))
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept.text == text:
                self._kept.move_to_end(key)
                return kept
        spec = parse(text, module=module, path=path, known_ids=known_ids)
        with self._lock:
            self._kept[key] = spec
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return spec

    def section(self, path: Path, heading: str, *, module: str) -> str:
        """The section as it stands in the file now, with its subsections; errors as `Outline.find`."""
        cut = self.load(path, module=module).outline
        return cut.full_text(cut.find(heading))
