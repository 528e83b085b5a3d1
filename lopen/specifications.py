"""The project's specifications as they are now, their criteria under the ids they first got (contract §1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lopen.documents.cache import SpecCache
from lopen.documents.spec import Specification, find_modules, spec_path
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
