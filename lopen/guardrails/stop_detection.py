"""Every end of a turn that brought no result of its step: what kind of stop it was.

The kind chooses the words of the answer (`nudges.nudge`). Quotations and code are left alone: a specification
or a test may well be about the phrases that are looked for here. Permission and questions count only where
the text closes, claims and reports anywhere in it.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lopen.guardrails.guard import listing, one_line
from lopen.guardrails.stop_phrases import (
    CLAUSE_START,
    HEDGE,
    NEAR_START,
    PHRASES,
    SPOKEN,
    Kind,
    Phrase,
    closing,
    own_words,
    sentences,
)
from lopen.workflow.steps import Step, number

StopKind = Literal["permission", "status", "claim", "empty", "question", "other"]


_MARKER = re.compile(r"^(?:[-+*]|\d+[.)]|#{1,6})\s+(?:\[[ x]\]\s*)?")


@dataclass(frozen=True, slots=True)
class Stop:
    """A turn's end without a result, in `step`, after so many tool calls of the iteration.

    `evidence` is the sentence it was told by: the model's own words, on one line.
    """

    kind: StopKind
    step: Step
    evidence: str = ""
    tool_calls_made: int = 0

    @property
    def premature(self) -> bool:
        """Return True if it wants an answer. In step 1 conversation is the point, and a complete session has no turns."""
        return self.step not in (Step.DRAFT_SPECIFICATION, Step.COMPLETE)


def detect_stop(text: str, *, step: Step, tool_calls_made: int = 0) -> Stop:
    """The kind of stop that `text`, the visible text of the turn, makes."""
    kind, evidence = _judged(text)
    return Stop(kind, step, one_line(evidence), tool_calls_made)


def _judged(text: str) -> tuple[StopKind, str]:
    if not text.strip():
        return "empty", ""
    words = own_words(text)
    last = sentences(closing(words))
    if found := _first(last, "permission"):
        return "permission", found
    if last and last[-1].rstrip(")]").endswith("?"):
        return "question", last[-1]
    everything = sentences(words)
    if found := _first(everything, "claim"):
        return "claim", found
    if found := _first(everything, "status"):
        return "status", found
    return "other", ""


def _first(said: Iterable[str], kind: Kind) -> str:
    phrases = [p for p in PHRASES if p.kind == kind]
    return next((s for s in said if any(_says(_MARKER.sub("", s.lower()), p) for p in phrases)), "")


def _says(sentence: str, phrase: Phrase) -> bool:
    """Return True if the sentence says the phrase and means it."""
    return any(
        _meant(sentence[: match.start()], sentence[match.end() :], phrase)
        for match in phrase.pattern.finditer(sentence)
    )


def _meant(before: str, after: str, phrase: Phrase) -> bool:
    clause = CLAUSE_START.split(before)[-1]
    if phrase.unless.search(clause) or SPOKEN.search(before):
        return False
    if phrase.unless_near and phrase.unless_near.search(NEAR_START.split(clause)[-1]):
        return False
    return phrase.kind != "claim" or not HEDGE.match(after)


OBSERVATIONS: Mapping[StopKind, str] = {
    "permission": "you asked for permission{said}; no permission is needed: go on",
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
    text = OBSERVATIONS[stop.kind].format(said=said)
    return text if stop.tool_calls_made else f"{text}. No tool has been called in this iteration yet"


def _missing(stop: Stop, missing: Sequence[str]) -> str:
    if missing:
        return listing(tuple(missing), 20)
    if stop.step is Step.ITERATE_THROUGH_TASKS:
        return "nothing but the record: every required verification has passed since the last change"
    return RESULT_CALLS[stop.step].partition("(")[0] if stop.step in RESULT_CALLS else "the step's result"


def _calls(stop: Stop, missing: Sequence[str], task_id: str, component: str, may_ask: bool) -> list[str]:
    asked = [_on_question(stop.step, may_ask)] if stop.kind == "question" else []
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


def _on_question(step: Step, may_ask: bool) -> str:
    if step is Step.ITERATE_THROUGH_TASKS:  # ask_user is not offered there
        return 'decide it yourself by the specification, and begin the note of update_task_status with "Assumed:" and the assumption'
    if may_ask:
        return "call ask_user(question, default) if you cannot decide; you have one question in this session"
    return "decide it yourself by the specification, and say which assumption you made with report_progress"
