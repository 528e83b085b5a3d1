"""Run the approved verify commands and bind their results to the work tree's tree id.

Files that a command leaves behind do not make its result stale and do not enter a commit (except lock files). Files of
the tree that it changes are put back and reported (docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lopen.base.clock import Clock
from lopen.base.events import Notice, VerificationRan
from lopen.base.stat_cache import Signature, signature_at
from lopen.git.checkout import Checkout
from lopen.oracle.evidence import VerifyResult
from lopen.oracle.runner_output import no_tests_collected
from lopen.sandbox.command import Command, CommandResult
from lopen.storage.audit import AuditTrail
from lopen.storage.journal import Journal
from lopen.storage.verifications import VerificationRecord
from lopen.tools.commands import Commands
from lopen.tools.reports import JUnitReport

OUTPUT_TAIL = 12_000  # characters of a verify command's output that the model is shown
EVENT_TAIL = 4_000  # characters of it in the event
LOCK_FILES = frozenset(
    {
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "Pipfile.lock",
        "Cargo.lock",
        "go.sum",
        "Gemfile.lock",
        "composer.lock",
        "gradle.lockfile",
        "flake.lock",
    }
)
MANIFESTS = LOCK_FILES | {
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
}
NO_TESTS_HINT = (
    "no tests were collected, or all of them were skipped, or the runner printed nothing: write at least one test "
    "that the command finds and runs"
)
SETUP_HINT = (
    "fix what verify-setup needs (a manifest, a lock file); it is run again before the next verification"
)
FAILED_HINT = "the command exited with success, but {path} tells of {failed} failed tests: fix them"


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
    put_back: tuple[str, ...] = ()  # files of the tree that the command changed
    left: tuple[str, ...] = ()  # files that it added: they enter no commit
    whole_output: str = ""  # all that was kept of what it printed; `output` is its end

    def as_evidence(self) -> VerifyResult:
        """Return the result as evidence for the oracle, with all of the output."""
        output = self.whole_output or self.output
        return VerifyResult(self.tool, self.command, self.passed, self.exit_code, output, self.tree)


def tool_name(command: str) -> str:
    """Return the tool's name of a command: `verify-tests` → `verify_tests`."""
    return command.replace("-", "_")


