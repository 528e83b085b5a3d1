"""A change before the judge sees it: what its subject was to do, and what lopen itself finds in it.

It finds converted files, removed and missing tests, and ignored files.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from lopen.files.listing import glob_matcher
from lopen.git.repository import Repository
from lopen.git.trees import GITLINK
from lopen.guardrails.completion import holds_inline_tests, untested
from lopen.judge.verdict import Scope
from lopen.models.prompts.prompt import named, outermost
from lopen.specification.drift import Drift, compare_hashes, section_hashes
from lopen.specification.sections import SEPARATOR, normalise_name
from lopen.specification.spec import (
    ACCEPTANCE_CRITERIA,
    OPTIONAL,
    OVERVIEW,
    REQUIRED,
    SKILLS_AND_HOOKS,
    Specification,
)
from lopen.tools.installed_copies import installed_copy_findings
from lopen.tools.workbench import Workbench
from lopen.verification.findings import Finding
from lopen.verification.no_longer_run import Unchanged
from lopen.verification.run_files import changed_run_files
from lopen.verification.test_files import FileChange
from lopen.verification.test_reader import read_tests
from lopen.verification.tests_run import TestsRun
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, Task, TaskTree

ALLOWED = "A person allowed it when approving the specification."


class TestRemovals:
    """Why tests may be removed: a person allowed it, or the specification that the work rests on changed.

    lopen does not report such removals as errors itself: the judge, or a person at the gate, decides about them.
    """

    def __init__(self, session: Session, spec: Specification, sections: Sequence[str]) -> None:
        """`sections`: those that the work rests on, by their addresses."""
        approval = session.approval
        drift = compare_hashes(approval.sections, section_hashes(spec)) if approval else Drift()
        approved = SKILLS_AND_HOOKS not in (*drift.changed, *drift.new)
        own = spec.tests_may_go if approval and approved else ()
        self._globs = (*(approval.test_removals if approval else ()), *own)
        changed = dict.fromkeys((*(approval.changed if approval else ()), *drift.changed, *drift.removed))
        self._changed = [a for a in changed if any(_overlap(a, s) for s in (ACCEPTANCE_CRITERIA, *sections))]
        self.given: set[str] = set()

    def reason(self, path: str) -> str:
        """Return why tests of this file may be removed; empty where they may not. `given`: what was returned."""
        found = ""
        if any(glob in ("**", "*") or glob_matcher(glob)(path.split("/")) for glob in self._globs):
            found = ALLOWED
        elif self._changed:
            changed = ", ".join(self._changed)
            found = f"The specification changed since they were written ({changed}): say whether that made them obsolete."
        self.given |= {found} - {""}
        return found


def _overlap(one: str, other: str) -> bool:
    """Return True if one address is the other one's, or that of a section above it."""
    one, other = (normalise_name(address) + SEPARATOR for address in (one, other))
    return one.startswith(other) or other.startswith(one)


MOST_TOLD = 20
LARGEST_COMPARED = 2 * 2**20  # bytes; larger files are not searched for weakened tests
MOST_UNCHANGED = 2_000  # files that are read for tests that run no longer


def untested_code(bench: Workbench, files: Sequence[FileChange]) -> tuple[Finding, ...]:
    """Return a warning to the oracle and the model where code came without a test; none where there are to be no tests."""
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


Described = tuple[str, str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]


def described(session: Session, spec: Specification, scope: Scope, subject: str, present: str) -> Described:
    """Return base tree (the `present` one where no work began), description, sections and criteria of a subject."""
    tree = session.tree
    if scope == "module":
        overview = spec.outline.get(OVERVIEW)
        about = ((overview.address, spec.outline.full_text(overview)),) if overview is not None else ()
        return (
            _first_base(tree.components) or present,
            "\n".join([f"Module {subject}:", *map(_component_text, tree.components)]),
            (*about, *_sections(spec, _all_sections(tree))),
            _criteria(spec),
        )
    if scope == "component":
        component = tree.component(subject)
        assert component is not None
        return (
            component.base or present,
            _component_text(component),
            _sections(spec, component.spec_sections, _all_sections(tree)),
            _criteria(spec, component.criteria),
        )
    task, owner = tree.task(subject), tree.owner(subject)
    assert task is not None
    assert owner is not None
    return (
        task.base or present,
        _task_text(task, owner),
        _sections(spec, task.spec_sections, owner.spec_sections, _all_sections(tree)),
        _criteria(spec, owner.criteria_of(task)),
    )


def _component_text(component: Component) -> str:
    """The component, with its task where it has one alone: no narrower verdict tells of that."""
    text = f"Component {component.name}: {component.description}"
    return f"{text}\n{_task_text(component.tasks[0], component)}" if len(component.tasks) == 1 else text


def _task_text(task: Task, owner: Component) -> str:
    why = (
        "It was added after planning; its description says why."
        if task.added
        else f"It was planned as a part of the component: {owner.description}"
    )
    lines = [f"Task {task.name} (one of {len(owner.tasks)} of component {owner.name}): {task.description}"]
    lines += [f"- {s.name}" for s in task.subtasks]
    return "\n".join([*lines, f"Why the task exists: {why}"])


def _first_base(components: tuple[Component, ...]) -> str | None:
    return next((c.base for c in components if c.base), None)


def _all_sections(tree: TaskTree) -> tuple[str, ...]:
    return tuple(s for c in tree.components for s in c.spec_sections)


def _sections(spec: Specification, *choices: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The first of the choices that names a section there is; else all of the domain: headings may be renamed."""
    found = next((there for names in choices if (there := outermost(spec, named(spec, names)))), None)
    if found is None:
        structural = {normalise_name(title) for title in (*REQUIRED, *OPTIONAL)}
        found = [
            s for s in spec.outline.sections if s.level == 2 and normalise_name(s.title) not in structural
        ]
    return tuple((s.address, spec.outline.full_text(s)) for s in found)


def _criteria(spec: Specification, ids: tuple[str, ...] | None = None) -> tuple[tuple[str, str], ...]:
    return tuple((c.id, c.text) for c in spec.criteria if ids is None or c.id in ids)
