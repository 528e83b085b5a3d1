"""The part of a text that is in its writer's own words: without code, quotations and docstrings; and its sentences.

Markdown as models write it, read by line: no renderer is needed to leave a quotation alone. What is taken out
leaves `QUOTED` behind, so that a sentence around it stays a sentence. Quotation marks pair within a
paragraph only: one left open cannot swallow the rest of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

QUOTED = "□"
READ = 20_000  # characters from the end that are looked at
_SIDE = 300

_FENCE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_BLOCK_QUOTE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?>")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")
_TRIPLE = re.compile(r'"""(?:.|\n)*?"""|' + r"'''(?:.|\n)*?'''")
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
    rest = text[-READ:].replace("\r\n", "\n").replace("\r", "\n")
    rest = _without_fences(rest)
    for pattern in (_TRIPLE, _HTML):
        rest = pattern.sub(QUOTED, rest)
    rest = _without_indented_code(_without_block_quotes(rest))
    rest = _INLINE_CODE.sub(QUOTED, rest)
    rest = _QUOTES.sub(QUOTED, rest).replace("’", "'")
    return _EMPHASIS.sub("", rest).strip()


def sentences(words: str) -> tuple[str, ...]:
    """The sentences of own words, each on one line; list items and headings count as sentences.

    Of one that never ends the middle is left out, so that looking through it stays cheap.
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


def _without_fences(text: str) -> str:
    """Fenced code out, an unclosed fence to the end of the text."""
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
            kept.append(line)
    return "\n".join(kept)


def _without_block_quotes(text: str) -> str:
    return "\n".join("" if _BLOCK_QUOTE.match(line) else line for line in text.split("\n"))


def _without_indented_code(text: str) -> str:
    """Lines indented by four or more after a blank line are code, unless they continue a list item."""
    kept: list[str] = []
    code, after_blank, in_list = False, True, False
    for line in text.split("\n"):
        indented = line.startswith(("    ", "\t"))
        if not line.strip():
            after_blank = True
            kept.append(line)
            continue
        code = indented and not in_list and (code or after_blank)
        if not indented:
            in_list = bool(_LIST_ITEM.match(line))
        after_blank = False
        kept.append(QUOTED if code else line)
    return "\n".join(kept)


Kind = Literal["permission", "claim", "status"]

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
# The same, but only in what stands after the last "and": it does not reach across one.
_AHEAD = r"\b(?:when|whenever|after|will|would|should|must|may|might|could|shall|needs? to|has to|have to|want|hope|let|while)\b|'ll\b"


@dataclass(frozen=True, slots=True)
class Phrase:
    """One way to say it. `unless_near` reaches back to the last "and", `unless` to the start of the clause."""

    kind: Kind
    pattern: re.Pattern[str]
    unless: re.Pattern[str]
    unless_near: re.Pattern[str] | None = None


def _permission(pattern: str) -> Phrase:
    return Phrase("permission", re.compile(pattern), re.compile(_REPORTED))


def _claim(pattern: str) -> Phrase:
    return Phrase("claim", re.compile(pattern), re.compile(_SUPPOSED), re.compile(_AHEAD))


def _status(pattern: str) -> Phrase:
    return Phrase("status", re.compile(pattern), re.compile(_REPORTED))


