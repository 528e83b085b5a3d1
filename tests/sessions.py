"""Sessions with fields given by their names alone, whichever of a session's values holds them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from lopen.workflow.session import Dialogue, Plan, Session, SessionLimits

PARTS = {"plan": Plan, "limits": SessionLimits, "dialogue": Dialogue}


def changed(session: Session, **given: Any) -> Session:
    """Return the session with these fields of it and of its values."""
    for name, value in PARTS.items():
        own = {field.name: given.pop(field.name) for field in fields(value) if field.name in given}
        given |= {name: replace(getattr(session, name), **own)} if own else {}
    return replace(session, **given)
