"""The state machine over the table of steps. The only importer of `transitions`."""

from __future__ import annotations

from transitions import Machine, MachineError

from lopen.base.errors import LopenError
from lopen.workflow.steps import ORDER, TRANSITIONS, Step, Trigger, phase_of


class IllegalTransition(LopenError):
    """A trigger that the table does not list for the step: a bug in lopen."""


class _Model:
    """The object on which `transitions` stores its state."""

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
    """Return the step to which `trigger` leads from `step`.

    Raises:
        IllegalTransition: the table has no such row.
    """
    machine = _machine(step)
    try:
        machine.events[trigger.value].trigger(machine.models[0])
    except (MachineError, KeyError) as error:
        raise IllegalTransition(f"{trigger.value} cannot fire in step {step.value}") from error
    return Step(machine.models[0].state)


def reachable(start: Step, *, past_gate: bool) -> frozenset[Step]:
    """Return every step that can follow `start`, including `start`; those after the gate only with `past_gate`."""
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
    """Return the table as a Mermaid state diagram with the phases as composite states."""
    lines = ["stateDiagram-v2", f"    [*] --> {Step.DRAFT_SPECIFICATION.value}"]
    for phase in ("requirement_gathering", "planning", "building"):
        members = [s for s in ORDER if s is not Step.COMPLETE and phase_of(s) == phase]
        lines.append(f"    state {phase} {{")
        lines.extend(f"        {s.value}" for s in members)
        lines.append("    }")
    lines.extend(f"    {t.source.value} --> {t.target.value}: {t.trigger.value}" for t in TRANSITIONS)
    lines.append(f"    {Step.COMPLETE.value} --> [*]")
    return "\n".join(lines) + "\n"
