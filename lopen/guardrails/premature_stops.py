"""Every end of a turn that brought no result of its step: what kind of stop it was, and the answer to it.

Each such end is answered; its kind only words the answer. So the phrases are few, and a rare one may be missed.
Quotations and code are left alone: a specification or a test may well be about these phrases. Permission and
questions count only where the text closes, claims and reports anywhere in it.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lopen.guardrails.guard import one_line
from lopen.workflow.steps import Step, number

StopKind = Literal["permission", "status", "claim", "empty", "question", "other"]

_WORK = r"(?:tasks?|components?|modules?|work|implementation|features?|everything|criteria|requirements|tests|checks|suite|build|it)"
_DONE = r"(?:complete|completed|done|finished|implemented|satisfied|met|passing|green)"
# fmt: off
PHRASES: Mapping[StopKind, re.Pattern[str]] = {
    "permission": re.compile("|".join((
        r"\b(?:would|do|did) you (?:like|want|prefer|approve|agree)\b",
        r"\b(?:shall|should|may|can|could) (?:i|we) (?:now )?(?:proceed|continue|start|begin|go|move|implement|run|add|apply|fix|do)\b",
        r"\b(?:want|need|like|ready for|ok(?:ay)? for) (?:me|you) to\b",
        r"\blet me know\b|\bsay the word\b|\bfeel free to\b|\b(?:it's |is )up to you\b|\byour call\b",
        r"\bplease (?:confirm|approve|advise|tell me|let me know|run|review)\b",
        r"\byour (?:confirmation|approval|permission|go[- ]ahead|consent|reply|response|decision|feedback)\b",
        r"\b(?:once|when|after|until|if) you(?:'d|'ve)? (?:confirm|approve|agree|decide|reply|like|want|are)\b",
        r"^(?:ok(?:ay)?|ready|happy) to (?:proceed|continue|start|go)\b|\bi(?:'m| am) (?:ready|happy) to\b|\bstanding by\b",
        r"\bi(?:'ll| will) (?:stop|pause|wait)\b|\b(?:stopping|pausing) point\b",
    ))),
    "claim": re.compile("|".join((
        rf"\b{_WORK} (?:(?:is|are|has been|have been) )(?:(?:now|all|fully|both) )*{_DONE}\b",
        rf"\b(?:task|component|module)(?: \w+)? {_DONE}[.!]*$|^(?:all )?{_DONE}[.!]*$",
        r"\b(?:tests?|checks?|suite|build) (?:(?:are|is|have|now) )*(?:pass|passes|passed|passing|green|succeeds?)\b",
        r"\b\d+ (?:tests? )?passed\b(?!.*\b[1-9]\d* failed)",
        r"\bi(?:'ve| have) (?:\w+ )?(?:completed|finished|implemented)\b|\b(?:successfully implemented|implemented successfully)\b",
        r"\b(?:nothing|no (?:further|more) \w+) (?:is |are )?(?:left|needed|required)\b",
        r"\beverything works\b|\bmeets all\b|\bworks as (?:expected|intended|specified)\b",
    ))),
    "status": re.compile("|".join((
        r"\bi(?:'ll| will| plan to| need to|'m going to| am going to|'m about to| am about to)\b",
        r"^(?:now |first,? |next,? )*(?:let me|let's)\b|\bnext steps?\b|^(?:moving on|proceeding)\b",
        r"\bhere(?:'s| is| are) (?:a|the|my)\b|^(?:summary|status|progress|recap|so far|remaining)\b",
        r"\bi(?:'ve| have) (?:\w+ )?(?:read|reviewed|looked|updated|created|written|added|made|started|fixed|changed)\b",
    ))),
}
# fmt: on
# Before a phrase, in its clause: somebody else's words
_REPORTED = re.compile(r"\b(?:asks?|asked|says?|said|prints?|reads|shows?|labelled|called|whether|never)\b")
# Before a claim, in its clause: denied, wished, supposed or demanded
_SUPPOSED = re.compile(
    r"\b(?:if|once|until|when|before|after|not|no|none|almost|partly|ensures?|sure|checks?|verify|expects?"
    r"|will|would|should|must|that)\b|n't\b"
)
# After a claim: true only on a condition, or not of all
_HEDGED = re.compile(r",? (?:except|but not|only|if|when|once|unless|until)\b")
_CLAUSE_START = re.compile(r"[,;:—–]| - |\(|\b(?:and|but|so)\b")

QUOTED = "□"
READ = 20_000  # characters from the end that are looked at
CLOSING = 3  # sentences, beside lists and headings, in which a text closes
LONGEST_SENTENCE = 600
# Fenced code (to the end of the text where it stays open), a quoted line, code in a line, words in quotation marks
_QUOTATION = re.compile(
    r"^[ \t]*(?:[-*+] |\d+\. )?(?P<fence>`{3,}|~{3,}).*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|^[ \t]*(?:[-*+] )?>[^\n]*"
    r"|(?P<ticks>``?)[^`\n]{1,300}(?P=ticks)"
    r"|(?<!\w)\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|(?<!\w)['‘][^'’\n]{1,600}['’](?!\w)",
    re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r"(?:[-+]|\d+[.)]|#{1,6})\s+(?:\[[ x]\]\s*)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-+]|\d+[.)]|#{1,6})\s)")


@dataclass(frozen=True, slots=True)
class Stop:
    """A turn's end without a result, in `step`, after so many tool calls of the iteration.

    `evidence` is the sentence by which the kind was told: the model's own words, on one line.
    """

    kind: StopKind
    step: Step
    evidence: str = ""
    tool_calls_made: int = 0


def detect_stop(text: str, *, step: Step, tool_calls_made: int = 0) -> Stop:
    """Return the kind of stop that `text`, the visible text of the turn, makes."""
    kind, evidence = _kind(sentences(text)) if text.strip() else ("empty", "")
    return Stop(kind, step, one_line(evidence), tool_calls_made)


def sentences(text: str) -> tuple[str, ...]:
    """Return the model's own sentences at the end of `text`, each on one line; each quotation becomes `QUOTED`."""
    own = _QUOTATION.sub(QUOTED, text[-READ:].replace("\r", "\n")).replace("’", "'").replace("*", "")
    lines = (" ".join(part.split())[-LONGEST_SENTENCE:] for part in _SENTENCE_END.split(own))
    return tuple(line for line in lines if line.strip(QUOTED))


