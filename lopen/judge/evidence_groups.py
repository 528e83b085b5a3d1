"""The parts of the evidence message: grouped by kind, each kind within its share of the room."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lopen.judge.diff_files import is_text, numbered_diff, numbered_source, split_diff, visible
from lopen.judge.evidence import ChangedFile, Evidence, SourceFile
from lopen.judge.verdict import Verdict
from lopen.models.prompts.sizes import units
from lopen.store.audit import VerifyResult
from lopen.verification.findings import ChangeQuestion, Finding
from lopen.verification.runners import shown_output

FINDINGS_SHOWN = 40  # of each severity
LONGEST_FINDING = 500
KIND_WORDS = 4  # of a finding's message
LONGEST_NOTE = 2_000
LAST_VERDICT = "the last verdict on this work"

# Largest share of the whole that each group may take. The diff and the source get all that is left.
SHARES = {
    "findings": 0.08,
    "questions": 0.12,
    "earlier": 0.04,
    "results": 0.12,
    "description": 0.06,
    "criteria": 0.08,
    "sections": 0.16,
    "answers": 0.03,
    "commands": 0.04,
    "note": 0.02,
    "established": 0.08,
    "carried": 0.04,
    "tests": 0.04,
    "unshown": 0.05,
}
_FENCE = 60  # characters of a part's two fence lines, without its name
_KINDS = {"source": 0, "test": 1, "other": 2}

Part = tuple[str, str]  # its name and its text


@dataclass
class EvidenceGroup:
    """Parts under one title, bounded by a share of the message. `cut`: something was left out."""

    title: str
    room: int  # units
    parts: list[Part] = field(default_factory=list)
    cut: bool = False

    def add(self, name: str, text: str) -> bool:
        """Add a whole part; return False where it does not fit."""
        size = size_of(name, text)
        if size > self.room:
            return False
        self.room -= size
        self.parts.append((name, text))
        return True

    def add_lines(self, name: str, lines: Sequence[str], *, tail: bool = False) -> None:
        """Add as many whole lines as fit, the first ones or with `tail` the last ones, and say how many are left out."""
        if self.add(name, "\n".join(lines)):
            return
        self.cut = True
        room = self.room - size_of(name, "") - 80
        kept = _fitting(reversed(lines) if tail else lines, room)
        note = f"[{len(lines) - len(kept)} of {len(lines)} lines left out]"
        shown = [note, *reversed(kept)] if tail else [*kept, note]
        self.add(name, "\n".join(shown))


def _group(title: str, share: str, whole: int, parts: Iterable[tuple[str, Sequence[str]]]) -> EvidenceGroup:
    """Return the group with its parts, each as its name and its lines."""
    group = EvidenceGroup(title, int(whole * SHARES[share]))
    for name, lines in parts:
        group.add_lines(name, lines)
    return group


def order_groups(evidence: Evidence, whole: int) -> Iterator[EvidenceGroup]:
    """Return the assignment: the same in every judgement of one piece of work."""
    work = evidence.work
    described = [(work.subject, visible(work.description).split("\n"))]
    yield _group("What the work was to do", "description", whole, described)
    due = [f"{name}: {_one_line(text)}" for name, text in work.criteria if name in work.due]
    others = [f"{name}: {_one_line(text)}" for name, text in work.criteria if name not in work.due]
    criteria = [
        (name, lines) for name, lines in (("answer each of these", due), ("criteria", others)) if lines
    ]
    yield _group("Acceptance criteria", "criteria", whole, criteria)
    sections = [(name[:300], visible(text).split("\n")) for name, text in work.sections]
    yield _group("Sections of the specification", "sections", whole, sections)
    if work.answers:
        answers = [("answers", [f"{quoted(q)} -> {quoted(a)}" for q, a in work.answers])]
        title = "Decisions: the person's answers, and what was assumed where nobody answered"
        yield _group(title, "answers", whole, answers)


def work_groups(evidence: Evidence, whole: int) -> Iterator[EvidenceGroup]:
    """Return the evidence about the work without its files, the weightiest first."""
    earlier = evidence.earlier
    found = [("findings", list(_finding_lines(evidence.findings)))]
    yield _group("Found by lopen in the change", "findings", whole, found)
    if evidence.questions:
        asked = [(question.id, list(_question_lines(question))) for question in evidence.questions]
        yield _group("Questions about the change: answer each", "questions", whole, asked)
    results = _group("Verify commands, run by lopen", "results", whole, ())
    _add_results(results, evidence.results)
    yield results
    ran = [
        (each.command[:LONGEST_FINDING], [f"exit code: {each.exit_code}", *_outputted(each.output)])
        for each in evidence.builder.commands
    ]
    if ran:
        yield _group("Commands that the builder ran on its way, oldest first", "commands", whole, ran)
    if evidence.failed_before:
        told = [("notes", [line for note in evidence.failed_before for line in visible(note).split("\n")])]
        title = "Failed before the work began; do not blame the work for what it did not touch"
        yield _group(title, "commands", whole, told)
    claims = [evidence.builder.note[:LONGEST_NOTE]] if evidence.builder.note else []
    claims += evidence.work.claims
    if claims:
        said = [("claims", [line for claim in claims for line in visible(claim).split("\n")])]
        yield _group("The builder's words and own assumptions: claims, not evidence", "note", whole, said)
    if earlier.last is not None:
        yield from _last_verdict(earlier.last, whole, answers=evidence.change.since == LAST_VERDICT)
    if earlier.established:
        title = "Accepted verdicts on narrower pieces of this work"
        yield _group(title, "established", whole, [("verdicts", list(_established_lines(evidence)))])
    if earlier.carried:
        left = [
            f"{_one_line(id)}: {_one_line(subject)} could not tell: {_one_line(lacks[:LONGEST_FINDING])}"
            for id, subject, lacks in earlier.carried
        ]
        yield _group("Criteria that narrower verdicts left open", "carried", whole, [("left open", left)])
    if evidence.change.tests:
        listed = [
            f"{quoted(path)}: {', '.join(map(_one_line, names))}" for path, names in evidence.change.tests
        ]
        yield _group("Tests by file", "tests", whole, [("tests", listed)])


def _last_verdict(last: Verdict, whole: int, *, answers: bool) -> Iterator[EvidenceGroup]:
    """Yield what the last verdict on the same work asked for; lopen's own findings are found anew."""
    if last.objections:
        title = "Found by the last verdict on this work: see whether each is mended now"
        yield _group(title, "earlier", whole, [("earlier", list(_finding_lines(last.objections)))])
    if answers:
        title = "What the last verdict answered, of the work as it was then"
        yield _group(title, "established", whole, [("answers", list(_answer_lines(last)))])


