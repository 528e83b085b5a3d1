"""The evidence that a verdict rests on, and the hash that binds the verdict to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from lopen.judge.verdict import Scope, Verdict
from lopen.store.audit import VerifyResult
from lopen.verification.findings import ChangeQuestion, Finding

_FORMAT = 4  # counts up when the hashed fields change, so that no old verdict answers for new evidence

FileKind = Literal["source", "test", "other"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that the work changed. `size` is in bytes, None where the work deleted the file."""

    path: str
    size: int | None
    kind: FileKind = "source"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of a file in the tree under judgement. `lines`: the numbers of those that are shown; none for all."""

    path: str
    text: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """The assignment of a piece of work. `subject` is the id or name of the judged work.

    `sections` are (heading path, text) and `criteria` (id, text) of the specification, `due` the ids of the criteria that
    need the judge's `yes`. `answers` are (question, answer) of the person, and of lopen where nobody answered. `claims`
    are the builder's own assumptions.
    """

    scope: Scope
    subject: str
    module: str
    description: str
    sections: tuple[tuple[str, str], ...]
    criteria: tuple[tuple[str, str], ...]
    due: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedChange:
    """The change under judgement, between the git trees `base_tree` and `tree`; `diff` begins at the event `since`.

    `files` are the files that differ. `source` is the final text of the files that the work's words name, or that step 3
    names for a done component; `files` lists these, too. `tests` are (path, names).
    """

    base_tree: str
    tree: str
    diff: str
    files: tuple[ChangedFile, ...]
    source: tuple[SourceFile, ...] = ()
    tests: tuple[tuple[str, tuple[str, ...]], ...] = ()
    since: str = "the work began"


@dataclass(frozen=True, slots=True)
class RanCommand:
    """A command that the builder ran by `run_command`, with its exit code and what is worth reading of its output."""

    command: str
    exit_code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class BuilderWork:
    """The builder's word on a task, and lopen's record of it: the written files that git ignores, the last commands."""

    note: str = ""
    ignored: frozenset[str] = frozenset()
    commands: tuple[RanCommand, ...] = ()


NO_BUILDER = BuilderWork()  # where lopen judges by itself


@dataclass(frozen=True, slots=True)
class EarlierVerdicts:
    """What earlier verdicts said: `established` are (name, verdict) of the accepted ones on narrower work.

    `carried` are (criterion, subject, missing evidence) of the criteria that these left open. `last` is the last verdict
    on the same work, if it did not pass.
    """

    established: tuple[tuple[str, Verdict], ...] = ()
    carried: tuple[tuple[str, str, str], ...] = ()
    last: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a piece of work when it is to be judged.

    `findings` are lopen's own: an error among them fails the work without a judge. `questions` are the questions that
    the judge must answer. `removals` are the reasons for which removed tests are not an error by themselves.
    `builder` holds a claim of the builder, and the commands that it ran. `failed_before` are lopen's notes on commands that
    failed before the work began.
    """

    work: Assignment
    change: JudgedChange
    results: tuple[VerifyResult, ...]
    findings: tuple[Finding, ...]
    questions: tuple[ChangeQuestion, ...] = ()
    earlier: EarlierVerdicts = EarlierVerdicts()
    removals: tuple[str, ...] = ()
    builder: BuilderWork = NO_BUILDER
    failed_before: tuple[str, ...] = ()


def evidence_hash(evidence: Evidence) -> str:
    """Return the SHA-256 (hex) of the evidence, the same wherever and whenever it is gathered.

    Tree ids stand for the diff, the files and lopen's findings, which follow from them. Subject, order, narrower
    verdicts, the builder's note and the output of commands do not count. Neither does the scope: a verdict keeps its
    own, and `serves` says which scopes it answers for. Only where nothing changed at all does the description count:
    then it is all that tells two pieces of work apart.
    """
    unchanged = evidence.change.base_tree == evidence.change.tree
    content = {
        "format": _FORMAT,
        "base_tree": evidence.change.base_tree,
        "tree": evidence.change.tree,
        "criteria": sorted(evidence.work.criteria),
        "sections": sorted(evidence.work.sections),
        "answers": sorted(evidence.work.answers),
        "claims": sorted(evidence.work.claims),
        "results": sorted({(r.tool, r.command, r.passed, str(r.exit_code)) for r in evidence.results}),
        "description": evidence.work.description if unchanged else "",
    }
    if evidence.questions:
        content["questions"] = sorted((q.id, q.kind, q.path, q.text) for q in evidence.questions)
    if evidence.removals:
        content["removals"] = sorted(evidence.removals)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
