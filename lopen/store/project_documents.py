"""A project's documents on disk: specifications, whose criteria keep the ids they got first, and `plan.md`.

See docs/reference/storage.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lopen.core.files import store_text
from lopen.specification.modules import find_modules, read_source, spec_path
from lopen.specification.plan_file import render_plan
from lopen.specification.spec import Specification, parse_specification
from lopen.store.folder import require_plain
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session


class Specifications:
    """Load specifications, each text once. `load` does not use the store."""

    def __init__(self, root: Path, store: SessionStore) -> None:
        self._root = root
        self._store = store
        self._read: dict[str, Specification] = {}  # module → the last one, which holds while its text does
        # Module → criterion text → id
        self._known: dict[str, Mapping[str, str]] = {m: store.known_criteria(m) for m in find_modules(root)}

    def load(self, module: str) -> Specification:
        """Return the module's specification.

        Raises:
            WrongUsage: the module's name is not valid.
            UnreadableSource: the file cannot be read.
        """
        path = spec_path(self._root, module)
        text, known = read_source(path), self._read.get(module)
        if known is None or known.text != text:
            ids = self._known.get(module, {})
            known = self._read[module] = parse_specification(text, module=module, path=path, known_ids=ids)
        return known

    def keep_ids(self, spec: Specification) -> None:
        """Record the ids of the criteria, so that they stay when other criteria are inserted before them."""
        known = self._known.get(spec.module, {})
        if all(known.get(c.text) == c.id for c in spec.criteria):
            return
        self._store.remember_criteria(spec.module, {c.id: c.text for c in spec.criteria})
        self._known[spec.module] = self._store.known_criteria(spec.module)
        self._read.pop(spec.module, None)


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
