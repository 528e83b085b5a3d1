"""Run the approved verify commands in the clean room, and bind their results to the tree on which they ran.

A command's changes there are undone and reported; lock files alone are taken over into the work tree
(docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lopen.core.clock import Clock
from lopen.core.events import VerificationRan
from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.files.room_files import Found
from lopen.git.ignores import is_cache
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.store.audit import SURVEY, AuditTrail, LeftFiles, VerifyResult
from lopen.store.journal import Journal
from lopen.verification.clean_room import CleanRoom
from lopen.verification.run_files import is_lock_file
from lopen.verification.run_record import RunRecord, could_not_write
from lopen.verification.test_run import TestRun, run_from_json

SETUP_HINT = (
    "fix what verify-setup needs (a manifest, a lock file); it runs again before the next verification"
)
SURVEY_S = 120.0
EVENT_TAIL = 4_000  # characters of an output in the event
SHOWN = 20  # paths by name
NOISE = ("__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/")


@dataclass(frozen=True)
class VerificationLog:
    """Where the results of one session are stored, and who is told of them."""

    journal: Journal
    audit: AuditTrail
    clock: Clock

    def keep(self, result: VerifyResult, *, told: bool = True) -> VerifyResult:
        """Store a result with its output, for the task in progress, and tell of it; return it with its number."""
        task = self.journal.session.task
        at = self.clock.now().isoformat(timespec="seconds")
        with self.journal.transaction():
            kept = self.audit.verification(replace(result, task=task.id if task else None, at=at))
            if not told:
                return kept
            self.journal.tell(
                VerificationRan(
                    kept.tool,
                    kept.command,
                    kept.passed,
                    kept.exit_code,
                    kept.seconds,
                    kept.number,
                    kept.output[-EVENT_TAIL:],
                )
            )
        return kept


class Verifier:
    """Runs verify commands and stores the last result of each."""

    def __init__(
        self,
        commands: Mapping[str, str | None],
        room: CleanRoom,
        sandbox: Sandbox,
        log: VerificationLog,
        *,
        timeout_s: float,
        network: bool,
    ) -> None:
        self.commands = commands  # by the specification's names: verify-tests → command or None
        self.room = room
        self.sandbox = sandbox
        self.log = log
        self.network = network
        self.repository = room.place_of_work.repository
        self.root = self.repository.root
        self._timeout_s = timeout_s
        self._results: dict[str, VerifyResult] = {}
        self._own_files: dict[str, str] = {}
        self._tree: str | None = None
        self._trying = False

    def touch(self) -> None:
        """Discard the tree id, because the work tree may have changed."""
        self._tree = None

    def tree(self) -> str:
        """The work tree's id, without lopen's own files."""
        if self._tree is None:
            self._tree = self.repository.snapshot(self._own_files)
        return self._tree

    def tree_with_own_files(self) -> str:
        """The work tree's id as it would be committed, with the files that lopen itself wrote."""
        return self.repository.snapshot() if self._own_files else self.tree()

    @property
    def own_files(self) -> frozenset[str]:
        """Paths that lopen itself wrote: they enter a commit unverified and make no verification stale."""
        return frozenset(self._own_files)

    def mark_own_file(self, path: str) -> None:
        """lopen itself wrote `path` (a research note)."""
        self._own_files |= self.repository.blobs([path])
        self.touch()

    def left_out(self) -> list[str]:
        """Return the first paths of the work tree that the clean room lacks, because no commit would hold them."""
        return [path for path in self.repository.left_out() if not path.endswith(NOISE)][:SHOWN]

    def fresh(self, tool: str) -> VerifyResult | None:
        """Return the command's result on the current tree, None if it did not run on it.

        An earlier process of the session may have run it; a failure of that time is not taken over.
        """
        result, tree = self._results.get(tool), self.tree()
        if (result is None or result.tree != tree) and (command := self._command(tool)) is not None:
            result = self.log.audit.verified(tool, command, tree)
            if result is not None and result.passed:
                self._results[tool] = result
        return result if result is not None and result.tree == tree else None

    def _command(self, tool: str) -> str | None:
        return self.commands.get(tool.replace("_", "-"))

    def run(self, tool: str) -> VerifyResult | None:
        """Run the command of a verify tool; return None if the specification has no such command.

        A command that passed on this tree is not run again: the call may be one that was cut off.
        """
        self.touch()  # a person may have changed the work tree
        known = self.fresh(tool)
        if known is not None and known.passed and known.command == self._command(tool):
            return known
        result = self._run_tool(tool)
        self.room.mark_used()
        return result

    def _run_tool(self, tool: str) -> VerifyResult | None:
        if (command := self._command(tool)) is None:
            return None
        if tool == "verify_setup":
            result = self._set_up(command)
        else:
            result = self._run_after_setup(tool, command)
            if result.left.locked:  # it wrote a lock file: on the tree that has it, it writes no other one
                result = self._run_after_setup(tool, command)
        self._results[tool] = result
        return result

    def tried(self, tool: str) -> VerifyResult | None:
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

    def surveyed(self, command: str) -> VerifyResult:
        """Run the tests that the project has before any command is approved; once on a tree, and only for a while."""
        self.touch()
        known = self.log.audit.verified(SURVEY, command, self.tree())
        return known or self._run(SURVEY, command)

    def ensured(self, tool: str, *, anew: bool = False) -> VerifyResult | None:
        """Return the command's result on the current tree; run the command if there is none, with `anew` also if its
        dependencies were installed on another tree, or an earlier command could change them.
        """
        known = self.fresh(tool)
        if not anew:
            return known or self.run(tool)
        if known is not None and known.installed_on in ("", known.tree):
            return known
        self.touch()  # a person may have changed the work tree
        if self.room.set_up_on not in ("", self.tree()):
            self.room.forget_installed()
        return self._run_tool(tool)

    def _run_after_setup(self, tool: str, command: str) -> VerifyResult:
        setup = self.set_up()
        if setup is not None and not setup.passed:
            return _not_run(tool, command, setup)
        return self._run(tool, command)

    def set_up(self) -> VerifyResult | None:
        """Run verify-setup if necessary: before the first verify command, after a change of a file by which it
        installs, and as long as it fails. Return its result, None if it did not run.
        """
        command = self.commands.get("verify-setup")
        if command is None or not self._needs_setup(command):
            return None
        self._results["verify_setup"] = result = self._set_up(command)
        return result

    def _needs_setup(self, command: str) -> bool:
        # First, because it brings the room to the tree, which may remove the installations.
        key = self.room.setup_key(self.tree(), command)
        return self.room.set_up_for != key

    def _set_up(self, command: str) -> VerifyResult:
        self.room.forget_installed()
        result = self._run("verify_setup", command)
        if result.passed:
            self.room.installed_for(self.room.setup_key(self.tree(), command), self.tree())
        else:
            self.room.forget_installed()
        return result

    def _run(self, tool: str, command: str) -> VerifyResult:
        tree, setting_up = self.tree(), tool == "verify_setup"
        installed_on = self.room.set_up_on
        room = self.room.enter(tree)
        record = self.room.record(room) if tool in ("verify_tests", SURVEY) else None
        started = self.log.clock.monotonic()
        try:
            ran = self.sandbox.run(
                Command(
                    record.keeping(command) if record else command,
                    cwd=self.root,
                    timeout_s=min(self._timeout_s, SURVEY_S) if tool == SURVEY else self._timeout_s,
                    writable=True,
                    network=setting_up or (self.network and tool != SURVEY),
                    env=record.variables if record else {},
                    room=record.room if record else room,
                )
            )
            if record:
                record.read()
        finally:
            found = self.room.leave(wanted=is_lock_file, install=setting_up)
        seconds = self.log.clock.monotonic() - started
        hint = (record.why_not_passed(ran) if record else "") or could_not_write(ran)
        passed = ran.exit_code == 0 and not ran.timed_out and not hint
        if record and (passed or self._trying):
            tests = record.test_run(ran.output).to_json()
            self.log.audit.tests_ran(tree, {"command": command, **tests})
        left = LeftFiles() if tool == SURVEY else self._take_over(found, added=not setting_up)
        result = VerifyResult(
            tool,
            command,
            passed,
            ran.exit_code,
            _with_notes(ran, record),
            self.tree() if setting_up else tree,
            seconds,
            hint,
            left,
            installed_on=installed_on,
        )
        if not self._trying:
            self.log.keep(result)
        return result

    def test_runs(self) -> dict[str, TestRun]:
        """Return which tests the present test command ran, by tree, the session's first run first."""
        command = self.commands.get("verify-tests")
        kept = ((tree, ran) for tree, ran in self.log.audit.test_runs().items() if ran["command"] == command)
        return {tree: run_from_json(ran) for tree, ran in kept}

    def _take_over(self, found: Found, *, added: bool) -> LeftFiles:
        """Write the lock files that the command wrote into the work tree; return its remains."""
        wanted = set(found.contents) - set(self.repository.ignored(found.contents) if found.contents else ())
        project = Root(self.root)
        locked = []
        for path in sorted(wanted):
            with suppress(ToolRefused):  # something else lies there, such as a link
                project.replace_file(path, found.contents[path])
                locked.append(path)
        if locked:
            self.touch()
        changed = tuple(path for path in found.changed if path not in locked)
        return LeftFiles(changed, self._worth_telling(found.added, locked) if added else (), tuple(locked))

    def _worth_telling(self, added: Sequence[str], locked: Sequence[str]) -> tuple[str, ...]:
        """Return the added paths that a person would have committed: no caches, nothing that git ignores."""
        paths = [p for p in added if p not in locked and not is_cache(p)]
        hidden = self.repository.ignored(paths) if paths else ()
        return tuple(path for path in paths if path not in hidden)


def _with_notes(ran: CommandResult, record: RunRecord | None) -> str:
    """Return the output, with lopen's record of a test run and a note that it took too long as its last lines."""
    lines = [*(record.lines(ran.output) if record else ())]
    if ran.timed_out:
        lines.append(f"[stopped after {ran.seconds:.0f} s: the command took too long]")
    return "\n".join([ran.output.rstrip() if lines else ran.output, *lines])


def _not_run(tool: str, command: str, setup: VerifyResult) -> VerifyResult:
    """Return the failure of a command that did not run because verify-setup failed."""
    ended = "was stopped" if setup.exit_code is None else f"failed with exit code {setup.exit_code}"
    output = f"not run, because verify-setup ({setup.command}) {ended}:\n{setup.output}"
    return VerifyResult(tool, command, False, None, output, setup.tree, hint=SETUP_HINT)
