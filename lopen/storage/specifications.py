"""The project's specifications as they are now, their criteria under the ids they first got.

See docs/reference/storage.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from lopen.documents.source import read_source
from lopen.documents.spec import Specification, find_modules, parse, spec_path
from lopen.storage.sessions import SessionStore


class Specifications:
    """Reads through one cache. `load` may be called from any thread; it leaves the store alone."""

    def __init__(self, root: Path, store: SessionStore) -> None:
        self._root = root
        self._store = store
        self._cache = SpecCache()
        # Module → criterion text → id.
        self._known: dict[str, Mapping[str, str]] = {m: store.known_criteria(m) for m in find_modules(root)}

    def load(self, module: str) -> Specification:
        """The module's specification. `WrongUsage` for a name that is none, `UnreadableSource` otherwise."""
        path = spec_path(self._root, module)
        return self._cache.load(path, module=module, known_ids=self._known.get(module, {}))

    def keep_ids(self, spec: Specification) -> None:
        """From now on the criteria keep the ids they have here, whatever is written before them."""
        known = self._known.get(spec.module, {})
        if all(known.get(c.text) == c.id for c in spec.criteria):
            return
        self._store.remember_criteria(spec.module, {c.id: c.text for c in spec.criteria})
        self._known[spec.module] = self._store.known_criteria(spec.module)


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
