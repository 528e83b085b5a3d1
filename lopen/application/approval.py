"""Approval of a specification, by `lopen approve` or during a run: show it, then record the approval."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.errors import LopenError
from lopen.core.escape import exact
from lopen.specification.drift import compare_hashes, section_hashes, spec_hash
from lopen.specification.modules import module_name
from lopen.specification.spec import Problem, Specification, load_specification
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Approval

MOST_LISTED = 20


def specification(root: Path, store: SessionStore, module: str) -> Specification:
    """Load the module's current specification and store its criterion ids."""
    path = root / "specs" / module_name(module) / "SPECIFICATION.md"
    spec = load_specification(path, module=module, known_ids=store.known_criteria(module))
    store.remember_criteria(module, {c.id: c.text for c in spec.criteria})
    return spec


def checked(spec: Specification) -> Specification:
    """Return the specification; raise `LopenError` if it has problems, or is not written yet."""
    if spec.problems:
        raise LopenError(
            f"the specification has problems:{_listed(spec.problems)}",
            hint=f"fix them, then: lopen approve {spec.module}",
        )
    if spec.unwritten:
        raise LopenError(
            f"the specification is not finished:{_listed(spec.unwritten)}",
            hint=f"write what is missing, then: lopen approve {spec.module}",
        )
    return spec


def _listed(problems: Sequence[Problem]) -> str:
    """Return the problems, each on a line of its own with its path in the project."""
    return "".join(f"\n  {'/'.join(p.path.parts[-3:])}:{p.line}: {p.message}" for p in problems[:MOST_LISTED])


def expected(spec: Specification, digest: str) -> None:
    """Raise `LopenError` unless `digest` is the beginning (8 characters or more) of the specification's hash."""
    found = spec_hash(section_hashes(spec))
    if len(digest) < 8 or not found.startswith(digest):
        raise LopenError(
            f"the specification has changed: its hash is {found}, expected {digest}",
            hint=f"read it again, then: lopen approve {spec.module} --expect {found[:16]}",
        )


def changes_since(spec: Specification, given: Approval) -> list[str]:
    """Return one line for each section and verify command that differs from what was approved."""
    drift = compare_hashes(given.sections, section_hashes(spec)).named
    named = (("changed", drift.changed), ("new", drift.new), ("removed", drift.removed))
    lines = [f"{kind}: {address}" for kind, addresses in named for address in addresses]
    now = spec.command_lines
    for name in dict.fromkeys((*given.commands, *now)):
        before, after = given.commands.get(name) or "none", now.get(name) or "none"
        if before != after:
            lines.append(f"command {name}: {exact(before)} → {exact(after)}")
    return lines


def show(context: CommandContext, spec: Specification, given: Approval | None) -> str:
    """Print what is approved, and its changes since the approval `given`; return the specification's hash."""
    digest = spec_hash(section_hashes(spec))
    context.say(f"{spec.module}: {spec.description}")
    context.say("acceptance criteria:")
    for criterion in spec.criteria:
        context.say(f"  {criterion.id}: {criterion.text}")
    context.say("verify commands (lopen will run them):")
    for command in spec.commands:
        context.say(f"  {command.name}: {exact(command.command or 'none')}")
    for warning in spec.warnings:
        context.warn(f"{warning.path.relative_to(context.root)}:{warning.line}: {warning.message}")
    if given is not None:
        context.say(f"since the approval of {given.at.astimezone():%Y-%m-%d %H:%M} by {given.who}:")
        for line in changes_since(spec, given) or ["nothing has changed"]:
            context.say(f"  {line}")
    context.say(f"specification hash: {digest}")
    return digest


def _user_name() -> str:
    """Return the user's name, or the user id if there is no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def record(
    store: SessionStore, spec: Specification, note: str, test_removals: Sequence[str] = ()
) -> Approval:
    """Store the approval: who, when, the note, every section's hash, and the files whose tests may be removed."""
    hashes = section_hashes(spec)
    before = store.approval(spec.module)
    changed: tuple[str, ...] = ()
    if before is not None:
        drift = compare_hashes(before.sections, hashes)
        changed = (*drift.changed, *drift.removed) if drift.any else before.changed
    approval = Approval(
        who=_user_name(),
        at=datetime.now(UTC),
        note=note,
        spec_hash=spec_hash(hashes),
        sections=hashes,
        commands=spec.command_lines,
        changed=changed,
        test_removals=tuple(test_removals),
    )
    return store.approve(spec.module, approval, spec.text)