def _kind(said: Sequence[str]) -> tuple[StopKind, str]:
    closing = [sentence for sentence in said if not _MARKER.match(sentence)][-CLOSING:]
    if found := _first(closing, "permission"):
        return "permission", found
    if closing and closing[-1].rstrip(")]").endswith("?"):
        return "question", closing[-1]
    kinds: tuple[StopKind, ...] = ("claim", "status")
    for kind in kinds:
        if found := _first(said, kind):
            return kind, found
    return "other", ""


def _first(said: Iterable[str], kind: StopKind) -> str:
    """Return the first sentence that says a phrase of this kind and means it; "" for none."""
    return next((sentence for sentence in said if _says(_MARKER.sub("", sentence.lower()), kind)), "")


def _says(sentence: str, kind: StopKind) -> bool:
    for match in PHRASES[kind].finditer(sentence):
        clause = _CLAUSE_START.split(sentence[: match.start()])[-1]
        supposed = _SUPPOSED.search(clause) or _HEDGED.match(sentence, match.end())
        if not _REPORTED.search(clause) and not (kind == "claim" and supposed):
            return True
    return False


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
    Step.SELECT_NEXT_COMPONENT: "select_component(name, reason)",
    Step.BREAK_INTO_TASKS: "record_tasks(component, tasks), with at least one task",
}


def nudge(
    stop: Stop,
    missing: Sequence[str] = (),
    *,
    n: int,
    of: int,
    task_id: str = "",
    may_ask: bool = False,
) -> str:
    """Return the text of nudge `n` of `of`.

    `missing` names the tools that a task in step 6 needs without a fresh success (`completion.missing`). `may_ask`:
    `ask_user` is still open to the model.
    """
    seen = OBSERVATIONS[stop.kind].format(said=f' ("{stop.evidence}")' if stop.evidence else "")
    lines = [
        f"[lopen {n}/{of}] This turn ended without the result of step {number(stop.step)}, {stop.step.value}: {seen}."
    ]
    if not stop.tool_calls_made:
        lines.append("No tool has been called in this iteration yet.")
    if stop.kind == "question":
        lines.append(_answer_to_question(stop.step, may_ask))
    if stop.step is Step.ITERATE_THROUGH_TASKS:
        lines.append(_building_calls(missing, task_id))
    elif stop.step in RESULT_CALLS:
        lines.append(f"Call next: {RESULT_CALLS[stop.step]}.")
    if n >= of:
        lines.append("This is the last reminder: another turn without the result counts as a failure.")
    return "\n".join(lines)


def _building_calls(missing: Sequence[str], task_id: str) -> str:
    task = f'"{task_id}"'
    calls = [f"{tool}({task})" if tool == "verify_task_completion" else f"{tool}()" for tool in missing]
    finish = f'update_task_status({task}, "complete"); if the task cannot be done, update_task_status({task}, "failed", note)'
    before = "Make the changes that are still to be made. " if calls else ""
    return f"{before}Call next: {', '.join((*calls, finish))}."


def _answer_to_question(step: Step, may_ask: bool) -> str:
    if step is Step.ITERATE_THROUGH_TASKS:  # ask_user is not offered there
        return 'Decide it yourself by the specification, and begin the note of verify_task_completion with "Assumed:".'
    if may_ask:
        return "Call ask_user(question, default) if you cannot decide; you have one question in this session."
    return "Decide it yourself by the specification: ask_user records your own default as an assumption."