def _answer_lines(verdict: Verdict) -> Iterator[str]:
    for result in verdict.criteria:
        shown = f": {_one_line(result.evidence[:LONGEST_FINDING])}" if result.evidence else ""
        yield f"{_one_line(result.id)}: {result.holds}{shown}"


def _finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """One line a finding; each severity is bounded by itself. The first ones of each kind come first, so that many of
    one kind push out none of another.
    """
    for severity in ("error", "warning", "info"):
        ours = _by_turns([finding for finding in findings if finding.severity == severity])
        for finding in ours[:FINDINGS_SHOWN]:
            place = f" {quoted(finding.path)}" if finding.path else ""
            place += f":{finding.line}" if finding.line else ""
            yield f"{severity}{place}: {_one_line(finding.message[:LONGEST_FINDING])}"
        if len(ours) > FINDINGS_SHOWN:
            yield f"{severity}: {len(ours) - FINDINGS_SHOWN} more of this severity are not listed"
    if not findings:
        yield "(nothing)"


def _question_lines(question: ChangeQuestion) -> Iterator[str]:
    """Yield the question, then both versions of the changed text."""
    place = (
        f"{quoted(question.path)}{f':{question.line}' if question.line else ''}: " if question.path else ""
    )
    yield f"{place}{_one_line(question.text)}"
    for title, text in (("before", question.before), ("after", question.after)):
        if text:
            yield f"{title}:"
            yield from (f"| {visible(line)}" for line in text.removesuffix("\n").split("\n"))


def _by_turns(findings: Sequence[Finding]) -> list[Finding]:
    """Return the first finding of every kind, then the second ones, and so on. Names and numbers make no kind."""
    seen: Counter[str] = Counter()
    turns = []
    for finding in findings:
        words = [word for word in finding.message.split() if word.isalpha()]
        kind = " ".join(words[:KIND_WORDS])
        turns.append(seen[kind])
        seen[kind] += 1
    return [finding for _, finding in sorted(zip(turns, findings, strict=True), key=lambda pair: pair[0])]


