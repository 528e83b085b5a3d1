"""Every end of a turn that brought no result of its step: what kind of stop it was (seed 002, fixes 1 and 4).

The kind chooses the words of the answer (`nudges.nudge`). Quotations and code are left alone: a specification
or a test may well be about the phrases that are looked for here. Permission and questions count only where
the text closes, claims and reports anywhere in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lopen.guardrails.phrases import CLAUSE_START, HEDGE, NEAR_START, PHRASES, SPOKEN, Kind, Phrase
from lopen.guardrails.prose import closing, own_words, sentences
from lopen.guardrails.wording import one_line
from lopen.workflow.steps import Step

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
        """Whether it wants an answer. In step 1 conversation is the point, and a complete session has no turns."""
        return self.step not in (Step.DRAFT_SPECIFICATION, Step.COMPLETE)


def judge(text: str, *, step: Step, tool_calls_made: int = 0) -> Stop:
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
    """Whether the sentence says the phrase and means it."""
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
