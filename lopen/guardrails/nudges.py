"""The answer to a premature stop: numbered, naming what was seen, what is missing and the very next call.

A nudge never asks for anything but the step's own result, and it always leaves the honest way out: a task
that cannot be done is set to failed with a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lopen.guardrails.stops import Stop, StopKind
from lopen.guardrails.wording import listing, one_line
from lopen.workflow.steps import Step, number

SEEN: Mapping[StopKind, str] = {
    "permission": "you turned to a person{said}. Nobody answers here and no permission is needed: go on",
    "question": "you ended on a question{said}. Nobody reads the end of a turn",
    "status": "you reported or announced instead of acting{said}. Do it now, in this turn",
    "claim": "you claimed that work is done{said}. Only recorded and verified work counts",
    "empty": "you said and did nothing",
    "other": "you ended the turn{said}",
}
RESULT_CALLS: Mapping[Step, str] = {
    Step.DRAFT_SPECIFICATION: "write_spec(content)",
    Step.DETERMINE_DEPENDENCIES: "record_dependencies(dependencies), with an empty list if the module needs none",
    Step.IDENTIFY_COMPONENTS: "record_components(components), so that every acceptance criterion is covered",
    Step.SELECT_NEXT_COMPONENT: (
        "select_component(name, reason), or verify_module_completion() if no component is left"
    ),
    Step.BREAK_INTO_TASKS: "record_tasks(component, tasks), with at least one task",
    Step.REPEAT: "verify_module_completion()",
}
WITH_TASK = frozenset({"verify_task_completion"})
WITH_COMPONENT = frozenset({"verify_component_completion"})


def nudge(
    stop: Stop,
    missing: Sequence[str] = (),
    *,
    n: int,
    of: int,
    task_id: str = "",
    component: str = "",
    may_ask: bool = False,
) -> str:
    """The text of nudge `n` of `of` (`workflow.max_nudges`).

    `missing` is what the step still lacks: in step 6 the tools without a fresh success (`quality.missing`),
    elsewhere whatever words name it. `may_ask` says that `ask_user` is still open to the model.
    """
    lines = [
        f"[lopen {n}/{of}] This turn ended without the result of step {number(stop.step)}, {stop.step.value}: "
        f"{_seen(stop)}.",
        f"Missing: {_missing(stop, missing)}.",
        "Do next:",
        *(
            f"{i}. {line}"
            for i, line in enumerate(_calls(stop, missing, task_id, component, may_ask), start=1)
        ),
    ]
    if n >= of:
        lines.append("This is the last reminder: another turn without the result counts as a failure.")
    return "\n".join(lines)


def _seen(stop: Stop) -> str:
    said = f' ("{one_line(stop.evidence)}")' if stop.evidence else ""
    text = SEEN[stop.kind].format(said=said)
    return text if stop.tool_calls_made else f"{text}. No tool has been called in this iteration yet"


def _missing(stop: Stop, missing: Sequence[str]) -> str:
    if missing:
        return listing(tuple(missing), 20)
    if stop.step is Step.ITERATE_THROUGH_TASKS:
        return "nothing but the record: every required verification has passed since the last change"
    return RESULT_CALLS[stop.step].partition("(")[0] if stop.step in RESULT_CALLS else "the step's result"


def _calls(stop: Stop, missing: Sequence[str], task_id: str, component: str, may_ask: bool) -> list[str]:
    asked = [_on_question(may_ask)] if stop.kind == "question" else []
    if stop.step is not Step.ITERATE_THROUGH_TASKS:
        call = RESULT_CALLS.get(stop.step)
        return [*asked, *([f"call {call}"] if call else [])]
    return [*asked, *_building_calls(missing, task_id, component)]


def _building_calls(missing: Sequence[str], task_id: str, component: str) -> list[str]:
    task = f'"{task_id}"' if task_id else "task_id"
    arguments = {
        **dict.fromkeys(WITH_TASK, task),
        **dict.fromkeys(WITH_COMPONENT, f'"{one_line(component, 72)}"' if component else "component"),
    }
    tools = [m for m in missing if m.startswith("verify_")]
    work = ["make the changes that are still to be made, with write_file and edit_file"] if tools else []
    return [
        *work,
        *(f"call {tool}({arguments.get(tool, '')})" for tool in tools),
        f'call update_task_status({task}, "complete"); if the task cannot be done, '
        f'update_task_status({task}, "failed", note) with the reason',
    ]


def _on_question(may_ask: bool) -> str:
    if may_ask:
        return "call ask_user(question, default) if you cannot decide; you have one question in this session"
    return "decide it yourself by the specification, and say which assumption you made with report_progress"