def _add_results(group: EvidenceGroup, results: Sequence[VerifyResult]) -> None:
    """Each command with an equal share of the room for the end of its output."""
    for number, result in enumerate(results):
        share = EvidenceGroup("", group.room // (len(results) - number))
        head = [
            f"command: {quoted(result.command[:LONGEST_FINDING])}",
            f"passed: {str(result.passed).lower()}, exit code: {result.exit_code}",
            "output:",
        ]
        told = shown_output(result.output, passed=result.passed)
        output = _outputted(told)
        room = share.room - size_of(result.tool, "\n".join(head)) - 80
        kept = list(reversed(_fitting(reversed(output), room)))
        if len(kept) < len(output):
            group.cut = True
            head.append(
                f"[{len(output) - len(kept)} of {len(output)} lines left out; read_output gives them]"
            )
        group.add(result.tool, "\n".join([*head, *kept]))


def _outputted(output: str) -> list[str]:
    return [f"| {visible(line)}" for line in output.split("\n")]


def _established_lines(evidence: Evidence) -> Iterator[str]:
    for name, verdict in evidence.earlier.established:
        how = "accepted by a person" if verdict.by_person else f"passed ({verdict.confidence})"
        yield f"{verdict.subject} {quoted(name)}: {how}: {_one_line(verdict.summary[:LONGEST_FINDING])}"
        yield from (f"  {line}" for line in _answer_lines(verdict))


def file_groups(evidence: Evidence, unshown: EvidenceGroup, room: int) -> Iterator[EvidenceGroup]:
    """The diff and the final source: whole files while they fit, source before tests before the rest."""
    files = {file.path: file for file in evidence.change.files}

    def order(path: str) -> tuple[int, str]:
        return _KINDS[files[path].kind] if path in files else 0, path

    diffs: dict[str, str] = {}
    for part in split_diff(evidence.change.diff):  # a file that became a link has two parts
        if is_text(part.text):
            diffs[part.path] = "\n".join(filter(None, (diffs.get(part.path), numbered_diff(part))))
    source = {file.path: _source(file) for file in evidence.change.source if is_text(file.text)}
    diff = EvidenceGroup(f"Diff since {evidence.change.since}", max(0, room))
    for path in sorted(diffs, key=order):
        diff.add(path, diffs[path])
    rejected = evidence.change.since == LAST_VERDICT
    diff.cut = rejected  # what that verdict saw and nothing changed since is not shown again
    whose = "the last verdict" if rejected else "the work"
    final = EvidenceGroup(f"Final source of the files that {whose} names", diff.room)
    final.cut = any(file.lines for file in evidence.change.source)
    for path in sorted(source, key=order):
        final.add(path, source[path])
    missing = _missing(evidence, {name for name, _ in diff.parts}, {name for name, _ in final.parts})
    if missing:
        unshown.add_lines("files", [_listed(file) for file in sorted(missing, key=lambda f: order(f.path))])
    yield diff
    if evidence.change.source:
        yield final


def _source(file: SourceFile) -> str:
    if not file.lines:
        return numbered_source(file.text)
    lines = file.text.splitlines()
    shown = [f"{n} {visible(lines[n - 1])}" for n in file.lines]
    return "\n".join([*shown, f"[{len(shown)} of {len(lines)} lines are shown; read_file gives the rest]"])


def _missing(evidence: Evidence, in_diff: set[str], in_source: set[str]) -> list[ChangedFile]:
    """The files of which something is not shown."""
    due = {file.path for file in evidence.change.source}
    given = {part.path for part in split_diff(evidence.change.diff)}
    return [
        file
        for file in evidence.change.files
        if (file.path in due and file.path not in in_source)
        or (file.path in given and file.path not in in_diff)
        or file.path not in due | given
    ]


def _listed(file: ChangedFile) -> str:
    return f"{quoted(file.path)}: {'deleted' if file.size is None else f'{file.size} bytes'}"


def quoted(name: str) -> str:
    """Return a name or a short text in quotes on one line, its control characters escaped."""
    return visible(json.dumps(name, ensure_ascii=False))


def _one_line(text: str) -> str:
    return visible(text.replace("\n", "\\n"))


def size_of(name: str, text: str) -> int:
    return units(quoted(name)) + units(text) + _FENCE


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return the first of `lines` that fit into `room` units together."""
    kept: list[str] = []
    for line in lines:
        room -= units(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept
