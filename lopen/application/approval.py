"""Approving, as `lopen approve` and a run at a terminal do it: show what is approved, then record it."""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.base.errors import LopenError
from lopen.documents.drift import section_hashes, spec_hash
from lopen.documents.spec import Specification, load_specification, module_name
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Approval


def specification(root: Path, store: SessionStore, module: str) -> Specification:
    """The module's specification as it is now; criterion ids are remembered."""
    path = root / "specs" / module_name(module) / "SPECIFICATION.md"
    spec = load_specification(path, module=module, known_ids=store.known_criteria(module))
    store.remember_criteria(module, {c.id: c.text for c in spec.criteria})
    return spec


def checked(spec: Specification) -> Specification:
    """The specification, if `lopen check` passes it."""
    if spec.problems:
        listed = "".join(f"\n  {p}" for p in spec.problems[:20])
        raise LopenError(
            f"the specification does not pass `lopen check`:{listed}", hint="mend it, then approve"
        )
    return spec


def show(context: CommandContext, spec: Specification) -> str:
    """Print what an approval stands for; returns the specification's hash."""
    digest = spec_hash(section_hashes(spec))
    context.say(f"{spec.module}: {spec.name} - {spec.description}")
    context.say("acceptance criteria:")
    for criterion in spec.criteria:
        context.say(f"  {criterion.id}: {criterion.text}")
    context.say("verify commands (they will be run):")
    for command in spec.commands:
        context.say(f"  {command.name}: {command.command or 'none'}")
    for warning in spec.warnings:
        context.warn(f"{warning.path.relative_to(context.root)}:{warning.line}: {warning.message}")
    context.say(f"specification hash: {digest}")
    return digest


def _who() -> str:
    """The person's name on this machine; their number where it has none, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def record(store: SessionStore, spec: Specification, note: str) -> Approval:
    """Keep the approval: who, when, the note and every section's hash."""
    hashes = section_hashes(spec)
    approval = Approval(
        who=_who(),
        at=datetime.now(UTC),
        note=note,
        spec_hash=spec_hash(hashes),
        sections=hashes,
        commands=spec.command_lines,
    )
    return store.approve(spec.module, approval)
