"""Run the approved verify commands in the clean room, and bind their results to the tree on which they ran.

What a command leaves or changes there is undone and reported; lock files alone are taken over into the work tree
(docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lopen.core.clock import Clock
from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.files.room_files import Found
from lopen.git.ignores import is_cache
from lopen.judge.evidence import VerifyResult
from lopen.sandbox.command import Command
from lopen.store.audit import AuditTrail, VerificationRecord
from lopen.store.journal import Journal
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Commands
from lopen.tools.dependency_files import NEEDED, SetupApproval, is_lock_file
from lopen.tools.reports import JUnitReport, TwoPlaces, keep_record, shown_end, why_not_passed, with_notes
from lopen.tools.reruns import Rerunner
from lopen.verification.tests_run import TestsRun, read_run, run_from_json

SETUP_HINT = (
    "fix what verify-setup needs (a manifest, a lock file); it runs again before the next verification"
)
Again = TypeVar("Again", bound=Rerunner)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verify command, and the tree on which it ran."""

    tool: str
    command: str
    passed: bool
    exit_code: int | None
    output: str
    tree: str
    hint: str = ""
    changed: tuple[str, ...] = ()  # files of the tree that the command changed, in vain
    left: tuple[str, ...] = ()  # files that it added, in vain; no caches
    locked: tuple[str, ...] = ()  # lock files that it wrote, which are in the work tree now
    set_up_on: str = ""  # the tree on which verify-setup ran; "" where it did not
    whole_output: str = ""  # all that was kept of what it printed; `output` is its end
    seconds: float = 0.0
    recorded: str = ""  # of a test run, beside its output

    def as_evidence(self) -> VerifyResult:
        """Return the result as evidence for the oracle, with all of the output and lopen's own record at its end."""
        output = self.whole_output or self.output
        if self.recorded:
            output = f"{output.rstrip()}\n[{self.recorded}]"
        return VerifyResult(self.tool, self.command, self.passed, self.exit_code, output, self.tree)


