"""Gathering the evidence for a verdict: the change between two git trees, and all that is known of it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lopen.git.repository import Repository
from lopen.git.trees import GITLINK
from lopen.judge.evidence import ChangedFile, Established, Evidence, SourceFile, uncovered
from lopen.judge.verdict import BREADTH, Scope, Verdict, accepted, left_open
from lopen.loop.change_checks import ChangeChecks
from lopen.loop.compared_trees import ComparedTrees, compared_trees, sides
from lopen.loop.judged_change import (
    LARGEST_COMPARED,
    TestRemovals,
    described,
    installed_copies,
    left_out,
    listed_tests,
    reader,
    unchanged_texts,
    untested_code,
)
from lopen.loop.judged_files import (
    is_specification,
    kind,
    linked_tests,
    rewritten_files,
    shared_names,
    spoken_names,
    unseen_files,
)
from lopen.loop.machine_paths import leading_out, naming_places
from lopen.tools.examination import FEW_MUTANTS, MORE_MUTANTS, Examination, ExaminedChange, Runs, examine
from lopen.tools.extra_runs import ExtraRuns
from lopen.tools.reruns import TestRun
from lopen.tools.verification import Verified
from lopen.tools.workbench import Workbench
from lopen.verification.findings import Finding
from lopen.verification.tests_run import TestsRun
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State

MOST_NAMED = 10  # unchanged files that a judge is shown because the work's own words name them


@dataclass(frozen=True, slots=True)
class JudgedBoundary:
    """The work to be judged, the results of its verify commands, and a claim of the builder."""

    scope: Scope
    subject: str
    results: tuple[Verified, ...]
    note: str = ""


def evidence_for(
    bench: Workbench,
    repository: Repository,
    boundary: JudgedBoundary,
    verdicts: Sequence[Verdict] = (),
) -> Evidence:
    """Return what the oracle is shown for a boundary. `verdicts` are the session's, oldest first."""
    session, scope, subject = bench.session, boundary.scope, boundary.subject
    spec = bench.project.load_spec(session.module)
    tree = bench.project.verifier.tree()
    base, description, sections, criteria = described(session, spec, scope, subject, tree)
    change = compared_trees(repository, base, tree, session.module)
    largest = bench.settings.oracle.evidence_tokens * 8  # bytes; a larger file never fits into the evidence
    narrower = [v for v in verdicts if BREADTH[v.scope] < BREADTH[scope] and accepted(v) and v.tree]
    gaps = uncovered(base, tree, narrower)
    parts = _established(session, scope, subject, narrower)
    if not (wide := bool(parts) and gaps != ((base, tree),)):
        gaps, parts = ((base, tree),), ()
    diff, in_gaps = _diff(repository, gaps, session.module, largest)
    covered = _source(change, in_gaps) if wide else ()
    whole = {c.path for c in change.files if c.kind == "added"} | {file.path for file in covered}
    stated = [description, *(text for _, text in criteria)]
    shown = _named_files(repository, tree, _found_done(session, scope, subject), stated, whole)
    removals = TestRemovals(session, spec, tuple(name for name, _ in sections))
    checks = ChangeChecks(bench.project.place.home, change.compared)
    own = _own_findings(bench, repository, change, boundary.results, checks)
    tests, unread = checks.attempted(
        "its tests", lambda: listed_tests(bench, tree, _texts(change)) if scope != "task" else ()
    )
    found, failures = checks.attempted(
        "its tests and their runs", lambda: _examined(bench, repository, boundary, change, removals, verdicts)
    )
    examined = found or Examination((), ())
    return Evidence(
        scope=scope,
        subject=subject,
        module=session.module,
        description=description,
        sections=sections,
        criteria=criteria,
        diff=diff,
        files=_files(change, shown),
        results=tuple(r.as_evidence() for r in boundary.results),
        findings=(*own, *unread, *failures, *examined.findings),
        base_tree=base,
        tree=tree,
        answers=session.dialogue.answers,
        note=boundary.note,
        established=parts,
        source=(*covered, *shown),
        tests=tests or (),
        mutation=examined.mutation,
        questions=examined.questions,
        due=due_criteria(session, scope, subject, [name for name, _ in criteria]),
        carried=left_open(narrower),
        earlier=_earlier(verdicts, scope, subject),
        removals=tuple(sorted(removals.given)),
    )


def due_criteria(session: Session, scope: Scope, subject: str, criteria: Sequence[str]) -> tuple[str, ...]:
    """Return the criteria that need a `yes` of this verdict: none of a task, all of the module.

    A component leaves those to the module that another component, which is not complete yet, is to meet too.
    """
    if scope == "task":
        return ()
    others = [c for c in session.tree.components if c.id != subject and c.state is not State.COMPLETE]
    shared = {name for c in others for name in c.criteria} if scope == "component" else set()
    return tuple(name for name in criteria if name not in shared)


def _passing_tests(boundary: JudgedBoundary, change: ComparedTrees) -> TestRun | None:
    """Return the run of the tests, where every verify command passed on the tree and something changed; else None."""
    tests = next((r for r in boundary.results if r.tool == "verify_tests"), None)
    verified = all(r.passed and r.tree == change.tree for r in boundary.results)
    if tests is None or change.base == change.tree or not verified:
        return None
    return TestRun(tests.command, change.tree, tests.seconds)