PHRASES: tuple[Phrase, ...] = (
    _permission(r"\b(?:would|do|did) you (?:like|want|prefer|wish)(?: for)? (?:me|us)\b"),
    _permission(r"\bwould you (?:like|prefer|rather)\b"),
    _permission(r"^(?:want|need|like) me to\b"),
    _permission(rf"\b(?:shall|should|may|can|could|might) (?:i|we) (?:now |then |just |also |simply )?{_ACT}\b"),
    _permission(rf"\b(?:is|would) (?:it|that|this) (?:be )?(?:ok|okay|fine|alright|all right|acceptable|good)(?: with you)?(?: if i| for me| to {_ACT})"),
    _permission(r"\b(?:are|is) (?:you|everyone|that|this|it) (?:ok|okay|happy|fine|good|comfortable)(?: with| for me|\?)"),
    _permission(r"\b(?:does|do) (?:that|this|it|the plan|these) (?:sound|look|seem|work)(?: \w+)?(?: for| to)?(?: you)?\s*\?"),
    _permission(r"^(?:sounds|looks) (?:good|ok|okay|right|fine)\s*\?"),
    _permission(r"^(?:ok|okay|ready|good|all right|alright|fine) (?:to|for me to) \w+[^.]*\?"),
    _permission(r"\blet me know\b"),
    _permission(r"\b(?:just )?say the word\b"),
    _permission(r"\bplease (?:confirm|approve|advise|tell me|indicate|let me know|respond|reply|review and)\b"),
    _permission(rf"\b(?:await|awaiting|waiting (?:for|on)|wait for|pending|need|needs?|request(?:ing)?|have|get|with|without|upon|on|subject to|standing by for) your {_YOUR}\b"),
    _permission(rf"\byour {_YOUR} (?:is (?:needed|required)|before i|to {_ACT})"),
    _permission(r"\bgive me (?:the|a|your) (?:go[- ]ahead|green light|ok|okay|nod|word)\b"),
    _permission(r"\b(?:when|whenever|once|if) you(?:'re| are) (?:ready|happy|satisfied|ok|okay|good)\b"),
    _permission(r"\bi(?:'ll| will| can|'d| would) [^.?!]*\b(?:once|when|after|as soon as|if) you(?:'ve| have)? (?:confirm|approve|agree|respond|reply|decide|give|tell|let|say|want|like|prefer|wish)"),
    _permission(r"\b(?:once|when|after|as soon as) you(?:'ve| have)? (?:confirm|approve|agree|respond|reply|decide|give|tell|say)\w*,? (?:me )?[^.?!]*\bi(?:'ll| will| can)\b"),
    _permission(r"\bif you(?:'d| would)? (?:like|want|prefer|wish|approve|agree)(?: me to|,? (?:i|we)(?:'ll| can| will|'d| could)\b)"),
    _permission(r"\bi(?:'m| am) (?:ready|happy|glad|available|standing by|here) (?:to \w+|if|for|when|whenever)\b"),
    _permission(r"^(?:ready|happy|glad) to (?:continue|proceed|start|begin|help|go|implement|move)\b"),
    _permission(r"\b(?:how|what|which)(?: \w+){0,3} (?:would|do|should|shall) (?:you|we|i) (?:like|want|prefer)\b"),
    _permission(r"\bhow (?:should|shall|do) (?:i|we) proceed\b"),
    _permission(r"\b(?:what should i|what do i) (?:do|work on|tackle|focus on) (?:next|now|first)\b|^what(?:'s| is) next\s*\?"),
    _permission(r"\banything else\b[^.]*\?|\banything else (?:you'd|you would|you want|you need)\b"),
    _permission(r"\bdo i have (?:your )?(?:permission|approval|the go[- ]ahead|leave)\b|\bam i (?:ok|okay|good|clear|cleared|allowed) to\b"),
    _permission(r"\bfeel free to (?:ask|tell|let|reach|provide|request|suggest)\b"),
    _permission(r"\b(?:it's |it is )?(?:up to you|your call)\b"),
    _permission(r"\b(?:i(?:'ll| will) (?:wait|pause|stop|hold|hold off|leave it|stand by)(?: here)?(?: for you| until you|\.|,|$| now| at this point))"),
    _permission(r"\bstanding by\b(?! the)"),
    _permission(r"\bdo you (?:approve|agree|consent|concur)\b|\bis (?:this|that|it) (?:acceptable|all right|alright|ok|okay|fine)\s*\?"),
    _permission(r"\bi(?:'ll| will|'d like to| would like to| want to|'m going to| am going to) (?:stop|pause|hold off|check in|check with you)\b"),
    _permission(r"\b(?:good|natural|logical|sensible|convenient) (?:stopping|pause|pausing|break|breaking|checkpoint) ?(?:point|place)?\b"),
    _permission(r"\b(?:confirm|agree|discuss|align|clarify|validate) [^.?!]{0,60}\bwith you\b"),
    _permission(r"\bif (?:that|this)(?:'s| is| works| sounds| seems)(?: all)? ?(?:ok|okay|fine|good|acceptable|right|alright|for you|with you)\b"),
    _permission(r"\bi(?:'ll| will)? need you to\b|^please (?:run|execute|provide|share|check|try|paste|send)\b"),
    _permission(r"\b(?:can't|cannot|can not|won't|will not|unable to) (?:proceed|continue|start|go (?:on|ahead|any further)|move on)\b[^.?!]*\b(?:without|until|unless|before) you(?:r)?\b"),
    _claim(rf"\b(?:{_WORK}|criteria|criterion|stubs?|bugs?|issues?) (?:is|are|has been|have been|'s) {_NOW}{_DONE}\b"),
    _claim(rf"^(?:and |so |now |with that,? |great[,!]? )?(?:it|this|that)(?:'s| is| has been) {_NOW}{_DONE}\b"),
    _claim(rf"\b(?:everything|all)(?: of it| that was asked(?: for)?)?(?:'s| is| has been| are) {_NOW}{_DONE}\b"),
    _claim(rf"^(?:the |this |that )?{_WORK}(?: \S*\d\S*)? (?:complete|completed|done|finished)[.!:]*$"),
    _claim(r"\b(?:is|are|has been|have been) (?:now |all |both |fully )*(?:complete|completed|done|finished|implemented)[.!]*$"),
    _claim(r"^(?:all )?(?:done|finished|complete|completed)[.!]*$"),
    _claim(rf"\ball {_TESTS} (?:are |is |have |has |do |were )?{_NOW}(?:pass|passes|passed|passing|green|succeed|succeeds|succeeded|ok)\b(?! (?:to|through|into|along|a|an|around)\b)"),
    _claim(rf"\b{_TESTS}(?: in \S+| for [^.,;]{{1,40}})? (?:are|is|have|has) {_NOW}(?:passed|passing|green)\b"),
    _claim(r"\b\d+ (?:tests? |checks? )?(?:passed|passing)\b(?![^.]*\b[1-9]\d* (?:tests? )?(?:failed|failing|errors?)\b)"),
    _claim(r"\bthis (?:concludes|completes|finishes|wraps up)\b|\bworks as (?:expected|intended|specified|designed)\b"),
    _claim(r"\b(?:implementation|module|component|code) (?:now |fully )*(?:satisfies|meets|fulfils|fulfills|conforms to|matches) (?:the|all|its|every)\b"),
    _claim(r"\b(?:we|i)(?:'re| are|'m| am) (?:all |now |basically )*(?:set|done|finished)\b"),
    _claim(r"\btests? (?:all )?(?:now )?pass(?:es|ed)?(?: now| locally| successfully| cleanly)?[.!]*$"),
    _claim(r"\b(?:the )?(?:test )?(?:suite|build|pipeline|ci) (?:is (?:now )?(?:green|passing|clean)|passes|passed|succeeds|succeeded)\b"),
    _claim(r"\beverything (?:now )?(?:works|passes|builds|compiles|is green)\b"),
    _claim(r"\b(?:implemented|completed|finished|added|built|fixed|verified) successfully\b|\bsuccessfully (?:implemented|completed|finished|built|added|fixed|verified|created)\b"),
    _claim(r"\bi(?:'ve| have)(?: now| just| already| fully| successfully)* (?:completed|finished|implemented|delivered|wrapped up|done)\b"),
    _claim(r"\b(?:nothing|no (?:further|more|other) (?:work|changes|steps|action|actions|tasks))(?: (?:is|are|else))?(?: left| remains?| needed| required| to (?:be done|do))"),
    _claim(r"\b(?:meets?|satisf(?:y|ies)|fulfils?|fulfills?) (?:all|every|each)(?: of)?(?: the)?(?: acceptance)? (?:criteria|criterion|requirements?)\b"),
    _claim(r"\ball (?:of )?(?:the )?(?:acceptance )?(?:criteria|requirements|tasks|subtasks|components|items|todos)(?: \S+)? (?:are|have been) (?:now |all )?(?:met|satisfied|fulfilled|covered|complete|completed|done|implemented|finished|ticked)\b"),
    _claim(r"\b100% (?:complete|done|finished)\b|\bmission accomplished\b"),
    _status(r"\bi(?:'ll| will) (?:now|next|then|also|proceed|continue|start|begin|first|go ahead|move on|go on|be)\b"),
    _status(r"\bi(?:'m| am) (?:now )?(?:going to|about to|moving on|working on|starting|proceeding|continuing|planning to)\b"),
    _status(r"\b(?:next|now|then|after that|from here|first)(?: up)?,? (?:i(?:'ll| will|'m going to| am going to| need to| plan to| want to| should)|let me|let's|we(?:'ll| will| need to))\b"),
    _status(r"\b(?:my|the) next (?:step|steps|action|move|task) (?:is|are|will be|would be)\b|^(?:#+ )?next steps?\b"),
    _status(r"^(?:now )?let me (?:now |first |next |also |just |quickly )?(?:start|begin|check|look|read|create|write|run|implement|fix|add|update|verify|examine|explore|see|continue|proceed|move|review|try)\b"),
    _status(r"^(?:now )?let's (?:start|begin|check|look|create|write|run|implement|fix|add|update|verify|continue|proceed|move|go)\b"),
    _status(r"\bhere(?:'s| is| are) (?:a|the|my|an|what)(?: \w+)? ?(?:summary|overview|status|plan|progress|recap|report|breakdown|rundown|outline|i(?:'ve| have)? (?:did|done|found|changed|have))\b"),
    _status(r"^(?:#+ )?(?:summary|status|progress|recap|current (?:status|state)|progress (?:so far|update|report)|status (?:update|report)|what (?:i did|was done|changed)|remaining(?: \w+)?|to summari[sz]e|in summary|so far)\b"),
    _status(r"\b(?:to summari[sz]e|in summary|so far i(?:'ve| have)?)\b"),
    _status(r"\bi(?:'ve| have)(?: now| just| already)* (?:read|reviewed|analy[sz]ed|looked|examined|explored|updated|created|written|added|made|set up|started|begun|gone|identified|understood|refactored|changed|moved|fixed)\b"),
    _status(r"\bi (?:still |also |now |first |then )?(?:need|have|want) to\b"),
    _status(r"\bi plan to\b|\bmy plan is\b|\bthe plan is\b|\bi intend to\b"),
    _status(r"^(?:moving on|proceeding|starting|continuing|beginning)\b"),
)  # fmt: skip
# After a claim: what it was only almost, or on a condition.
HEDGE = re.compile(
    r"^[^.;:!?]{0,12}?,? ?\b(?:except|apart from|but not|but two|only|if|when|once|unless|as soon as|provided|other than|save for|until)\b"
)
# Right before a phrase: a colon after somebody's saying it.
SPOKEN = re.compile(
    r"\b(?:asks?|asked|prompts?|prompted|prints?|printed|displays?|says?|said|reads|shows?)\b[^:]{0,40}:\s*$"
)
CLAUSE_START = re.compile(r"[,;:—–]| - |\(")
NEAR_START = re.compile(r"\b(?:and|but|so|then|which|who)\b")
