"""Every end of a turn that brought no result of its step: what kind of stop it was, and the answer to it.

Quotations and code are left alone: a specification or a test may well be about the phrases that are looked for here.
Permission and questions count only where the text closes, claims and reports anywhere in it. A quotation leaves
`QUOTED` behind, so that a sentence around it stays a sentence; quotation marks pair within a paragraph only.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lopen.guardrails.guard import listing, one_line
from lopen.workflow.steps import Step, number

StopKind = Literal["permission", "status", "claim", "empty", "question", "other"]
PhraseKind = Literal["permission", "claim", "status"]

_ACT = (
    r"(?:proceed|continue|go (?:ahead|on)|start|begin|move (?:on|forward|ahead)|carry on|keep (?:going|working)|resume"
    r"|advance|implement|write|create|add|run|make|apply|commit|fix|finish|do (?:that|this|it|so)|tackle|work on|push on"
    r"|take (?:that|this|it) (?:on|further)|wrap (?:up|this up))"
)
_YOUR = r"(?:explicit |final |further )?(?:confirmation|approval|permission|go[- ]ahead|consent|instructions?|input|response|reply|feedback|answer|decision|blessing|word|direction|guidance|ok(?:ay)?|sign[- ]?off|green light|thoughts)"
_WORK = r"(?:tasks?|subtasks?|components?|modules?|work|implementation|features?|steps?|job|changes?|refactor(?:ing)?|migration|fix|code|everything|functionality|requirements?|module|project)"
_DONE = r"(?:complete|completed|done|finished|implemented|in place|accomplished|fulfilled|wrapped up|ready(?: for (?:review|use|production)| to (?:merge|ship|use))?|good to go|working(?: as (?:expected|intended|specified))?|fully functional)"
_NOW = r"(?:now |all |already |fully |successfully |both |therefore |thus |finally |100% )*"
_TESTS = r"(?:(?:the|these|those|our|my|of|\d+|unit|integration|new|existing|regression|end-to-end|e2e|required|relevant) )*(?:tests?|checks?|specs?|test cases|test suites?|assertions|verifications?|linters?)"

# Before a phrase, in its clause: somebody else's words, or a denial.
_REPORTED = (
    r"\b(?:asks?|asked|prompts?|prompted|prints?|printed|displays?|displayed|says?|said|reads|shows?|returns?|returned"
    r"|titled|labell?ed|named|called|whether|phrases?|strings?|wording|never|without|instead of|rather than"
    r"|no need|no reason|not|does|did)\b|n't\b"
)
# Before a claim, in its clause: denied, wished, supposed or demanded.
_SUPPOSED = (
    r"\b(?:if|once|until|unless|whether|so that|ensur(?:e|es|ing)|make sure|making sure|sure that|check(?:s|ing)?(?: that)?|verif(?:y|ies|ying)"
    r"|confirm(?:s|ing)?|expect(?:s|ed)?|assert(?:s|ing)?|asks?|says?|said|reads|prints?|displays?|shows|returns?|not|never|no|cannot"
    r"|almost|nearly|partly|partially|half|mostly|far from|yet to|before|until|unclear|previous|earlier|prior|require[sd]?"
    r"|means?|see(?:ing)?|tells?|report(?:s|ing)? (?:that|when)|as soon as|only when|provided|assuming|none|some|most|few)\b|n't\b"
)
_AHEAD = r"\b(?:when|whenever|after|will|would|should|must|may|might|could|shall|needs? to|has to|have to|want|hope|let|while)\b|'ll\b"


# fmt: off
PHRASES: Mapping[PhraseKind, tuple[re.Pattern[str], ...]] = {
    "permission": tuple(map(re.compile, (
        r"\b(?:would|do|did) you (?:like|want|prefer|wish)(?: for)? (?:me|us)\b",
        r"\bwould you (?:like|prefer|rather)\b",
        r"^(?:want|need|like) me to\b",
        rf"\b(?:shall|should|may|can|could|might) (?:i|we) (?:now |then |just |also |simply )?{_ACT}\b",
        rf"\b(?:is|would) (?:it|that|this) (?:be )?(?:ok|okay|fine|alright|all right|acceptable|good)(?: with you)?(?: if i| for me| to {_ACT})",
        r"\b(?:are|is) (?:you|everyone|that|this|it) (?:ok|okay|happy|fine|good|comfortable)(?: with| for me|\?)",
        r"\b(?:does|do) (?:that|this|it|the plan|these) (?:sound|look|seem|work)(?: \w+)?(?: for| to)?(?: you)?\s*\?",
        r"^(?:sounds|looks) (?:good|ok|okay|right|fine)\s*\?",
        r"^(?:ok|okay|ready|good|all right|alright|fine) (?:to|for me to) \w+[^.]*\?",
        r"\blet me know\b",
        r"\b(?:just )?say the word\b",
        r"\bplease (?:confirm|approve|advise|tell me|indicate|let me know|respond|reply|review and)\b",
        rf"\b(?:await|awaiting|waiting (?:for|on)|wait for|pending|need|needs?|request(?:ing)?|have|get|with|without|upon|on|subject to|standing by for) your {_YOUR}\b",
        r"\bgive me (?:the|a|your) (?:go[- ]ahead|green light|ok|okay|nod|word)\b",
        r"\bi(?:'ll| will| can|'d| would) [^.?!]*\b(?:once|when|after|as soon as|if) you(?:'ve| have)? (?:confirm|approve|agree|respond|reply|decide|give|tell|let|say|want|like|prefer|wish)",
        r"\b(?:once|when|after|as soon as) you(?:'ve| have)? (?:confirm|approve|agree|respond|reply|decide|give|tell|say)\w*,? (?:me )?[^.?!]*\bi(?:'ll| will| can)\b",
        r"\bif you(?:'d| would)? (?:like|want|prefer|wish|approve|agree)(?: me to|,? (?:i|we)(?:'ll| can| will|'d| could)\b)",
        r"\bi(?:'m| am) (?:ready|happy|glad|available|standing by|here) (?:to \w+|if|for|when|whenever)\b",
        r"^(?:ready|happy|glad) to (?:continue|proceed|start|begin|help|go|implement|move)\b",
        r"\b(?:what should i|what do i) (?:do|work on|tackle|focus on) (?:next|now|first)\b|^what(?:'s| is) next\s*\?",
        r"\banything else\b[^.]*\?|\banything else (?:you'd|you would|you want|you need)\b",
        r"\bdo i have (?:your )?(?:permission|approval|the go[- ]ahead|leave)\b|\bam i (?:ok|okay|good|clear|cleared|allowed) to\b",
        r"\bfeel free to (?:ask|tell|let|reach|provide|request|suggest)\b",
        r"\b(?:it's |it is )?(?:up to you|your call)\b",
        r"\bstanding by\b(?! the)",
        r"\bdo you (?:approve|agree|consent|concur)\b|\bis (?:this|that|it) (?:acceptable|all right|alright|ok|okay|fine)\s*\?",
        r"\bi(?:'ll| will|'d like to| would like to| want to|'m going to| am going to) (?:stop|pause|hold off|check in|check with you)\b",
        r"\b(?:good|natural|logical|sensible|convenient) (?:stopping|pause|pausing|break|breaking|checkpoint) ?(?:point|place)?\b",
        r"\b(?:confirm|agree|discuss|align|clarify|validate) [^.?!]{0,60}\bwith you\b",
        r"\bif (?:that|this)(?:'s| is| works| sounds| seems)(?: all)? ?(?:ok|okay|fine|good|acceptable|right|alright|for you|with you)\b",
        r"\bi(?:'ll| will)? need you to\b|^please (?:run|execute|provide|share|check|try|paste|send)\b",
        r"\b(?:can't|cannot|can not|won't|will not|unable to) (?:proceed|continue|start|go (?:on|ahead|any further)|move on)\b[^.?!]*\b(?:without|until|unless|before) you(?:r)?\b",
    ))),
    "claim": tuple(map(re.compile, (
        rf"\b(?:{_WORK}|criteria|criterion|stubs?|bugs?|issues?) (?:is|are|has been|have been|'s) {_NOW}{_DONE}\b",
        rf"^(?:the |this |that )?{_WORK}(?: \S*\d\S*)? (?:complete|completed|done|finished)[.!:]*$",
        r"\b(?:is|are|has been|have been) (?:now |all |both |fully )*(?:complete|completed|done|finished|implemented)[.!]*$",
        r"^(?:all )?(?:done|finished|complete|completed)[.!]*$",
        rf"\ball {_TESTS} (?:are |is |have |has |do |were )?{_NOW}(?:pass|passes|passed|passing|green|succeed|succeeds|succeeded|ok)\b(?! (?:to|through|into|along|a|an|around)\b)",
        rf"\b{_TESTS}(?: in \S+| for [^.,;]{{1,40}})? (?:are|is|have|has) {_NOW}(?:passed|passing|green)\b",
        r"\b\d+ (?:tests? |checks? )?(?:passed|passing)\b(?![^.]*\b[1-9]\d* (?:tests? )?(?:failed|failing|errors?)\b)",
        r"\bthis (?:concludes|completes|finishes|wraps up)\b|\bworks as (?:expected|intended|specified|designed)\b",
        r"\b(?:implementation|module|component|code) (?:now |fully )*(?:satisfies|meets|fulfils|fulfills|conforms to|matches) (?:the|all|its|every)\b",
        r"\b(?:we|i)(?:'re| are|'m| am) (?:all |now |basically )*(?:set|done|finished)\b",
        r"\b(?:the )?(?:test )?(?:suite|build|pipeline|ci) (?:is (?:now )?(?:green|passing|clean)|passes|passed|succeeds|succeeded)\b",
        r"\beverything (?:now )?(?:works|passes|builds|compiles|is green)\b",
        r"\b(?:implemented|completed|finished|added|built|fixed|verified) successfully\b|\bsuccessfully (?:implemented|completed|finished|built|added|fixed|verified|created)\b",
        r"\bi(?:'ve| have)(?: now| just| already| fully| successfully)* (?:completed|finished|implemented|delivered|wrapped up|done)\b",
        r"\b(?:nothing|no (?:further|more|other) (?:work|changes|steps|action|actions|tasks))(?: (?:is|are|else))?(?: left| remains?| needed| required| to (?:be done|do))",
        r"\ball (?:of )?(?:the )?(?:acceptance )?(?:criteria|requirements|tasks|subtasks|components|items|todos)(?: \S+)? (?:are|have been) (?:now |all )?(?:met|satisfied|fulfilled|covered|complete|completed|done|implemented|finished|ticked)\b",
    ))),
    "status": tuple(map(re.compile, (
        r"\bi(?:'ll| will) (?:now|next|then|also|proceed|continue|start|begin|first|go ahead|move on|go on|be)\b",
        r"\bi(?:'m| am) (?:now )?(?:going to|about to|moving on|working on|starting|proceeding|continuing|planning to)\b",
        r"\b(?:next|now|then|after that|from here|first)(?: up)?,? (?:i(?:'ll| will|'m going to| am going to| need to| plan to| want to| should)|let me|let's|we(?:'ll| will| need to))\b",
        r"\b(?:my|the) next (?:step|steps|action|move|task) (?:is|are|will be|would be)\b|^(?:#+ )?next steps?\b",
        r"^(?:now )?let me (?:now |first |next |also |just |quickly )?(?:start|begin|check|look|read|create|write|run|implement|fix|add|update|verify|examine|explore|see|continue|proceed|move|review|try)\b",
        r"^(?:now )?let's (?:start|begin|check|look|create|write|run|implement|fix|add|update|verify|continue|proceed|move|go)\b",
        r"\bhere(?:'s| is| are) (?:a|the|my|an|what)(?: \w+)? ?(?:summary|overview|status|plan|progress|recap|report|breakdown|rundown|outline|i(?:'ve| have)? (?:did|done|found|changed|have))\b",
        r"^(?:#+ )?(?:summary|status|progress|recap|current (?:status|state)|progress (?:so far|update|report)|status (?:update|report)|what (?:i did|was done|changed)|remaining(?: \w+)?|to summari[sz]e|in summary|so far)\b",
        r"\bi(?:'ve| have)(?: now| just| already)* (?:read|reviewed|analy[sz]ed|looked|examined|explored|updated|created|written|added|made|set up|started|begun|gone|identified|understood|refactored|changed|moved|fixed)\b",
        r"\bi (?:still |also |now |first |then )?(?:need|have|want) to\b",
        r"\bi plan to\b|\bmy plan is\b|\bthe plan is\b|\bi intend to\b",
        r"^(?:moving on|proceeding|starting|continuing|beginning)\b",
    ))),
}
# fmt: on
# Words before a phrase in its clause that make it somebody else's, a denial or a wish
UNLESS: Mapping[PhraseKind, re.Pattern[str]] = {
    "permission": re.compile(_REPORTED),
    "claim": re.compile(_SUPPOSED),
    "status": re.compile(_REPORTED),
}
# The same for a claim, but only after the last "and": it does not reach across one
UNLESS_NEAR = re.compile(_AHEAD)
# After a claim: an exception or a condition that takes it back.
HEDGE = re.compile(
    r"^[^.;:!?]{0,12}?,? ?\b(?:except|apart from|but not|but two|only|if|when|once|unless|as soon as|provided|other than|save for|until)\b"
)
# Right before a phrase: a colon after somebody's saying it.
SPOKEN = re.compile(
    r"\b(?:asks?|asked|prompts?|prompted|prints?|printed|displays?|says?|said|reads|shows?)\b[^:]{0,40}:\s*$"
)
CLAUSE_START = re.compile(r"[,;:—–]| - |\(")
NEAR_START = re.compile(r"\b(?:and|but|so|then|which|who)\b")

QUOTED = "□"
READ = 20_000  # characters from the end that are looked at
_SIDE = 300

_FENCE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_BLOCK_QUOTE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?>")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")
_HTML = re.compile(r"<(pre|code|blockquote|q)\b[^>]{0,200}>.{0,5000}?</\1\s*>", re.IGNORECASE | re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n)(?:.|\n))+?)(?<!`)\1(?!`)")
_IN_PARAGRAPH = r"(?:[^{end}\n]|\n(?!\s*\n))+"
_QUOTES = re.compile(
    "|".join(
        (
            r'(?<!\w)"' + _IN_PARAGRAPH.format(end='"') + r'"(?!\w)',
            "[“„]" + _IN_PARAGRAPH.format(end="“”") + "[“”]",
            "«" + _IN_PARAGRAPH.format(end="»") + "»",
            r"(?<!\w)'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)|\n(?!\s*\n))+'(?!\w)",
            r"(?<!\w)‘(?:[^’\n]|(?<=\w)’(?=\w)|\n(?!\s*\n))+’(?!\w)",
        )
    )
)
_EMPHASIS = re.compile(
    r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<!\w)_{1,3}(?=\w)|(?<=[\w.!?])_{1,3}(?!\w)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]]*\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)]|#{1,6})\s)")


def own_words(text: str) -> str:
    """The end of `text` (`READ` characters) with everything quoted or coded replaced by `QUOTED`."""
    rest = _without_code_and_quotes(text[-READ:].replace("\r\n", "\n").replace("\r", "\n"))
    rest = _QUOTES.sub(QUOTED, _INLINE_CODE.sub(QUOTED, rest)).replace("’", "'")
    return _EMPHASIS.sub("", rest).strip()


def sentences(words: str) -> tuple[str, ...]:
    """The sentences of own words, each on one line; list items and headings count as sentences.

    The middle of an endless sentence is left out, so that looking through it stays cheap.
    """
    lines = (" ".join(s.split()) for s in _SENTENCE_END.split(words))
    return tuple(s if len(s) <= 2 * _SIDE else f"{s[:_SIDE]} … {s[-_SIDE:]}" for s in lines if s)


def closing(words: str, paragraphs: int = 2) -> str:
    """The text from the last-but-one paragraph of prose on; lists and headings go with the prose before them."""
    blocks = re.split(r"\n\s*\n", words)
    prose = [i for i, block in enumerate(blocks) if not _is_apparatus(block)]
    start = prose[-paragraphs] if len(prose) >= paragraphs else 0
    return "\n\n".join(blocks[start:])


def _is_apparatus(block: str) -> bool:
    lines = [line for line in block.split("\n") if line.strip()]
    return all(_LIST_ITEM.match(line) or _HEADING.match(line) or line.strip() == QUOTED for line in lines)


def _without_code_and_quotes(text: str) -> str:
    """Fenced code and block quotes out; an unclosed fence reaches to the end of the text."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            stripped = line.strip()
            if len(stripped) >= len(fence) and set(stripped) == {fence[0]}:
                fence = ""
        elif mark:
            fence = mark[1]
            kept.append(QUOTED)
        else:
            kept.append("" if _BLOCK_QUOTE.match(line) else line)
    return "\n".join(kept)


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


def _first(said: Iterable[str], kind: PhraseKind) -> str:
    """The first sentence that says a phrase of this kind and means it."""
    return next(
        (s for s in said if any(_says(_MARKER.sub("", s.lower()), p, kind) for p in PHRASES[kind])), ""
    )


def _says(sentence: str, phrase: re.Pattern[str], kind: PhraseKind) -> bool:
    found = phrase.finditer(sentence)
    return any(_meant(sentence[: match.start()], sentence[match.end() :], kind) for match in found)


def _meant(before: str, after: str, kind: PhraseKind) -> bool:
    clause = CLAUSE_START.split(before)[-1]
    if UNLESS[kind].search(clause) or SPOKEN.search(before):
        return False
    if kind != "claim":
        return True
    return not UNLESS_NEAR.search(NEAR_START.split(clause)[-1]) and not HEDGE.match(after)


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
    """The text of nudge `n` of `of`.

    `missing` names the step's missing result: in step 6 the tools without a fresh success (`quality.missing`). `may_ask` says that `ask_user` is still open to the model.
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
