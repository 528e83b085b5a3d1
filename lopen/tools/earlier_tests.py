"""Run the earlier versions of changed tests on the new code, and, where some fail, the new versions on the old code.

Both are git trees of lopen's own, in a room beside the clean room. No model is asked. The result is stored with the
verifications, so that the same change is not tried twice (docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from lopen.git.trees import GITLINK, TreeChange, TreeEntry
from lopen.judge.tests_run import SINGLE, TestsRun
from lopen.test_integrity.detect import tests_by_file
from lopen.test_integrity.earlier_tests import (
    ALL,
    EarlierTests,
    earlier_tests_from_json,
    in_file,
    misfits,
    renamed,
    together,
)
from lopen.test_integrity.paths import is_data, is_support, looks_like_test
from lopen.test_integrity.python.optional_imports import optional_imports
from lopen.test_integrity.rust.inline_tests import with_inline_changes, with_tests_of
from lopen.test_integrity.suite import FileChange
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Runs
from lopen.tools.reruns import NO_EDITS, Edits, Rerun, Rerunner, TestRun

TOOL = "earlier_tests"
TOTAL_S = 60.0  # of one check
LONGEST_TESTS_S = 30.0  # a slower test run is not repeated
SLOW = f"the tests took {{:.0f}} s; they run again where they take less than {LONGEST_TESTS_S:.0f} s"
OUT_OF_TIME = f"the time of the check, {TOTAL_S:.0f} s, was over"
_EMPTIED = (".py", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".rs", ".rb")
NOT_COMPILED = "the inline tests of one version do not compile with the code of the other one"

Files = dict[str, TreeEntry | None]


class _OutOfTimeError(Exception):
    """The time of the check was over."""


@dataclass(frozen=True)
class EarlierTestsRunner(Rerunner):
    """Runs one session's changed tests in their earlier version on the new code, and the reverse."""

    def check(
        self,
        base: str,
        files: Sequence[TreeChange],
        changes: Sequence[FileChange],
        tests: TestRun,
        after: TestsRun,
        run_files: Container[str] = (),
    ) -> EarlierTests | None:
        """Return which tests accept old and new code, or lean on new test files, as stored or by running them.

        `files` and `changes` lead from the tree `base` to that of `tests`, on which `after` ran; the test command runs by
        `run_files`. None where there is nothing to compare.
        """
        real = [c for c in files if GITLINK not in (c.mode_before, c.mode_after)]
        with_tests = tests_by_file({c.path: c.after or c.before or "" for c in changes})
        ours = [c for c in real if looks_like_test(c.path) and (is_support(c.path) or c.path in with_tests)]
        beside = [c for c in real if c.path in run_files and c not in ours]
        inline = [c for c in with_inline_changes(changes) if not looks_like_test(c.path)]
        count = sum(c.before is not None for c in ours) + len(inline)
        names = _names(after)
        untouched = frozenset(n for n in names if not any(in_file(n, c.path) for c in ours))
        support = [c for c in ours if not is_data(c.path)]
        helpers = [c for c in support if c.before is None and c.path not in with_tests]
        added = beside or (helpers if count else support)  # new tests are left out with the changed ones
        leaning = added and (untouched or not (names or count))
        if not count and not leaning:
            return None
        known = self.audit.checked("earlier_tests", base, tests.tree, tests.command)
        if known is not None:
            return earlier_tests_from_json(known)
        started = self.clock.monotonic()
        if tests.seconds >= LONGEST_TESTS_S:
            found = EarlierTests(count, reason=SLOW.format(tests.seconds))
        else:
            with self.commands.guarded() as run:
                (room,) = self.room.beside(1)
                both = _BothWays(self, base, tests, run, room, started + TOTAL_S)
                found = both.found(count, ours, inline, changes, after) if count else EarlierTests(0)
                if leaning and not found.reason:
                    found = both.of_untouched(found, support, beside, with_tests, untouched)
        kept = {"base": base, **found.to_json()}
        passed = not (found.weakened or found.leaning)
        self.keep(TOOL, tests, started, [*found.lines()], passed=passed, earlier_tests=kept)
        return found