class Verifier:
    """Runs verify commands and stores the last result of each."""

    def __init__(
        self,
        *,
        root: Path,
        commands: Mapping[str, str | None],
        run: Commands,
        room: CleanRoom,
        journal: Journal,
        audit: AuditTrail,
        clock: Clock,
        timeout_s: float,
        network: bool,
    ) -> None:
        self.commands = commands  # by the specification's names: verify-tests → command or None
        self.room = room
        self._root = root
        self._runs = run
        self._repository = run.repository
        self._journal = journal
        self._audit = audit
        self._clock = clock
        self._timeout_s = timeout_s
        self._network = network
        self._results: dict[str, Verified] = {}
        self._own_files: dict[str, str] = {}
        self._tree: str | None = None
        self.setup_approval = SetupApproval(journal, room.setup_key, None if network else run.sandbox)
        self._trying = False
        self._places = TwoPlaces()

    def again(self, kind: type[Again]) -> Again:
        """Return what runs the session's test command on other trees: for mutants, for earlier tests."""
        return kind(self._runs, self.room, self._journal, self._audit, self._clock, self._network)

    def touch(self) -> None:
        """Discard the tree id, because the work tree may have changed."""
        self._tree = None

    def tree(self) -> str:
        """The work tree's id, without lopen's own files."""
        if self._tree is None:
            self._tree = self._repository.snapshot(self._own_files)
        return self._tree

    def tree_with_own_files(self) -> str:
        """The work tree's id as it would be committed, with the files that lopen itself wrote."""
        return self._repository.snapshot() if self._own_files else self.tree()

    @property
    def own_files(self) -> frozenset[str]:
        """Paths that lopen itself wrote: they enter a commit unverified and make no verification stale."""
        return frozenset(self._own_files)

    def mark_own_file(self, path: str) -> None:
        """lopen itself wrote `path` (a research note)."""
        self._own_files |= self._repository.blobs([path])
        self.touch()

    def looked(self, command: str, *, passed: bool) -> str:
        """Note a command of the model; return what it is to know of a difference from the room, once."""
        tests = self.commands.get("verify-tests")
        if not tests or " ".join(tests.split()) not in " ".join(command.split()):
            return ""
        self._places.looked = (self.tree(), passed)
        return self.difference()

    def difference(self) -> str:
        """Say once that the tests pass in the room and fail in the model's own tree, or the reverse; else ""."""
        result = self._results.get("verify_tests")
        if result is None or self._places.looked != (result.tree, not result.passed):
            return ""
        return self._places.told(self._repository.left_out(), passed=result.passed)

    def fresh(self, tool: str) -> Verified | None:
        """Return the command's result on the current tree, None if it did not run on it."""
        result = self._results.get(tool)
        return result if result is not None and result.tree == self.tree() else None

    def run(self, tool: str) -> Verified | None:
        """Run the command of a verify tool; return None if the specification has no such command."""
        name = tool.replace("_", "-")
        if (command := self.commands.get(name)) is None:
            return None
        self.touch()  # a person may have changed the work tree
        if name == "verify-setup":
            result = self._set_up(command)
        else:
            result = self._run_after_setup(tool, command)
            if result.locked:  # it wrote a lock file: on the tree that has it, it writes no other one
                result = self._run_after_setup(tool, command)
        self._results[tool] = result
        return result

    def tried(self, tool: str) -> Verified | None:
        """Run the command to see if it starts: the result is neither kept nor told. Nothing is installed twice."""
        command = self.commands.get("verify-setup")
        if tool == "verify_setup" and command is not None and not self._needs_setup(command):
            return None
        self._trying = True
        try:
            return self.run(tool)
        finally:
            self._trying = False
            self._results.pop(tool, None)

    def ensured(self, tool: str, *, anew: bool = False) -> Verified | None:
        """Return the command's result on the current tree; run the command if there is none, with `anew` also if its
        dependencies were installed on another tree.
        """
        known = self.fresh(tool)
        if anew and self.room.set_up_on not in ("", self.tree()):
            self.room.forget_installed()
        if anew and known is not None and known.set_up_on not in ("", known.tree):
            known = None
        return known or self.run(tool)

    def _run_after_setup(self, tool: str, command: str) -> Verified:
        setup = self._setup_due()
        if setup is not None and not setup.passed:
            return _not_run(tool, command, setup)
        return self._run(tool, command)

    def _setup_due(self) -> Verified | None:
        """Run verify-setup if necessary: before the first verify command, after a change of a file that decides what
        it installs, and as long as it fails. Return its result, None if it did not run.
        """
        command = self.commands.get("verify-setup")
        if command is None or not self._needs_setup(command):
            return None
        self._results["verify_setup"] = result = self._set_up(command)
        return result

    def _needs_setup(self, command: str) -> bool:
        # First, because it brings the room to the tree, which may remove what is installed.
        key = self.room.setup_key(self.tree(), command)
        return self.room.set_up_for != key

    def _set_up(self, command: str) -> Verified:
        if self.setup_approval.holds(self.tree(), command):
            return Verified("verify_setup", command, False, None, NEEDED, self.tree())
        self.room.forget_installed()
        result = self._run("verify_setup", command)
        if result.passed:
            self.room.installed_for(self.room.setup_key(self.tree(), command), self.tree())
        else:
            self.room.forget_installed()
        return result

    def _run(self, tool: str, command: str) -> Verified:
        tree, setting_up = self.tree(), tool == "verify_setup"
        room = self.room.enter(tree)
        report = JUnitReport(self._root, command, room.files) if tool == "verify_tests" else None
        record = self.room.record(room) if report else None
        started = self._clock.monotonic()
        try:
            ran = self._runs.run(
                Command(
                    command,
                    cwd=self._root,
                    timeout_s=self._timeout_s,
                    writable=True,
                    network=self._network,
                    installs=setting_up,
                    env=record.variables if record else {},
                    room=record.room if record else room,
                )
            )
            hint = why_not_passed(report, record, ran, command)
        finally:
            found = self.room.leave(wanted=is_lock_file, install=setting_up)
        passed = ran.exit_code == 0 and not ran.timed_out and not hint
        if report and record and (passed or self._trying):
            seconds = self._clock.monotonic() - started
            noted = record.tests(), record.skipped_tests()
            tests = read_run(ran.output, report.counts, *noted, seconds).to_json()
            self._audit.tests_ran(tree, {"command": command, **tests})
        locked = self._take_over(found)
        whole = with_notes(ran, report.line() if report else "")
        result = Verified(
            tool,
            command,
            passed,
            ran.exit_code,
            shown_end(whole),
            self.tree() if setting_up else tree,
            hint,
            tuple(path for path in found.changed if path not in locked),
            () if setting_up else self._worth_telling(found.added, locked),
            locked,
            self.room.set_up_on,
            whole,
            self._clock.monotonic() - started,
            record.line() if record else "",
        )
        if not self._trying:
            self._keep(result)
        return result

    def test_runs(self) -> dict[str, TestsRun]:
        """Return which tests the present test command ran, by tree, the session's first run first."""
        command = self.commands.get("verify-tests")
        kept = ((tree, ran) for tree, ran in self._audit.test_runs().items() if ran["command"] == command)
        return {tree: run_from_json(ran) for tree, ran in kept}

    def _keep(self, result: Verified) -> None:
        """Record the result with its output, and tell of it."""
        task, now = self._journal.session.task, self._clock.now()
        tool, command, passed, code = result.tool, result.command, result.passed, result.exit_code
        record = VerificationRecord(
            0, None, task.id if task else None, tool, command, passed, code, result.seconds, result.tree,
            now.isoformat(timespec="seconds"), result.hint, result.whole_output,
        )  # fmt: skip
        keep_record(self._journal, self._audit, record)

    def _take_over(self, found: Found) -> tuple[str, ...]:
        """Write the lock files that the command wrote into the work tree; return their paths."""
        wanted = set(found.contents) - set(self._repository.ignored(found.contents) if found.contents else ())
        project = Root(self._root)
        written = []
        for path in sorted(wanted):
            with suppress(ToolRefused):  # something else lies there, such as a link
                project.replace_file(path, found.contents[path])
                written.append(path)
        if written:
            self.touch()
        return tuple(written)

    def _worth_telling(self, added: Sequence[str], locked: Sequence[str]) -> tuple[str, ...]:
        """Return the added paths that a person would have committed: no caches, nothing that git ignores."""
        paths = [p for p in added if p not in locked and not is_cache(p)]
        hidden = self._repository.ignored(paths) if paths else ()
        return tuple(path for path in paths if path not in hidden)


def _not_run(tool: str, command: str, setup: Verified) -> Verified:
    """Return the failure of a command that did not run because verify-setup failed."""
    ended = "was stopped" if setup.exit_code is None else f"failed with exit code {setup.exit_code}"
    output = f"not run, because verify-setup ({setup.command}) {ended}:\n{setup.output}"
    return Verified(tool, command, False, None, output, setup.tree, SETUP_HINT)
