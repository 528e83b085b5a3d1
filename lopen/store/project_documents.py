"""A project's documents on disk: specifications, whose criteria keep the ids they got first, and `plan.md`.

See docs/reference/storage.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from lopen.core.files import store_text
from lopen.specification.modules import find_modules, read_source, spec_path
from lopen.specification.plan_file import render_plan
from lopen.specification.spec import Specification, parse_specification
from lopen.store.folder import require_plain
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session


class Specifications:
    """Load specifications through one cache. `load` is safe in any thread; it does not use the store."""

    def __init__(self, root: Path, store: SessionStore) -> None:
        self._root = root
        self._store = store
        self._cache = SpecificationCache()
        # Module → criterion text → id
        self._known: dict[str, Mapping[str, str]] = {m: store.known_criteria(m) for m in find_modules(root)}

    def load(self, module: str) -> Specification:
        """Return the module's specification.

        Raises:
            WrongUsage: the module's name is not valid.
            UnreadableSource: the file cannot be read.
        """
        path = spec_path(self._root, module)
        return self._cache.load(path, module=module, known_ids=self._known.get(module, {}))

    def keep_ids(self, spec: Specification) -> None:
        """Record the ids of the criteria, so that they stay when other criteria are inserted before them."""
        known = self._known.get(spec.module, {})
        if all(known.get(c.text) == c.id for c in spec.criteria):
            return
        self._store.remember_criteria(spec.module, {c.id: c.text for c in spec.criteria})
        self._known[spec.module] = self._store.known_criteria(spec.module)


CACHED_SPECIFICATIONS = 8

_Key = tuple[str, Path, frozenset[tuple[str, str]]]


class SpecificationCache:
    """The most recently used specifications. Thread-safe."""

    def __init__(self, size: int = CACHED_SPECIFICATIONS) -> None:
        self._size = size
        self._entries: OrderedDict[_Key, Specification] = OrderedDict()
        self._lock = Lock()

    def load(
        self, path: Path, *, module: str, known_ids: Mapping[str, str] = MappingProxyType({})
    ) -> Specification:
        """Return the specification in the file; the same object as long as its text does not change."""
        text = read_source(path)
        key = (module, path, frozenset(known_ids.items()))
        with self._lock:
            cached = self._entries.get(key)
            if cached is not None and cached.text == text:
                self._entries.move_to_end(key)
                return cached
        spec = parse_specification(text, module=module, path=path, known_ids=known_ids)
        with self._lock:
            self._entries[key] = spec
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
        return spec


def plan_path(root: Path, module: str) -> Path:
    """Return the path of the module's `plan.md`."""
    return root / ".lopen" / "modules" / module / "plan.md"


def write_plan(root: Path, session: Session) -> None:
    """Write the session's plan to `plan.md`, for people to read.

    Raises:
        StorageError: the file cannot be written.
        LopenError: `.lopen` holds a symbolic link.
    """
    require_plain(root / ".lopen")
    store_text(plan_path(root, session.module), render_plan(session.module, session))
