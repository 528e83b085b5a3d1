"""Gathering the evidence for a verdict: the change between two git trees, and all that is known of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lopen.git.repository import Repository
from lopen.git.trees import GITLINK
from lopen.guardrails.completion import holds_inline_tests, untested
from lopen.judge.assignment import (
    TestRemovals,
    described,
    due_criteria,
    found_done,
    last_findings,
    narrower_verdicts,
)
from lopen.judge.change import (
    LARGEST_COMPARED,
    ComparedTrees,
    compared_trees,
    is_specification,
    kind,
    leading_out,
    naming_places,
    rewritten_files,
    sides,
    spoken_names,
    unseen_files,
)
from lopen.judge.evidence import ChangedFile, Evidence, SourceFile, uncovered
from lopen.judge.rubric import EVIDENCE_TOKENS
from lopen.judge.verdict import BREADTH, Scope, Verdict, accepted, left_open
from lopen.tools.examination import FEW_MUTANTS, MORE_MUTANTS, Examination, ExaminedChange, Runs, examine
from lopen.tools.extra_runs import ExtraRuns
from lopen.tools.installed_copies import installed_copy_findings
from lopen.tools.reruns import TestRun
from lopen.tools.verification import Verified
from lopen.tools.workbench import Workbench
from lopen.verification.findings import Finding
from lopen.verification.no_longer_run import Unchanged
from lopen.verification.run_files import changed_run_files
from lopen.verification.test_files import FileChange
from lopen.verification.test_reader import read_tests
from lopen.verification.tests_run import TestsRun

MOST_UNCHANGED = 2_000  # files that are read for tests that run no longer
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
    """Return what the judge is shown for a boundary. `verdicts` are the session's, oldest first."""
    session, scope, subject = bench.session, boundary.scope, boundary.subject
    spec = bench.project.load_spec(session.module)
    tree = bench.project.verifier.tree()
    base, description, sections, criteria = described(session, spec, scope, subject, tree)
    change = compared_trees(repository, base, tree, session.module)
    largest = EVIDENCE_TOKENS * 8  # bytes; a larger file never fits into the evidence
    narrower = [v for v in verdicts if BREADTH[v.scope] < BREADTH[scope] and accepted(v) and v.tree]
    gaps = uncovered(base, tree, narrower)
    parts = narrower_verdicts(session, scope, subject, narrower)
    if not (wide := bool(parts) and gaps != ((base, tree),)):
        gaps, parts = ((base, tree),), ()
    diff, in_gaps = _diff(repository, gaps, session.module, largest)
    covered = _source(change, in_gaps) if wide else ()
    whole = {c.path for c in change.files if c.kind == "added"} | {file.path for file in covered}
    stated = [description, *(text for _, text in criteria)]
    shown = _named_files(repository, tree, found_done(session, scope, subject), stated, whole)
    removals = TestRemovals(session, spec, tuple(name for name, _ in sections))
    examined = _examined(bench, repository, boundary, change, removals, verdicts)
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
        findings=(*_own_findings(bench, repository, change, boundary.results), *examined.findings),
        base_tree=base,
        tree=tree,
        answers=session.dialogue.answers,
        note=boundary.note,
        established=parts,
        source=(*covered, *shown),
        tests=listed_tests(bench, tree, _texts(change)) if scope != "task" else (),
        mutation=examined.mutation,
        questions=examined.questions,
        due=due_criteria(session, scope, subject, [name for name, _ in criteria]),
        carried=left_open(narrower),
        earlier=last_findings(verdicts, scope, subject),
        removals=tuple(sorted(removals.given)),
    )


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
            FEW_MUTANTS if boundary.scope == "task" else MORE_MUTANTS,
            control=settings.mutation != "off",
        ),
        verifier.again(ExtraRuns),
    )


def _own_findings(
    bench: Workbench, repository: Repository, change: ComparedTrees, results: Sequence[Verified]
) -> Iterator[Finding]:
    """Yield what is plainly wrong with the changed files, and what the judge should look at."""
    for result in results:
        yield from rewritten_files(result.command, result.changed)
    yield from unseen_files(repository, change.files, change.sizes, change.contents)
    yield from leading_out(change.files, change.contents)
    yield from naming_places(change.compared, _places(bench))
    yield from installed_copies(bench, repository, change.tree, change.compared)
    yield from untested_code(bench, change.compared)
    yield from left_out(bench)


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


def untested_code(bench: Workbench, files: Sequence[FileChange]) -> tuple[Finding, ...]:
    """Return a warning to the judge and the model where code came without a test; none where there are to be no tests."""
    if not bench.project.verifier.commands.get("verify-tests"):
        return ()
    there = {f.path: f.after for f in files if f.after is not None}
    message = untested(
        added=[f.path for f in files if f.before is None and f.path in there],
        changed=there,
        inline=[path for path, text in there.items() if holds_inline_tests(path, text)],
    )
    return (Finding("warning", message),) if message else ()


def left_out(bench: Workbench) -> tuple[Finding, ...]:
    """Return a warning for each file that the model wrote and git ignores: without it the verified work may fail."""
    message = "git ignores this file: it is in no commit, and what needs it fails in a clean clone"
    return tuple(Finding("warning", message, path) for path in sorted(bench.evidence.ignored))


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


def changed_settings(
    repository: Repository, tree: str, files: Sequence[FileChange], command: str | None
) -> frozenset[str]:
    """Return the changed settings and scripts by which a command runs."""
    return changed_run_files(command, files, reader(repository, tree, files)) if command else frozenset()


def installed_copies(
    bench: Workbench, repository: Repository, tree: str, files: Sequence[FileChange]
) -> Iterator[Finding]:
    """Yield what verify-setup installed of the project and is not what would be committed."""
    room, command = bench.project.verifier.room, bench.project.verifier.commands.get("verify-setup")
    rebuilt = bool(changed_settings(repository, tree, files, command))
    yield from installed_copy_findings(repository, room.set_up_on, room.installed(), rebuilt=rebuilt)


def listed_tests(
    bench: Workbench, tree: str, texts: Mapping[str, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of the tests by file; where the run's names are known, those that did not run are marked."""
    run = bench.project.verifier.test_runs().get(tree, TestsRun())
    by_file = {path: read_tests(path, text).cases for path, text in texts.items()}
    return tuple(
        (
            path,
            tuple(
                f"{case.name} (the runner did not report it)"
                if run.ran(path, case.name) is False
                else f"{case.name} (skipped)"
                if case.skip
                else case.name
                for case in cases
            ),
        )
        for path, cases in sorted(by_file.items())
        if cases
    )


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
