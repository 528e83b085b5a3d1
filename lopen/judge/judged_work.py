"""Gathering the evidence for a verdict: the change between two git trees, and all that is known of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from lopen.git.repository import Repository
from lopen.git.trees import GITLINK
from lopen.judge.assignment import (
    TestRemovals,
    assignment,
    found_done,
    last_verdict,
    narrower_verdicts,
    unjudged_tasks,
)
from lopen.judge.change import (
    LARGEST_COMPARED,
    ComparedTrees,
    compared_trees,
    kind,
    leading_out,
    naming_places,
    rewritten_files,
    sides,
    spoken_names,
    unseen_files,
)
from lopen.judge.evidence import (
    NO_BUILDER,
    Assignment,
    BuilderWork,
    ChangedFile,
    EarlierVerdicts,
    Evidence,
    JudgedChange,
    SourceFile,
)
from lopen.judge.evidence_groups import LAST_VERDICT
from lopen.judge.rubric import EVIDENCE_TOKENS
from lopen.judge.verdict import BREADTH, Scope, Verdict, accepted, left_open, outcome
from lopen.specification.documents import DOCUMENTS, lines_about
from lopen.specification.spec import Specification
from lopen.store.audit import VerifyResult
from lopen.verification.examination import Examination, Runs, examine
from lopen.verification.extra_runs import ExtraRuns
from lopen.verification.findings import Finding
from lopen.verification.run_files import is_lock_file
from lopen.verification.test_files import ExaminedChange, FileChange, Unchanged
from lopen.verification.test_reader import TestCase, read_tests
from lopen.verification.test_run import TestRun
from lopen.verification.verifier import Verifier
from lopen.workflow.session import FAILS_NOW, Session

MOST_UNCHANGED = 2_000  # files that are read for tests that run no longer
MOST_OF_A_DOCUMENT = 40_000  # characters; a turn in which the judge reads the rest costs more than this
MOST_NAMED = 10  # unchanged files that a judge is shown because the work's own words name them


@dataclass(frozen=True, slots=True)
class JudgedWork:
    """The work to be judged: its boundary in a session, the results of its verify commands, the builder's part.

    `verdicts` are the session's, oldest first.
    """

    session: Session
    spec: Specification
    verifier: Verifier
    scope: Scope
    subject: str
    results: tuple[VerifyResult, ...]
    builder: BuilderWork = NO_BUILDER
    verdicts: Sequence[Verdict] = ()


def evidence_for(work: JudgedWork, *, control: bool) -> Evidence:
    """Return the judge's evidence for a piece of work. `control`: tests are also run without the change."""
    session, scope, subject, verdicts = work.session, work.scope, work.subject, work.verdicts
    repository, tree = work.verifier.repository, work.verifier.tree()
    narrower = [v for v in verdicts if BREADTH[v.scope] < BREADTH[scope] and accepted(v)]
    base, assigned = assignment(session, work.spec, scope, subject, tree, narrower)
    change = compared_trees(repository, base, tree, session.module)
    largest = EVIDENCE_TOKENS * 8  # bytes; a larger file never fits into the evidence
    parts = narrower_verdicts(session, scope, subject, narrower)
    stated = [assigned.description, *(text for _, text in assigned.criteria)]
    last = last_verdict(verdicts, scope, subject)
    told, since = _judged_tree(session, scope, subject, narrower)
    if last is not None and _change_is_enough(last, assigned, change, repository):
        told, since = LAST_VERDICT, last.tree
    unseen = compared_trees(repository, since, tree, session.module) if since else change
    if last is not None and told == LAST_VERDICT:
        names, wanted = _in_question(last, assigned)
        shown = _named_files(repository, tree, names, wanted, {c.path for c in unseen.files if not c.before})
    else:
        names = found_done(session, scope, subject)
        shown = _named_files(repository, tree, names, stated, {c.path for c in change.files})
    removals = TestRemovals(session, work.spec, tuple(name for name, _ in assigned.sections))
    examined = _examined(work, change, removals, " ".join(stated), control=control)
    seen = {path: text for path, text in _texts(change).items() if path not in {c.path for c in unseen.files}}
    ran = work.verifier.test_runs().get(tree, TestRun()) if seen else TestRun()
    tests = listed_tests(ran, seen)
    return Evidence(
        work=assigned,
        change=JudgedChange(
            base, tree, _diff(repository, unseen, largest), _files(change, shown), tuple(shown), tests, told
        ),
        results=work.results,
        findings=(*_own_findings(work, change), *examined.findings),
        questions=examined.questions,
        earlier=EarlierVerdicts(parts, left_open(narrower), last),
        removals=tuple(sorted(removals.given)),
        builder=work.builder,
        failed_before=tuple(note for note in session.dialogue.notes if FAILS_NOW in note),
    )