class Verifier:
    """Runs verify commands and stores the last result of each."""

    def __init__(
        self,
        *,
        root: Path,
        commands: Mapping[str, str | None],
        run: Commands,
        repository: Checkout,
        journal: Journal,
        audit: AuditTrail,
        clock: Clock,
        timeout_s: float,
        network: bool,
    ) -> None:
        self.commands = commands  # by the specification's names: verify-tests → command or None
        self._root = root
        self._runs = run
        self._repository = repository
        self._journal = journal
        self._audit = audit
        self._clock = clock
        self._timeout_s = timeout_s
        self._network = network
        self._results: dict[str, Verified] = {}
        self._papers: dict[str, str] = {}
        self._tree: str | None = None
        self._set_up_for: tuple[tuple[Path, Signature], ...] | None = None

    def touch(self) -> None:
        """Discard the tree id, because the work tree may have changed."""
        self._tree = None

    def tree(self) -> str:
        """The work tree's id, without what verify commands left and without lopen's own papers."""
        if self._tree is None:
            self._tree = self._repository.snapshot(self.aside)
        return self._tree

    @property
    def aside(self) -> dict[str, str]:
        """The files that make no verification stale: left by verify commands, or lopen's own documents (path → blob id)."""
        return {**self._journal.session.leftovers, **self._papers}

    @property
    def papers(self) -> frozenset[str]:
        """Paths that lopen itself wrote: they enter a commit unverified."""
        return frozenset(self._papers)

    def written(self, path: str) -> None:
        """The model wrote `path` itself: its work from now on, whoever left a file there before."""
        left = self._journal.session.leftovers
        if path in left:
            self._journal.change(leftovers={p: blob for p, blob in left.items() if p != path})
        self.touch()

    def own_paper(self, path: str) -> None:
        """lopen itself wrote `path` (a research note)."""
        self._papers |= self._repository.blobs([path])
        self.touch()

    def fresh(self, tool: str) -> Verified | None:
        """Return the command's result on the current tree, None if it did not run on it."""
        result = self._results.get(tool)
        return result if result is not None and result.tree == self.tree() else None

    def run(self, tool: str) -> Verified | None:
        """Run the command of a verify tool; return None if the specification has no such command."""
        name = tool.replace("_", "-")
        command = self.commands.get(name)
        if command is None:
            return None
        setup = None if name == "verify-setup" else self._set_up()
        if setup is not None and not setup.passed:
            result = _not_run(tool, command, setup)
        else:
            result = self._run(tool, command, network=name == "verify-setup")
        self._results[tool] = result
        return result

    def ensured(self, tool: str) -> Verified | None:
        """Return the command's result on the current tree; run the command if there is none."""
        return self.fresh(tool) or self.run(tool)

    def _set_up(self) -> Verified | None:
        """Run verify-setup if necessary: before the first verify command, after a change of a manifest, and as long
        as it fails. Return its result, None if it did not run.
        """
        if self.commands.get("verify-setup") is None or self._manifests() == self._set_up_for:
            return None
        result = self.run("verify_setup")
        self._set_up_for = self._manifests() if result is not None and result.passed else None
        return result

    def _manifests(self) -> tuple[tuple[Path, Signature], ...]:
        """Return the signatures of the files that determine what verify-setup installs; a link counts as itself."""
        found = sorted(p for p in self._root.iterdir() if p.name in MANIFESTS)
        return tuple((path, signature_at(path)) for path in found)

    def _run(self, tool: str, command: str, *, network: bool) -> Verified:
        self.touch()  # include a person's changes, which must not be put back
        before = self.tree()
        report = JUnitReport(self._root, command) if tool == "verify_tests" else None
        started = self._clock.monotonic()
        ran = self._runs.run(
            Command(
                command,
                cwd=self._root,
                timeout_s=self._timeout_s,
                writable=True,
                network=self._network,
                installs=network,
                trusted=True,
            )
        )
        self.touch()
        hint = "" if report is None else _why_not(report, ran, command)
        put_back, left = self._tidy(before, tool)
        passed = ran.exit_code == 0 and not ran.timed_out and not hint
        whole = _whole(ran, report.line() if report else "")
        result = Verified(
            tool, command, passed, ran.exit_code, _tail(whole), self.tree(), hint, put_back, left, whole
        )
        self._keep(result, self._clock.monotonic() - started)
        return result

    def _keep(self, result: Verified, seconds: float) -> None:
        """Record the result with its output, and tell of it."""
        task = self._journal.session.task
        now = self._clock.now().isoformat(timespec="seconds")
        tool, command, passed, code = result.tool, result.command, result.passed, result.exit_code
        record = VerificationRecord(
            0, None, task.id if task else None, tool, command, passed, code, seconds, result.tree, now, result.hint,
            result.whole_output,
        )  # fmt: skip
        with self._journal.transaction():
            kept = self._audit.verification(record)
            tail = kept.output[-EVENT_TAIL:]
            self._journal.tell(VerificationRan(tool, command, passed, code, seconds, kept.number, tail))

    def _tidy(self, before: str, tool: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Put back the files that the command changed and record those that it added; return both lists of paths."""
        after = self._repository.snapshot(self.aside)
        if after == before:
            self._tree = after
            return (), ()
        changed = [
            c for c in self._repository.changes(before, after) if PurePosixPath(c.path).name not in LOCK_FILES
        ]
        put_back = [c.path for c in changed if c.kind != "added"]
        if put_back:
            self._repository.restore(before, put_back)
            listed = ", ".join(put_back[:10])
            self._journal.tell(Notice("warning", f"{tool} changed files of the project; put back: {listed}"))
        left = {c.path: c.after for c in changed if c.kind == "added" and c.after}
        if left:
            self._journal.change(leftovers={**self._journal.session.leftovers, **left})
        return tuple(put_back), tuple(left)


def _not_run(tool: str, command: str, setup: Verified) -> Verified:
    """Return the failure of a command that did not run because verify-setup failed."""
    ended = "was stopped" if setup.exit_code is None else f"failed with exit code {setup.exit_code}"
    output = f"not run, because verify-setup ({setup.command}) {ended}:\n{setup.output}"
    return Verified(tool, command, False, None, output, setup.tree, SETUP_HINT)


def _why_not(report: JUnitReport, ran: CommandResult, command: str) -> str:
    """Return the reason why a test command's exit code proves nothing, "" if it is valid."""
    report.read()
    if no_tests_collected(ran.exit_code, ran.output, command, report.counts):
        return NO_TESTS_HINT
    if report.failed and ran.exit_code == 0:
        return FAILED_HINT.format(path=report.path, failed=report.failed)
    return ""


def _whole(ran: CommandResult, last: str) -> str:
    """Return the output, with the summary of the test report as the `last` line."""
    output = f"{ran.output.rstrip()}\n{last}" if last else ran.output
    if ran.timed_out:
        output += f"\n[stopped after {ran.seconds:.0f} s: the command took too long]"
    return output


def _tail(output: str) -> str:
    """Return the end of the output, which the model is shown."""
    if len(output) <= OUTPUT_TAIL:
        return output
    cut = f"[the first {len(output) - OUTPUT_TAIL} characters are left out; run_command gives more]"
    return f"{cut}\n{output[-OUTPUT_TAIL:]}"
