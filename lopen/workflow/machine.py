"""The machine over the table: which trigger may fire where. The only importer of `transitions`."""

from __future__ import annotations

from transitions import Machine, MachineError

from lopen.base.errors import LopenError
from lopen.workflow.steps import ORDER, TRANSITIONS, Step, Trigger, phase_of


class IllegalTransition(LopenError):
    """A trigger that the table does not list for this step. A bug in lopen, never a person's fault."""


class _Model:
    """What `transitions` hangs its state on."""

    state: str


def _machine(step: Step) -> Machine:
    return Machine(
        model=_Model(),
        states=[s.value for s in ORDER],
        transitions=[[t.trigger.value, t.source.value, t.target.value] for t in TRANSITIONS],
        initial=step.value,
        auto_transitions=False,
        send_event=False,
    )


def advance(step: Step, trigger: Trigger) -> Step:
    """The step that `trigger` leads to from `step`; `IllegalTransition` where the table has no such row."""
    machine = _machine(step)
    try:
        machine.events[trigger.value].trigger(machine.models[0])
    except (MachineError, KeyError) as error:
        raise IllegalTransition(f"{trigger.value} cannot fire in step {step.value}") from error
    return Step(machine.models[0].state)


def reachable(start: Step, *, past_gate: bool) -> frozenset[Step]:
    """Every step the table leads to from `start` (itself included); the gate only with `past_gate`."""
    found = {start}
    frontier = [start]
    while frontier:
        step = frontier.pop()
        for row in TRANSITIONS:
            if row.source is not step or row.target in found:
                continue
            if row.trigger is Trigger.SPEC_APPROVED and not past_gate:
                continue
            found.add(row.target)
            frontier.append(row.target)
    return frozenset(found)


def mermaid() -> str:
    """The table as a Mermaid state diagram, phases as composite states."""
    lines = ["stateDiagram-v2", f"    [*] --> {Step.DRAFT_SPECIFICATION.value}"]
    for phase in ("requirement_gathering", "planning", "building"):
        members = [s for s in ORDER if s is not Step.COMPLETE and phase_of(s) == phase]
        lines.append(f"    state {phase} {{")
        lines.extend(f"        {s.value}" for s in members)
        lines.append("    }")
    lines.extend(f"    {t.source.value} --> {t.target.value}: {t.trigger.value}" for t in TRANSITIONS)
    lines.append(f"    {Step.COMPLETE.value} --> [*]")
    return "\n".join(lines) + "\n"
