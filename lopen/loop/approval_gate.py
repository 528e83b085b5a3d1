"""The gate between step 1 and step 2: only a person's approval of this exact specification opens it.

Passing it makes the module's branch (`lopen.loop.module_branch`) and its first commit, which carries the
specification and its research.
"""

from __future__ import annotations

from dataclasses import replace

from lopen.base.events import Event, Notice, SpecApproved
from lopen.documents.drift import section_hashes, spec_hash
from lopen.documents.spec import Specification
from lopen.guardrails.completion import OFFER
from lopen.loop.context import SessionContext
from lopen.loop.project_context import lacks
from lopen.workflow.decide import enter_step
from lopen.workflow.pauses import gate_pause
from lopen.workflow.session import MOVED, Approval, StepProgress, waits
from lopen.workflow.steps import Trigger


def at_gate(context: SessionContext, spec: Specification) -> StepProgress:
    """Pass the gate if a person opened it for exactly this specification; otherwise wait for them."""
    given = valid_approval(context, spec)
    if given is None and context.people.approver.approve(spec):
        given = valid_approval(context, spec)
    if given is None:
        module = context.record.journal.session.module
        return waits(gate_pause(module, "the specification passes `lopen check` and waits for approval"))
    pass_gate(context, spec, given)
    missing = lacks(context)
    if missing:
        context.record.journal.tell(Notice("info", f"this repository lacks {', '.join(missing)}", OFFER))
    return MOVED


def valid_approval(context: SessionContext, spec: Specification) -> Approval | None:
    """The module's newest approval, if it is for this specification as it is now."""
    newest = context.record.store.approval(spec.module)
    return newest if newest and newest.spec_hash == spec_hash(section_hashes(spec)) else None


def pass_gate(context: SessionContext, spec: Specification, given: Approval) -> None:
    """Make the branch and its first commit, and enter step 2."""
    if context.commits:
        context.branch.check_head(spec.module)  # report first what costs least to correct
    context.models.calls.connect()  # change nothing for a model that cannot be asked
    told: list[Event] = [SpecApproved(given.who, given.note, given.spec_hash)]
    if context.commits:
        told += context.branch.begin(spec.module)
    else:
        context.record.journal.change(start_commit=context.project.repository.head().commit)
    take_approval(context, given, *told)


def take_approval(context: SessionContext, given: Approval, *told: Event) -> None:
    """Stand in step 2 with what was approved; nothing of the repository changes."""
    session = replace(context.record.journal.session, approval=given, planned=dict(given.sections))
    decision = enter_step(session, Trigger.SPEC_APPROVED)
    context.record.journal.save(decision.session, *told, *decision.events)
    context.take_commands(given.commands)