def _change_is_enough(
    last: Verdict, assigned: Assignment, change: ComparedTrees, repository: Repository
) -> bool:
    """Return True if the judge needs to see only the change since its rejection.

    That verdict answered every criterion of the same specification, and git still has the work that it saw.
    """
    paper = f"specs/{assigned.module}/SPECIFICATION.md"
    same = last.tree and last.tree != change.tree and last.base_tree == change.base
    answered = {result.id for result in last.criteria if result.holds != "cannot_tell"}
    return (
        bool(same)
        and outcome(last) == "rejected"
        and answered >= {name for name, _ in assigned.criteria}
        and repository.has_tree(last.tree)
        and repository.entries(last.tree).get(paper) == repository.entries(change.tree).get(paper)
    )


def _in_question(last: Verdict, assigned: Assignment) -> tuple[list[str], list[str]]:
    """Return the files that a rejection names, and the words of the criteria that it found not to hold."""
    unmet = {r.id: r.evidence for r in last.criteria if r.holds != "yes"}
    unmet |= {f.criterion: f.message for f in last.objections if f.criterion}
    words = (w for name, text in assigned.criteria if name in unmet for w in (text, unmet[name]))
    return [f.path for f in last.objections if f.path], [*words]


def _judged_tree(
    session: Session, scope: Scope, subject: str, narrower: Sequence[Verdict]
) -> tuple[str, str]:
    """Return the event from which on the change is shown, and its tree, "" for the beginning of the work.

    Of a wider piece of work accepted verdicts saw all but its last task. The change up to theirs is listed, and read
    where a criterion rests on it.
    """
    components = [c for c in session.tree.components if scope == "module" or c.id == subject]
    unjudged = sum(1 for c in components for _ in unjudged_tasks(c, narrower))
    if narrower and scope != "task" and unjudged <= 1:
        return "the last accepted verdict", narrower[-1].tree
    return "the work began", ""


def _passing_tests(work: JudgedWork, change: ComparedTrees) -> VerifyResult | None:
    """Return the run of the tests, where every verify command passed on the tree and something changed; else None."""
    tests = next((r for r in work.results if r.tool == "verify_tests"), None)
    verified = all(r.passed and r.tree == change.tree for r in work.results)
    return tests if change.base != change.tree and verified else None


def _examined(
    work: JudgedWork, change: ComparedTrees, removals: TestRemovals, stated: str, *, control: bool
) -> Examination:
    """Return what comparing the tests of both trees, their runs and a few more runs tell."""
    verifier, repository = work.verifier, work.verifier.repository
    ran = verifier.test_runs()
    after = ran.pop(change.tree, TestRun())
    known = (change.base, *(v.tree for v in reversed(work.verdicts) if accepted(v)), *ran)
    return examine(
        ExaminedChange(
            change.base,
            change.tree,
            change.files,
            change.compared,
            unchanged_texts(repository, change.tree, {c.path for c in change.compared}),
            reader(repository, change.tree, change.compared),
            work.session.module,
            removals.reason,
            stated,
        ),
        Runs(
            verifier.commands,
            _passing_tests(work, change),
            next((ran[each] for each in known if each in ran), None),
            after,
            wide=work.scope != "task",
            control=control,
        ),
        ExtraRuns(verifier),
    )


def _own_findings(work: JudgedWork, change: ComparedTrees) -> Iterator[Finding]:
    """Yield plain faults of the changed files, and remarks for the judge."""
    for result in work.results:
        yield from rewritten_files(result.command, result.left.changed)
    yield from unseen_files(work.verifier.repository, change.files, change.sizes, change.contents)
    yield from leading_out(change.files, change.contents)
    room = work.verifier.room
    places = (room.place_of_work.root, room.place_of_work.home, room.where)
    yield from naming_places(change.compared, places)
    yield from left_out(work.builder.ignored)


def _files(change: ComparedTrees, shown: Sequence[SourceFile]) -> tuple[ChangedFile, ...]:
    """The files that changed, and the others that are shown, with their sizes in bytes."""
    changed = [(c.path, change.size(c.after) if c.after else None) for c in change.files]
    known = {path for path, _ in changed}
    others = [(f.path, len(f.text.encode("utf-8", "replace"))) for f in shown if f.path not in known]
    return tuple(ChangedFile(path, size, kind(path)) for path, size in (*changed, *others))


