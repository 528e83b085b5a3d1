"""Run the tests on mutants of the functions that the work adds or rewrites, in rooms beside the clean room.

No model is asked. The result is stored with the verifications, so that the same change is not tried twice
(docs/reference/mutation.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event, Lock

from lopen.core.events import Notice
from lopen.judge.mutation import MutantOutcome, MutationCheck, mutation_from_json
from lopen.judge.runner_output import failed_tests
from lopen.sandbox.command import CommandResult
from lopen.test_integrity.mutants import Mutant, language_of, mutants
from lopen.test_integrity.mutation_controls import did_not_compile, inserted, neutral_edit, one_line_edit
from lopen.test_integrity.suite import FileChange
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Runs
from lopen.tools.reruns import Edits, Rerunner, TestRun

TOOL = "mutation_check"
TOTAL_S = 60.0  # of one check
LONGEST_TESTS_S = 10.0  # a slower test run is not repeated
MOST_ROOMS = 8
MOST_FILES = 40_000  # of all rooms together
MOST_BYTES = 2_000_000_000
UNREADABLE = b"lopen: this file cannot be read (\n"
UNSTABLE = "the tests do not pass a second time on the same files, so a failure tells nothing"
SLOW = f"the tests took {{:.0f}} s; mutants are tried where they take less than {LONGEST_TESTS_S:.0f} s"
ENOUGH = "the tests notice faults; the verdicts on the tasks tell how many"
OUT_OF_TIME = f"the time of the check, {TOTAL_S:.0f} s, was over"
MOST_NAMED = 10
NOT_COMPILED = "the compiler refused them"
NO_FUNCTION = "no mutants were made: no changed function was found in {}"
TEXT_TELLS = "the test command fails when only the code's text changes, and names no test that fails: its failures tell nothing"


@dataclass(frozen=True)
class MutationRunner(Rerunner):
    """Runs one session's test command on mutants."""

    def check(
        self, base: str, changes: Sequence[FileChange], tests: TestRun, *, first: bool = False
    ) -> MutationCheck | None:
        """Return what the tests notice of mutants of `changes`, as stored or by running them; None without changed code.

        With `first`, stop when one is noticed.
        """
        chosen = mutants(changes)
        if not chosen:
            code = sorted(c.path for c in changes if c.after is not None and language_of(c.path))
            return MutationCheck(0, reason=NO_FUNCTION.format(", ".join(code[:MOST_NAMED]))) if code else None
        known = self.audit.checked("mutation", base, tests.tree, tests.command)
        if known is not None and not (found := mutation_from_json(known)).failed_again:
            return found  # tests that failed by chance, or for want of a service, may pass by now
        started = self.clock.monotonic()
        if tests.seconds >= LONGEST_TESTS_S:
            found = MutationCheck(len(chosen), reason=SLOW.format(tests.seconds))
        else:
            self.journal.tell(
                Notice("info", f"trying the tests on {len(chosen)} mutants, {TOTAL_S:.0f} s at most")
            )
            mutated = [c for c in changes if any(m.path == c.path for m in chosen)]
            neutral = [{c.path: each(c) for c in mutated} for each in (neutral_edit, one_line_edit)]
            found = self._run(chosen, neutral, tests, first=first)
        self.keep(
            TOOL,
            tests,
            started,
            [*found.lines()],
            passed=not found.nothing_noticed and found.failed_again < 2,
            mutation={"base": base, **found.to_json()},
        )
        return found

    def _run(
        self,
        chosen: Sequence[Mutant],
        neutral: Sequence[Mapping[str, Mapping[int, bytes]]],
        tests: TestRun,
        *,
        first: bool,
    ) -> MutationCheck:
        # One after another: with `first`, which ones ran must not depend on which was faster; without a network of
        # their own, tests that open the same port would fail for each other, as if they noticed a mutant.
        alone = first or self.network
        rooms = self.room.beside(1 if alone else self._room_count(tests.tree, len(chosen)))
        with self.commands.guarded() as run:
            batch = _Batch(self, tests, run, self.clock.monotonic() + TOTAL_S, first)
            texts: list[Edits] = [
                {path: partial(inserted, insertions=each) for path, each in edits.items()}
                for edits in neutral
            ]
            same, changed = batch.results(rooms, [{}, texts[0]])
            if same is None:
                return MutationCheck(len(chosen), reason=OUT_OF_TIME)
            if same.failed:
                (again,) = batch.results(rooms[:1], [{}])
                times = 0 if same.slow else 1 + (again is not None and again.failed and not again.slow)
                return MutationCheck(
                    len(chosen), reason=UNSTABLE, failed_again=times, unstable=tuple(sorted(same.names))
                )
            if not batch.learn(changed):
                return MutationCheck(len(chosen), reason=TEXT_TELLS)
            batch.mutating = True
            results = batch.results(rooms, [{m.path: m.applied} for m in chosen])
            batch.mutating = False
            # last, for tests that compare times of files; as small as a mutant, for those that count lines
            if batch.noticed and not batch.learn(*batch.results(rooms[:1], [texts[1]])):
                return MutationCheck(len(chosen), reason=TEXT_TELLS)
            ran = [
                MutantOutcome(m.path, m.line, m.was, m.now, batch.counts(result))
                for m, result in zip(chosen, results, strict=True)
                if result is not None
            ]
            left = batch.left_out if len(ran) < len(chosen) else ""
            readers = tuple(sorted(batch.readers))
            found = MutationCheck(len(chosen), tuple(ran), left, readers=readers)
            if found.nothing_noticed and rooms == [self.room] and not readers:
                # Without a mount, an installed package may lead the tests to the project instead of to the room.
                (result,) = batch.results(rooms, [dict.fromkeys((m.path for m in chosen), _unreadable)])
                found = replace(found, reached=result is None or result.failed)
        return found

    def _room_count(self, tree: str, chosen: int) -> int:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        repository = self.commands.repository
        blobs = [entry.blob for entry in repository.entries(tree).values() if not entry.is_submodule]
        sizes = repository.blob_sizes(set(blobs))
        size = sum(sizes.get(blob, 0) for blob in blobs)
        fitting = min(MOST_FILES // (len(blobs) or 1), MOST_BYTES // (size or 1))
        return max(1, min(usable, MOST_ROOMS, chosen + 1, fitting))


def _unreadable(_: bytes) -> bytes:
    return UNREADABLE


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One run of the tests: `names` are those that failed, as far as the runner prints them; a `slow` one was ended."""

    failed: bool
    names: frozenset[str] = frozenset()
    slow: bool = False


@dataclass
class _Batch:
    """Runs of the test command on edited files, one at a time in each room."""

    runner: MutationRunner
    tests: TestRun
    run: Runs
    deadline: float
    first: bool  # stop when a mutant is noticed
    readers: frozenset[str] = frozenset()  # tests that fail when only the text changes
    mutating: bool = False  # not while the files, or their behaviour, are as they were
    out_of_time: bool = False
    noticed: bool = False
    cancelled: Event = field(default_factory=Event)
    _taking: Lock = field(default_factory=Lock)

    @property
    def left_out(self) -> str:
        """Why not all mutants ran."""
        return OUT_OF_TIME if self.out_of_time else ENOUGH if self.first and self.noticed else NOT_COMPILED

    def learn(self, control: _Outcome | None) -> bool:
        """Note which tests fail though only the text changed; return False where the failure names none."""
        if control is not None and control.failed:
            self.readers |= control.names
        return control is None or not control.failed or bool(control.names)

    def counts(self, result: _Outcome) -> bool:
        """Return True if a test failed that does not fail whenever the text changes."""
        return result.failed and not (self.readers and result.names and result.names <= self.readers)

    def results(self, rooms: Sequence[CleanRoom], jobs: Sequence[Edits]) -> list[_Outcome | None]:
        """Return for each job how the tests went; None where they did not run, or only the compiler complained."""
        results: list[_Outcome | None] = [None] * len(jobs)
        pending = iter(enumerate(jobs))
        with ThreadPoolExecutor(len(rooms), thread_name_prefix="mutants") as pool:
            try:
                for done in [pool.submit(self._work, room, pending, results) for room in rooms]:
                    done.result()
            except BaseException:  # a signal too: the commands end before the pool waits for its threads
                self.cancelled.set()
                raise
        return results

    def _work(
        self, room: CleanRoom, pending: Iterator[tuple[int, Edits]], results: list[_Outcome | None]
    ) -> None:
        while not (self.cancelled.is_set() or (self.mutating and self.first and self.noticed)):
            with self._taking:
                number, edits = next(pending, (-1, {}))
            if number < 0:
                return
            results[number] = result = self._tried(room, edits)
            self.noticed |= self.mutating and result is not None and self.counts(result)

    def _tried(self, room: CleanRoom, edits: Edits) -> _Outcome | None:
        usual = self.tests.usual_s
        left = self.deadline - self.runner.clock.monotonic()
        if left <= 0:
            self.out_of_time = True
            return None
        again = self.runner.rerun(
            self.run,
            room,
            self.tests.tree,
            self.tests,
            min(usual, left),
            edits=edits,
            cancelled=self.cancelled,
        )
        return self._told(again.result, edits, passed=again.passed, cut=left < usual)

    def _told(self, ran: CommandResult, edits: Edits, *, passed: bool, cut: bool) -> _Outcome | None:
        if ran.timed_out and cut:
            self.out_of_time = True
            return None
        if ran.killed_by == "cancelled":
            return None
        if any(did_not_compile(path, ran.output) for path in edits):
            return None
        if ran.timed_out or passed:
            return _Outcome(failed=ran.timed_out, slow=ran.timed_out)
        return _Outcome(True, frozenset(failed_tests(ran.output)))
