"""An approval as a row: under the seal of the person who gave it, for the database it was given to."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

from pydantic import TypeAdapter

from lopen.seal import holds, owner, sealed
from lopen.workflow.session import Approval

_APPROVAL = TypeAdapter(Approval)


def to_row(connection: sqlite3.Connection, module: str, approval: Approval) -> tuple[Approval, str]:
    """The approval under the person's seal, and as text."""
    approval = replace(approval, seal=sealed(*_said(connection, module, approval)))
    return approval, _APPROVAL.dump_json(approval).decode()


def from_row(text: str) -> Approval:
    """What `to_row` wrote; whether it is a person's, `is_real` tells."""
    return _APPROVAL.validate_json(text)


def is_real(connection: sqlite3.Connection, module: str, approval: Approval) -> bool:
    """Whether the seal is this person's, for these very words in this database."""
    return holds(approval.seal, *_said(connection, module, approval))


def _said(connection: sqlite3.Connection, module: str, approval: Approval) -> tuple[str, ...]:
    """What a seal stands for: every word of the approval, and the database it was given to."""
    fields = _APPROVAL.dump_python(replace(approval, seal=""), mode="json")
    return "approval", owner(connection), module, json.dumps(fields, sort_keys=True)