@dataclass
class _BothWays:
    """The runs of one check, one after another."""

    runner: EarlierTestsRunner
    base: str
    tests: TestRun
    run: Runs
    room: CleanRoom
    deadline: float

    def found(
        self,
        count: int,
        ours: Sequence[TreeChange],
        inline: Sequence[FileChange],
        changes: Sequence[FileChange],
        after: TestsRun,
    ) -> EarlierTests:
        """Return what the runs tell of `count` changed files: `ours` are of tests, `inline` of code with tests in it."""
        try:
            found = (
                self._of_files(count, ours, changes, after) if len(inline) < count else EarlierTests(count)
            )
            return together(found, self._of_inline(count, inline, changes, after)) if inline else found
        except _OutOfTimeError:
            return EarlierTests(count, reason=OUT_OF_TIME)

    def _of_files(
        self, count: int, ours: Sequence[TreeChange], changes: Sequence[FileChange], after: TestsRun
    ) -> EarlierTests:
        """Take the files of the tests from one tree into the other."""
        with_tests = tests_by_file(
            {c.path: c.after for c in changes if c.before is None and c.after is not None}
        )
        earlier: Files = {
            c.path: c.entry_before for c in ours if c.before is not None or c.path in with_tests
        }
        new: Files = {c.path: c.entry_after for c in ours}
        tree_with = self.runner.commands.repository.tree_with
        earlier_on_new, new_on_old = tree_with(self.tests.tree, earlier), tree_with(self.base, new)
        return self._compared(
            count,
            lambda: self._rerun(earlier_on_new, _optional(earlier)),
            lambda: self._rerun(new_on_old, _optional(new)),
            [*earlier],
            after,
            changes,
        )

    def of_untouched(
        self,
        known: EarlierTests,
        ours: Sequence[TreeChange],
        beside: Sequence[TreeChange],
        with_tests: Container[str],
        untouched: Collection[str],
    ) -> EarlierTests:
        """Run the tests that the change does not touch as they were: without its test files, settings and scripts.

        Of a new file that is one of `with_tests` the name stays where an empty file is none of an error: a test may ask
        whether each module has one.
        """
        emptied = [c for c in ours if c.before is None and c.path in with_tests and c.path.endswith(_EMPTIED)]
        earlier: Files = {c.path: c.entry_before for c in [*ours, *beside] if c not in emptied}
        tree = self.runner.commands.repository.tree_with(self.tests.tree, earlier)
        edits: Edits = {c.path: lambda _: b"" for c in emptied}  # a test may list the files of tests
        try:
            first = self._rerun(tree, edits)
            failing = {name for name in first.failed if name in untouched} - {
                *known.weakened,
                *known.changed,
                *known.beyond,
            }
            if first.passed or (untouched and not failing):
                return known  # what did not run at all needs what the change adds: nothing is known of it
            before, again = self._rerun(self.base), self._rerun(tree, edits)
        except _OutOfTimeError:
            return replace(known, reason=OUT_OF_TIME)
        files = tuple(sorted({*earlier, *edits}))
        if not untouched:  # the runner names no test
            held_up = before.passed and not again.passed
            return replace(known, unclear=(ALL,), beside=files) if held_up else known
        failing &= again.failed
        sure = (failing & (_names(before.ran) - before.failed)) - _misfits(first).keys()
        return replace(
            known, leaning=tuple(sorted(sure)), unclear=tuple(sorted(failing - sure)), beside=files
        )

    def _of_inline(
        self, count: int, inline: Sequence[FileChange], changes: Sequence[FileChange], after: TestsRun
    ) -> EarlierTests:
        """Put the inline tests of one version of the code into the other one; nothing is known where that does not compile."""
        earlier, new = (
            {c.path: partial(with_tests_of, other=side(c) or "") for c in inline}
            for side in (attrgetter("before"), attrgetter("after"))
        )
        first = self._rerun(self.tests.tree, earlier)
        if first.passed:
            return EarlierTests(count)
        second = self._rerun(self.base, new) if _names(first.ran) else first
        if not _names(second.ran):
            return EarlierTests(count, reason=NOT_COMPILED)
        known = iter([first])
        return self._compared(
            count,
            lambda: next(known, None) or self._rerun(self.tests.tree, earlier),
            lambda: second,
            [],
            after,
            changes,
        )

    def _compared(
        self,
        count: int,
        run_earlier: Callable[[], Rerun],
        run_new: Callable[[], Rerun],
        earlier: Sequence[str],
        after: TestsRun,
        changes: Sequence[FileChange],
    ) -> EarlierTests:
        first = run_earlier()
        if first.passed:
            return EarlierTests(count)
        second = run_new()
        now = _names(after)
        if not now:
            return self._whole(count, run_earlier, second)
        there = {name: name for name in first.failed & now}
        there |= renamed(changes, first.failed, now)  # earlier name → the present one
        here = {name for name in now - _names(first.ran) if any(in_file(name, path) for path in earlier)}
        accepted = (_names(second.ran) - second.failed) & now
        unfit, unfit_before = _misfits(first), _misfits(second)
        lacking = {name for name, error in unfit.items() if error == "NameError"}  # an import was left out
        weakened = {name for name in there if there[name] in accepted} - lacking
        untold = (here & accepted) - set(there.values()) | {
            there[name] for name in lacking & there.keys() if there[name] in accepted
        }
        if weakened or untold:
            before = self._rerun(self.base)
            passed = _names(before.ran) - before.failed
            again = run_earlier()
            weakened &= passed & again.failed
            unclear = {n for n in weakened & unfit.keys() if not any(in_file(n, path) for path in earlier)}
            weakened, untold = weakened - unclear, untold | unclear
            untold &= passed - (_names(again.ran) - lacking)
        told = {name for name in there if there[name] not in accepted}
        ran_before = _names(second.ran)
        beyond = {name for name in told if there[name] in unfit_before or there[name] not in ran_before}
        weak, unheard, other, unlike, odd = (
            tuple(sorted(each)) for each in (weakened, untold, told - beyond, beyond, weakened & unfit.keys())
        )
        return EarlierTests(
            count,
            len(first.failed),
            weak,
            unheard,
            other,
            unnamed=not first.failed,
            misfits=odd,
            beyond=unlike,
        )

    def _whole(self, count: int, run_earlier: Callable[[], Rerun], second: Rerun) -> EarlierTests:
        """Take all tests together, where the runner names none."""
        weakened = second.passed and self._rerun(self.base).passed and not run_earlier().passed
        weak, changed = ((ALL,), ()) if weakened else ((), (ALL,))
        return EarlierTests(count, 0, weak, (), changed, unnamed=True)

    def _rerun(self, tree: str, edits: Edits = NO_EDITS) -> Rerun:
        """Run the tests on a tree with `edits`."""
        left = self.deadline - self.runner.clock.monotonic()
        usual = self.tests.usual_s
        if left <= 0:
            raise _OutOfTimeError
        again = self.runner.rerun(
            self.run, self.room, tree, self.tests, min(usual, left), edits=edits, go_on=True
        )
        if again.result.timed_out and left < usual:
            raise _OutOfTimeError
        return again


def _optional(files: Files) -> Edits:
    """Imports may fail in the Python files among these."""
    return {path: optional_imports for path, entry in files.items() if entry and path.endswith(".py")}


def _misfits(again: Rerun) -> dict[str, str]:
    """The tests that failed by a name or a call that does not fit, by lopen's record and by what pytest printed."""
    return {**misfits(again.result.output), **again.misfits}


def _names(ran: TestsRun) -> frozenset[str]:
    return frozenset(name for kind, names in ran.names.items() if kind in SINGLE for name in names)
