"""`plan.md` on disk: drawn from a session whenever something of it changed, read by people.

See docs/reference/storage.md.
"""

from __future__ import annotations

from pathlib import Path

from lopen.base.atomic_files import store_text
from lopen.documents.plan_file import render
from lopen.storage.folder import require_plain
from lopen.workflow.session import Session


def plan_path(root: Path, module: str) -> Path:
    """Where the module's plan lies."""
    return root / ".lopen" / "modules" / module / "plan.md"


def draw(root: Path, session: Session) -> None:
    """Write the session's plan. `StorageError` where it cannot be written, `LopenError` where a link leads out."""
    require_plain(root / ".lopen")
    store_text(plan_path(root, session.module), render(session.module, session))
