"""The runs of the test command beside its plain one: the negative control, earlier versions of changed tests, mutants.

No model is asked. They run on git trees and edits of lopen's own, in rooms beside the clean room. The control and the
earlier tests take at most as long as three runs of the tests, or 60 s where that is more; then the mutants have as much,
at least 24 s and at most 120 s. Each result is stored as it comes, so that nothing is tried twice on the same change,
also by a process that goes on where another was killed (docs/reference/completion.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from queue import SimpleQueue
from threading import Event

from lopen.core.events import ProgressTold
from lopen.git.trees import GITLINK, TreeChange, TreeEntry
from lopen.sandbox.command import Command
from lopen.store.audit import VerifyResult
from lopen.verification.clean_room import CleanRoom
from lopen.verification.compared_tests import ComparedTests
from lopen.verification.earlier_tests import (
    ALL,
    EarlierTests,
    earlier_tests_from_json,
    failing_tests,
    optional_imports,
)
from lopen.verification.mutants import Mutant, mutants
from lopen.verification.mutation_check import Control, MutantOutcome, MutationCheck, mutation_from_json
from lopen.verification.negative_control import NegativeControl, did_not_compile, negative_control
from lopen.verification.test_files import ExaminedChange, is_data, looks_like_test
from lopen.verification.test_reader import read_tests
from lopen.verification.test_run import TestRun, in_file
from lopen.verification.verifier import Verifier

LEAST_S = 60.0  # that the control and the earlier tests may always take
LEAST_MUTANTS_S = 24.0  # that the mutants, a measure alone, may always take
MOST_MUTANTS_S = 120.0
MOST_RUNS = 3  # of the tests, in time, where that is longer
MOST_ROOMS = 4
MOST_FILES = 40_000  # of all rooms together
MOST_BYTES = 2_000_000_000
OUT_OF_TIME = "the time for extra runs was over"
REFUSED = "the compiler refused the broken functions"
NOT_REACHED = "without bubblewrap, the tests may run an installed copy instead of the files in the room"
BY_FILE = (".py", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx")
TELL_S = 5.0  # between two lines on the mutants that were tried
STOP = ("stop",)
UNREADABLE = b"lopen: this file cannot be read (\n"


Edits = Mapping[str, Callable[[bytes], bytes]]  # by path


@dataclass(frozen=True, slots=True)
class _Job:
    """One run of the tests: on a tree, with edits. `options` are those of `RunRecord`."""

    tree: str
    edits: Edits = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ran:
    """The result of one more run: `passed` as of a verify command."""

    passed: bool
    output: str
    tests: TestRun


@dataclass(frozen=True)
class ExtraRuns:
    """Runs one session's test command on other trees, beside its verifier."""

    verifier: Verifier

    def check(
        self,
        change: ExaminedChange,
        compared: ComparedTests,
        tests: VerifyResult,
        after: TestRun,
        *,
        broken: bool,
    ) -> tuple[MutationCheck | None, EarlierTests | None]:
        """Return the tests' reaction to broken functions and the results of earlier versions of changed tests: as far as
        they are stored, the rest by running. None stands for a missing part.

        Where the tests notice nothing at all, nothing more is run.
        """
        control = negative_control(change.changes if broken else ())
        chosen = mutants(change.changes if broken else (), change.stated)
        taken = _TakenBack.of(change, after)
        audit, where = self.verifier.log.audit, (tests.command, tests.tree, change.base)
        known, told = (audit.verified(tool, *where) for tool in ("mutation_check", "earlier_tests"))
        mutation = mutation_from_json(known.found) if known and known.found else None
        earlier = earlier_tests_from_json(told.found) if told and told.found else None
        if mutation is None and not control.edits and not chosen:
            mutation = MutationCheck(0)
        clock = self.verifier.log.clock
        started = clock.monotonic() - (known.seconds if known else 0.0)
        three_runs = MOST_RUNS * tests.seconds
        mutants_s = min(MOST_MUTANTS_S, max(LEAST_MUTANTS_S, three_runs))
        if mutation is not None and (mutation.control == "unnoticed" or earlier is not None):
            taken = None
        tried = mutation is not None and (not mutation.untried or mutation.seconds >= mutants_s)
        if tried and taken is None:
            return mutation if broken else None, earlier
        # A process that goes on where another was cut off has nothing installed
        setup = self.verifier.set_up()
        if setup is not None and not setup.passed:
            lost = MutationCheck(len(chosen), (), "unknown", control.broken, "verify-setup failed")
            return (mutation or lost) if broken else None, earlier
        rooms = self._rooms(tests.tree, 2 + len(chosen))
        batch = _Batch(self.verifier, tests, rooms, started + max(LEAST_S, three_runs))
        first = batch.first(control if mutation is None else NegativeControl({}, ()), taken)
        kept = known or VerifyResult("mutation_check", tests.command, True, 0, "", tests.tree)

        def keep(check: MutationCheck, *, told: bool = False) -> MutationCheck:
            nonlocal kept
            check = replace(check, run_s=tests.seconds)
            seconds = clock.monotonic() - started
            kept = self._kept(kept, change.base, check, check.control != "unnoticed", seconds, told=told)
            return check

        if mutation is None:
            check = batch.control(control, first.get("control"), len(chosen))
            mutation = keep(check, told=check.control == "unnoticed")
        if taken is not None and mutation.control != "unnoticed":
            earlier = batch.earlier_tests(change.base, taken, compared, first)
            ran = VerifyResult("earlier_tests", tests.command, True, 0, "", tests.tree)
            self._kept(ran, change.base, earlier, True, clock.monotonic() - started, told=True)
        if mutation.untried:
            begun = clock.monotonic() - mutation.seconds
            mutating = replace(batch, deadline=begun + mutants_s)
            for check in mutating.mutants(chosen, mutation, _narrowed(change, after)):
                mutation = keep(replace(check, seconds=clock.monotonic() - begun))
            mutation = replace(mutation, seconds=clock.monotonic() - begun)
        if mutation.control != "unnoticed" and (mutation.made or mutation.broken):
            mutation = keep(mutation, told=True)
        return mutation if broken else None, earlier

    def _kept(
        self,
        ran: VerifyResult,
        base: str,
        found: MutationCheck | EarlierTests,
        passed: bool,
        seconds: float,
        *,
        told: bool,
    ) -> VerifyResult:
        """Store the findings on the tree, with their words for people, and publish them where they are `told`."""
        own = {"base": base, **found.to_json()}
        now = replace(
            ran, passed=passed, exit_code=int(not passed), output=str(found), found=own, seconds=seconds
        )
        return self.verifier.log.keep(now, told=told)

    def _rooms(self, tree: str, jobs: int) -> list[CleanRoom]:
        """Return the rooms for runs side by side: one alone where tests would share a network, and so their ports."""
        return self.verifier.room.beside(1 if self.verifier.network else self._room_count(tree, jobs))

    def _room_count(self, tree: str, jobs: int) -> int:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        repository = self.verifier.repository
        blobs = [entry.blob for entry in repository.entries(tree).values() if not entry.is_submodule]
        sizes = repository.blob_sizes(set(blobs))
        size = sum(sizes.get(blob, 0) for blob in blobs)
        fitting = min(MOST_FILES // (len(blobs) or 1), MOST_BYTES // (size or 1))
        return max(1, min(usable, MOST_ROOMS, jobs, fitting))


@dataclass(frozen=True)
class _TakenBack:
    """The parts that a check of earlier tests takes back: changed test files and new support.

    `untouched` are the names of the tests that the change does not touch. `options`: of the runs of changed tests.
    """

    ours: Sequence[TreeChange]
    support: Sequence[TreeChange]
    untouched: frozenset[str]
    options: tuple[str, ...]

    @classmethod
    def of(cls, change: ExaminedChange, after: TestRun) -> _TakenBack | None:
        """Return the parts to take back; None where there is nothing."""
        files, changes = change.files, change.changes
        real = [c for c in files if GITLINK not in (c.mode_before, c.mode_after)]
        with_tests = {
            c.path for c in changes for side in (c.before, c.after) if read_tests(c.path, side).cases
        }
        ours = [c for c in real if looks_like_test(c.path)]
        changed = [c for c in ours if c.before is not None]
        untouched = frozenset(n for n in after.single if not any(in_file(n, c.path) for c in ours))
        support = [c for c in ours if c.path not in with_tests and not is_data(c.path)]
        if not (changed or (support and untouched)):
            return None
        named = (f"only {c.path}" for c in changed if c.path in with_tests)
        return cls(changed, support if untouched else (), untouched, ("go_on", *named))


@dataclass
class _Batch:
    """Runs beside each other, until the deadline."""

    verifier: Verifier
    tests: VerifyResult
    rooms: Sequence[CleanRoom]
    deadline: float
    cancelled: Event = field(default_factory=Event)
    told_at: float = -TELL_S

    def first(self, control: NegativeControl, taken: _TakenBack | None) -> dict[str, _Ran | None]:
        """Run what needs no other run, side by side: the negative control, and the new code with earlier tests."""
        jobs = {"control": _Job(self.tests.tree, control.edits, STOP)} if control.edits else {}
        tree_with = self.verifier.repository.tree_with
        if taken is not None and taken.ours:
            before: dict[str, TreeEntry | None] = {c.path: c.entry_before for c in taken.ours}
            jobs["earlier"] = _Job(tree_with(self.tests.tree, before), _optional(before), taken.options)
        if taken is not None and taken.support:
            without: dict[str, TreeEntry | None] = {c.path: c.entry_before for c in taken.support}
            jobs["without"] = _Job(tree_with(self.tests.tree, without), options=("go_on",))
        return dict(zip(jobs, self.results([*jobs.values()]), strict=True))

    def earlier_tests(
        self, base: str, taken: _TakenBack, compared: ComparedTests, first: Mapping[str, _Ran | None]
    ) -> EarlierTests:
        """Return what earlier tests tell; where some fail on the new code, run the new ones on the old code."""
        count = len(taken.ours)
        earlier, alone = first.get("earlier"), first.get("without")
        if (earlier is None and count) or (alone is None and taken.support):
            return EarlierTests(count, reason=OUT_OF_TIME)
        failing: tuple[str, ...] = ()
        if earlier is not None and not earlier.passed:
            after: dict[str, TreeEntry | None] = {c.path: c.entry_after for c in taken.ours}
            job = _Job(self.verifier.repository.tree_with(base, after), _optional(after), taken.options)
            (new,) = self.results([job])
            if new is None:
                return EarlierTests(count, reason=OUT_OF_TIME)
            if new.tests.single or earlier.tests.single:
                failing = failing_tests(compared, earlier.tests, new.tests)
            elif new.passed:
                failing = (ALL,)
        dependent = alone.tests.failed & taken.untouched if alone is not None and not alone.passed else ()
        beside = sorted(c.path for c in taken.support) if dependent or not count else ()
        return EarlierTests(count, failing, tuple(sorted(dependent)), tuple(beside))

    def control(self, control: NegativeControl, ran: _Ran | None, made: int) -> MutationCheck:
        """Return whether the tests noticed the broken functions, before any of the `made` mutants ran."""
        if not control.edits:
            return MutationCheck(made)
        outcome, why = self._outcome(control, ran)
        return MutationCheck(made, (), outcome, control.broken, why)

    def mutants(
        self, chosen: Sequence[Mutant], check: MutationCheck, narrowed: Sequence[str]
    ) -> Iterator[MutationCheck]:
        """Yield the check with one more outcome after each mutant whose outcome is certain.

        First the `narrowed` runs: those of the work's own tests, in which a failed test settles it. All tests run for
        the mutants that are left, until the first failure.
        """
        settled = {(outcome.path, outcome.start, outcome.now) for outcome in check.outcomes}
        for options in ([*STOP, *narrowed], STOP) if narrowed else (STOP,):
            left = [m for m in chosen if (m.path, m.start, m.now) not in settled]
            jobs = [_Job(self.tests.tree, {m.path: m.applied}, tuple(options)) for m in left]
            with closing(self._each(jobs)) as each:
                for at, result in chain([(0, None)], each):
                    if result is not None and (options is STOP or result.tests.failed):
                        m, refused = left[at], did_not_compile(left[at].path, result.output)
                        noticed = None if refused else not result.passed
                        outcome = MutantOutcome(m.path, m.line, m.start, m.was, m.now, noticed)
                        settled.add((m.path, m.start, m.now))
                        check = replace(check, outcomes=(*check.outcomes, outcome))
                        yield check
                    self._tell(check)

    def _tell(self, check: MutationCheck) -> None:
        """Show how far the mutants are, not more often than a person wants to read it."""
        now = self.verifier.log.clock.monotonic()
        if now >= self.told_at + TELL_S and now < self.deadline:
            self.told_at = now
            told = f"Mutants: {len(check.outcomes)} of {check.made} ({self.deadline - now:.0f} s left)"
            self.verifier.log.journal.tell(ProgressTold(told))

    def _outcome(self, control: NegativeControl, result: _Ran | None) -> tuple[Control, str]:
        if result is None:
            return "unknown", OUT_OF_TIME
        if any(did_not_compile(path, result.output) for path in control.edits):
            return "unknown", REFUSED
        if not result.passed:
            return "noticed", ""
        if list(self.rooms) == [self.verifier.room]:
            # Without a mount, an installed package may lead the tests to the project instead of to the room
            (unread,) = self.results([_Job(self.tests.tree, dict.fromkeys(control.edits, _unreadable))])
            if unread is not None and unread.passed:
                return "unknown", NOT_REACHED
        return "unnoticed", ""

    def results(self, jobs: Sequence[_Job]) -> list[_Ran | None]:
        """Return how the tests went in each job; None where the time was over."""
        ran = dict(self._each(jobs))
        return [ran[at] for at in range(len(jobs))]

    def _each(self, jobs: Sequence[_Job]) -> Generator[tuple[int, _Ran | None]]:
        """Yield the place of each job and how its tests went, as they end."""
        free: SimpleQueue[CleanRoom] = SimpleQueue()
        for room in self.rooms:
            free.put(room)
        with ThreadPoolExecutor(len(self.rooms), thread_name_prefix="extra-runs") as pool:
            waiting = {pool.submit(self._in_a_room, free, job): at for at, job in enumerate(jobs)}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            except BaseException:  # a signal too: the commands end before the pool waits for its threads
                self.cancelled.set()
                raise

    def _in_a_room(self, free: SimpleQueue[CleanRoom], job: _Job) -> _Ran | None:
        room = free.get()
        try:
            return self._ran(room, job)
        finally:
            free.put(room)

    def _ran(self, room: CleanRoom, job: _Job) -> _Ran | None:
        """Run the tests once in `room`; afterwards the room is as it was. None where the time was over."""
        seconds = self.tests.seconds
        usual = max(3 * seconds, seconds + 5.0)  # the longest time that another run may take
        left = self.deadline - self.verifier.log.clock.monotonic()
        if left <= 0 or self.cancelled.is_set():
            return None
        place = room.enter(job.tree)
        try:
            for path, edited in job.edits.items():
                room.edit(path, edited)
            record = room.record(place, job.options)
            ran = self.verifier.sandbox.run(
                Command(
                    record.keeping(self.tests.command),
                    cwd=self.verifier.root,
                    timeout_s=min(usual, left),
                    network=self.verifier.network,
                    env=record.variables,
                    room=record.room,
                    cancelled=self.cancelled,
                )
            )
            record.read()
        finally:
            room.leave(wanted=lambda _: False)
        if (ran.timed_out and left < usual) or ran.killed_by == "cancelled":
            return None
        passed = ran.exit_code == 0 and not record.why_not_passed(ran)
        return _Ran(passed, ran.output, record.test_run(ran.output))


def _narrowed(change: ExaminedChange, after: TestRun) -> list[str]:
    """Return the options that run the files of the work's own tests alone; none where these are all tests.

    They are the likeliest to notice a fault in the work. Runners of Python and Node alone are asked by files.
    """
    own = {c.path for c in change.changes if read_tests(c.path, c.after).cases and looks_like_test(c.path)}
    ran = sorted(
        path for path in own if path.endswith(BY_FILE) and any(in_file(n, path) for n in after.single)
    )
    rest = [name for name in after.single if not any(in_file(name, path) for path in ran)]
    return [f"only {path}" for path in ran] if rest else []


def _unreadable(_: bytes) -> bytes:
    return UNREADABLE


def _optional(files: dict[str, TreeEntry | None]) -> Edits:
    """Imports may fail in the Python files among these."""
    return {path: optional_imports for path, entry in files.items() if entry and path.endswith(".py")}