def _examined(
    bench: Workbench,
    repository: Repository,
    boundary: JudgedBoundary,
    change: ComparedTrees,
    removals: TestRemovals,
    verdicts: Sequence[Verdict],
) -> Examination:
    """Return what comparing the tests of both trees, their runs and a few more runs tell."""
    verifier, settings = bench.project.verifier, bench.settings.oracle
    ran = verifier.test_runs()
    after = ran.pop(change.tree, TestsRun())
    known = (change.base, *(v.tree for v in reversed(verdicts) if accepted(v)), *ran)
    return examine(
        ExaminedChange(
            change.base,
            change.tree,
            change.files,
            change.compared,
            unchanged_texts(repository, change.tree, {c.path for c in change.compared}),
            reader(repository, change.tree, change.compared),
            bench.session.module,
            removals.reason,
        ),
        Runs(
            verifier.commands,
            _passing_tests(boundary, change),
            next((ran[each] for each in known if each in ran), None),
            after,
            settings.slower_suite,
            FEW_MUTANTS if boundary.scope == "task" else MORE_MUTANTS,
            earlier_tests=settings.earlier_tests != "off",
            control=settings.mutation != "off",
        ),
        verifier.again(ExtraRuns),
    )


def _own_findings(
    bench: Workbench,
    repository: Repository,
    change: ComparedTrees,
    results: Sequence[Verified],
    checks: ChangeChecks,
) -> tuple[Finding, ...]:
    tree, files, compared = change.tree, change.files, change.compared
    return checks.findings(
        {
            "files that a test command rewrites": lambda: rewritten_files(results),
            "files that show nothing": lambda: unseen_files(repository, files, change.sizes, change.contents),
            "names on other file systems": lambda: shared_names(repository, tree, files),
            "links that lead out": lambda: leading_out(files, change.contents),
            "paths of this machine": lambda: naming_places(compared, _places(bench)),
            "linked tests": lambda: linked_tests(files),
            "installed copies": lambda: installed_copies(bench, repository, tree, compared),
            "untested code": lambda: untested_code(bench, compared),
            "files that are left out": lambda: left_out(bench),
        },
        {
            "untested code": lambda one: untested_code(bench, [one]),
            "paths of this machine": lambda one: naming_places([one], _places(bench)),
        },
    )


def _places(bench: Workbench) -> tuple[Path, ...]:
    """Where the project and its clean rooms lie."""
    project = bench.project
    return project.root, project.place.home, project.verifier.room.where


def _files(change: ComparedTrees, shown: Sequence[SourceFile]) -> tuple[ChangedFile, ...]:
    """The files that changed, and the others that are shown, with their sizes in bytes."""
    changed = [(c.path, change.size(c.after) if c.after else None) for c in change.files]
    known = {path for path, _ in changed}
    others = [(f.path, len(f.text.encode("utf-8", "replace"))) for f in shown if f.path not in known]
    return tuple(ChangedFile(path, size, kind(path)) for path, size in (*changed, *others))


def _named_files(
    repository: Repository, tree: str, names: Sequence[str], stated: Sequence[str], shown: Container[str]
) -> list[SourceFile]:
    """The files at and below `names`, and those that the work's own words name, but for those `shown` whole."""
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
    return [SourceFile(path, text) for path, text in texts.items()]


def _found_done(session: Session, scope: Scope, subject: str) -> list[str]:
    """The files and folders that step 3 named as evidence for components it found done."""
    done = [c for c in session.tree.components if c.found == "done" and not c.tasks]
    return [p.strip("/") for c in done if scope == "module" or c.id == subject for p in c.evidence]


def _earlier(verdicts: Sequence[Verdict], scope: Scope, subject: str) -> tuple[Finding, ...]:
    """Return the findings of the last verdict on this work, if it did not pass."""
    ours = [v for v in verdicts if (v.scope, v.subject) == (scope, subject)]
    return ours[-1].findings if ours and not accepted(ours[-1]) else ()


def _established(
    session: Session, scope: Scope, subject: str, verdicts: Sequence[Verdict]
) -> tuple[Established, ...]:
    """The latest accepted verdict of each task (and component) that belongs to the subject."""
    components = [c for c in session.tree.components if scope == "module" or c.id == subject]
    names = {c.id: c.name for c in components} | {t.id: t.name for c in components for t in c.tasks}
    latest = {v.subject: v for v in verdicts if v.subject in names}
    return tuple(Established(i, names[i], verdict) for i, verdict in latest.items())


def _diff(
    repository: Repository, gaps: Sequence[tuple[str, str]], module: str, largest: int
) -> tuple[str, set[str]]:
    """The diff over `gaps`, every file as text, and the paths of the files that it adds whole."""
    texts, added = [], set()
    for before, after in gaps:
        changed = [c for c in repository.changes(before, after) if not is_specification(c.path, module)]
        sizes = repository.blob_sizes(b for c in changed for b, mode in sides(c) if b and mode != GITLINK)
        paths = [c.path for c in changed if max(sizes.get(b or "", 0) for b, _ in sides(c)) <= largest]
        added |= {c.path for c in changed if c.kind == "added"}
        texts.append(repository.diff(before, after, paths=paths, as_text=True) if paths else "")
    return "".join(texts), added


def _source(change: ComparedTrees, in_gaps: set[str]) -> tuple[SourceFile, ...]:
    """The final text of the changed files, but for those that the diff holds whole."""
    return tuple(SourceFile(path, text) for path, text in _texts(change).items() if path not in in_gaps)


def _texts(change: ComparedTrees) -> dict[str, str]:
    return {c.path: text for c in change.files if (text := change.text(c.after)) is not None}