def _named_files(
    repository: Repository, tree: str, names: Sequence[str], stated: Sequence[str], shown: Container[str]
) -> list[SourceFile]:
    """The files at and below `names`, and files that the work's own words name, except files `shown` whole."""
    spoken = {name.casefold() for text in stated for name in spoken_names(text)}
    entries = repository.entries(tree) if names or spoken else {}
    by_name: dict[str, list[str]] = {}
    for path in entries:
        base = PurePosixPath(path.casefold())
        for name in {str(base), base.name, base.stem if "/" not in path else base.name}:
            by_name.setdefault(name, []).append(path)
    told = [by_name[word][0] for word in sorted(spoken) if len(by_name.get(word, "")) == 1][:MOST_NAMED]
    wanted = {
        path: entry.blob
        for path, entry in entries.items()
        if path not in shown
        and (path in told or any(path == name or path.startswith(f"{name}/") for name in names))
        and entry.mode != GITLINK
    }
    sizes = repository.blob_sizes(wanted.values())
    contents = repository.blob_contents(b for b, size in sizes.items() if size <= LARGEST_COMPARED)
    texts = {p: contents[blob].decode("utf-8", "replace") for p, blob in wanted.items() if blob in contents}
    return [SourceFile(path, text, _shown_lines(path, text, stated)) for path, text in texts.items()]


def _shown_lines(path: str, text: str, stated: Sequence[str]) -> tuple[int, ...]:
    """Return the lines of a large document that the work's words are about; none where all is shown."""
    if not path.lower().endswith(DOCUMENTS):
        return ()
    lines = lines_about(path, text, "\n".join(stated), most=MOST_OF_A_DOCUMENT)
    return tuple(lines) if len(lines) < len(text.splitlines()) else ()


def _diff(repository: Repository, change: ComparedTrees, largest: int) -> str:
    """Return the diff of the files that are not too large, every file as text; lock files are only listed."""
    small = (c.path for c in change.files if max(change.size(blob) for blob, _ in sides(c)) <= largest)
    paths = [path for path in small if not is_lock_file(path)]
    return repository.diff(change.base, change.tree, paths=paths, as_text=True) if paths else ""


def _texts(change: ComparedTrees) -> dict[str, str]:
    return {c.path: text for c in change.files if (text := change.text(c.after)) is not None}


def left_out(ignored: Iterable[str]) -> tuple[Finding, ...]:
    """Return a warning for each file that the model wrote and git ignores: without it the verified work may fail."""
    message = "git ignores this file: it is in no commit, and what needs it fails in a clean clone"
    return tuple(Finding("warning", message, path) for path in sorted(ignored))


def reader(repository: Repository, tree: str, files: Sequence[FileChange]) -> Callable[[str], str | None]:
    """Return what gives the text of a file after the change; None where there is none, or it is not an ordinary file."""
    texts = {file.path: file.after for file in files}
    entries = repository.entries(tree)

    def read(path: str) -> str | None:
        if path in texts or path not in entries or not entries[path].mode.startswith("100"):
            return texts.get(path)
        blob = entries[path].blob
        return repository.blob_contents([blob])[blob].decode("utf-8", "replace")

    return read


def listed_tests(run: TestRun, texts: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of the tests by file, with a mark on those that did not run. Only where the run does not tell,
    their text does.
    """

    def marked(case: TestCase) -> str:
        ran = run.ran(case.path, case.name)
        if ran is False and not run.reported(case.path, case.name):
            return f"{case.name} (the runner did not report it)"
        return f"{case.name} (skipped)" if ran is False or (ran is None and case.skip) else case.name

    by_file = {path: read_tests(path, text).cases for path, text in sorted(texts.items())}
    return tuple((path, tuple(map(marked, cases))) for path, cases in by_file.items() if cases)


def unchanged_texts(repository: Repository, tree: str, changed: Container[str]) -> Unchanged:
    """Return what gives the texts of the files that did not change."""

    def texts(wanted: Callable[[str], bool]) -> dict[str, str]:
        entries = repository.entries(tree).items()
        blobs = {
            path: entry.blob
            for path, entry in entries
            if path not in changed and wanted(path) and entry.mode != GITLINK
        }
        chosen = dict(list(blobs.items())[:MOST_UNCHANGED])
        sizes = repository.blob_sizes(chosen.values())
        contents = repository.blob_contents(b for b, size in sizes.items() if size <= LARGEST_COMPARED)
        return {p: contents[b].decode("utf-8", "replace") for p, b in chosen.items() if b in contents}

    return texts
