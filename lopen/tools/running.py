"""Running tool calls: audit, circuits and habits around each, read-only ones side by side.

The start is recorded before a tool runs and its outcome after it, so that a crash leaves a call without an
outcome and never an effect without a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lopen.core.clock import Clock
from lopen.core.events import ToolEnded, ToolStarted
from lopen.git.errors import NotEncodable, TooManyFiles
from lopen.models.messages import ToolUse
from lopen.models.tool_calls import Input
from lopen.store.audit import AuditTrail, Outcome
from lopen.tools.calls import ToolResult, failed
from lopen.tools.registry import Registry, Tool
from lopen.tools.watch import Watch
from lopen.tools.workbench import Workbench
from lopen.workflow.pauses import Pause

TURNS_AN_ITERATION = 100_000  # more than there can be
READERS = 4  # threads for read-only tools of one turn


WRITES = frozenset({"write_file", "edit_file"})
INTERRUPTED = {
    "interrupted": True,
    "error": "the run was interrupted while this call ran; it may have run in part or in whole",
    "hint": "look at what it left before you call it again",
}


def rests_on_earlier_calls(use: ToolUse) -> bool:
    """Return whether a call only makes sense if the calls before it in its turn had their effect."""
    return use.name.startswith("verify_") or use.name == "update_task_status"


def runs_again(tool: Tool | None) -> bool:
    """Return whether a call that was cut off may simply be run once more: it changes nothing of the project."""
    return tool is not None and (tool.read_only or tool.name.startswith("verify_"))


class CallLog(Protocol):
    """Keeps the calls of a conversation within the transactions that record them."""

    def started(self, use: ToolUse) -> None:
        """The call begins."""
        ...

    def ended(self, use: ToolUse, result: ToolResult) -> None:
        """The call ended with `result`."""
        ...


class NoLog:
    """Keeps nothing: a sub-agent's conversation is not continued."""

    def started(self, use: ToolUse) -> None: ...

    def ended(self, use: ToolUse, result: ToolResult) -> None: ...


@dataclass
class ToolRunner:
    """Runs the calls of one iteration."""

    bench: Workbench
    registry: Registry
    audit: AuditTrail
    watch: Watch
    clock: Clock
    iteration: int
    log: CallLog  # keeps the calls for a conversation that is continued
    turn: int = 0
    pause: Pause | None = None  # a call came to a pause: no further call of the iteration runs
    recorded: bool = False  # the step's result is recorded: no further call of the iteration runs
    _failed: str = ""  # the verification or refused write of this turn: what rests on it is not run

    def begin_turn(self, turn: int) -> None:
        """A new turn: limits that count by turn start over."""
        self.turn = turn
        self._failed = ""
        # Turns are counted anew in each iteration; to the limits, no two turns of a session are the same one.
        self.watch.begin_turn(self.iteration * TURNS_AN_ITERATION + turn)

    def run(
        self, uses: Sequence[ToolUse], *, side_by_side: bool = False, unfinished: ToolUse | None = None
    ) -> list[ToolResult]:
        """The result of every call, in order. `unfinished` was cut by max_tokens and is not run."""
        if side_by_side and len(uses) > 1 and unfinished is None and self._over() is None:
            return self._side_by_side(uses)
        return [self._one(use, unfinished=use is unfinished) for use in uses]

    def _one(self, use: ToolUse, *, unfinished: bool) -> ToolResult:
        if self._failed and rests_on_earlier_calls(use) and self._over() is None:
            return self.skipped(use, f"{self._failed} failed in this turn")
        call = self._start(use, unfinished=unfinished)
        if isinstance(call, ToolResult):
            return call
        started, tool, parsed = call
        before = self._tree() if self.watch.failed_before(use) else ""
        return self._end(use, started, self.registry.run(tool, self.bench, parsed), before)

    def _side_by_side(self, uses: Sequence[ToolUse]) -> list[ToolResult]:
        """Start all, run them in threads, record the outcomes in order: only this thread writes."""
        calls = [self._start(use, unfinished=False) for use in uses]
        with ThreadPoolExecutor(READERS) as pool:
            running = [
                None if isinstance(c, ToolResult) else pool.submit(self.registry.run, c[1], self.bench, c[2])
                for c in calls
            ]
            outcomes = [None if future is None else future.result() for future in running]
        results = []
        for use, call, outcome in zip(uses, calls, outcomes, strict=True):
            if isinstance(call, ToolResult):
                results.append(call)
            else:
                assert outcome is not None
                results.append(self._end(use, call[0], outcome))
        return results

    def _start(self, use: ToolUse, *, unfinished: bool) -> tuple[_Started, Tool, Input] | ToolResult:
        """Record that the call begins; or the refusal, recorded too."""
        summary = summarised(use)
        self.bench.journal.tell(ToolStarted(use.id, use.name, summary))
        with self.bench.journal.transaction():
            seq = self.audit.start(
                iteration=self.iteration,
                turn=self.turn,
                task=task.id if (task := self.bench.session.task) else None,
                tool=use.name[:200],
                arguments=use.input if use.input is not None else {},
                at=self.clock.now(),
            )
            refusal = self._over() or self.watch.before(use)
            self.log.started(use)
        self._held()
        started = _Started(seq, self.clock.monotonic(), summary)
        if unfinished:
            cut = failed(
                "the call was cut by max_tokens and not run", "send it again, whole, in smaller pieces"
            )
            return self._end(use, started, cut)
        if refusal is not None:
            if use.name in WRITES:
                self._failed = use.name  # the work is not whole: judging it would be paid for nothing
            return self._end(use, started, refusal)
        parsed = self.registry.parse(use, self.bench.session.step)
        if isinstance(parsed, ToolResult):
            return self._end(use, started, parsed)
        return started, *parsed

    def _over(self) -> ToolResult | None:
        """Nothing runs once the iteration has ended: what came after its result would be nobody's work."""
        if self.pause is not None:
            return failed("the run is pausing; this call was not run", outcome="refused")
        if self.recorded:
            return failed("the step's result is recorded already; this call was not run", outcome="refused")
        return None

    def _end(self, use: ToolUse, started: _Started, result: ToolResult, before: str = "") -> ToolResult:
        """Record the outcome. `before` is the work tree's id before a command that had failed already."""
        self.recorded = self.recorded or result.recorded
        self.note_failure(use, result.fields)
        self.pause = self.pause or result.pause
        seconds = self.clock.monotonic() - started.at
        outcome, error = _outcome(result)
        tree = self._tree_after(result)  # a process of git's: others may write to the database meanwhile
        with self.bench.journal.transaction():
            self.audit.end(
                started.seq,
                seconds=seconds,
                outcome=outcome,
                content_hash=result.content_hash,
                error=error,
            )
            notice = self.watch.after(use, result, before=before, tree=tree)
            self.bench.journal.tell(
                ToolEnded(use.id, use.name, started.summary, outcome, seconds, error[:500], started.seq)
            )
            result = replace(result, notice=notice) if notice else result
            self.log.ended(use, result)
        self._held()
        return result

    def note_failure(self, use: ToolUse, fields: Mapping[str, Any]) -> None:
        """Let what rests on a verification that failed in this turn not run."""
        if use.name.startswith("verify_") and fields.get("passed") is False:
            self._failed = use.name

    def interrupted(self, use: ToolUse) -> ToolResult:
        """Answer a call that was running when the run ended; it may have had its effect."""
        return self._answer_unrun(use, ToolResult(False, INTERRUPTED), "interrupted", "error")

    def skipped(self, use: ToolUse, why: str) -> ToolResult:
        """Answer a call that rests on one that did not succeed; it is not run and counts for no circuit.

        A completion still counts as claimed in vain, which bounds the conversation.
        """
        answer = failed(f"not run: {why}", "call it again once that is done", skipped=True)
        claims = use.name == "update_task_status" and (use.input or {}).get("status") == "complete"
        return self._answer_unrun(use, replace(answer, false_claim=claims), f"not run: {why}", "refused")

    def _answer_unrun(self, use: ToolUse, result: ToolResult, reason: str, outcome: Outcome) -> ToolResult:
        with self.bench.journal.transaction():
            self.bench.journal.tell(ToolEnded(use.id, use.name, summarised(use), outcome, 0.0, reason))
            self.log.ended(use, result)
        return result

    def _tree_after(self, result: ToolResult) -> str:
        """The work tree's id where a command failed: only failing again over the same tree is a failure."""
        return self._tree() if result.fields.get("exit_code") not in (None, 0) else ""

    def _tree(self) -> str:
        """The work tree's id, "" where there is none: the tools that need it tell the model why."""
        try:
            return self.bench.project.verifier.tree()
        except (NotEncodable, TooManyFiles):
            return ""

    def _held(self) -> None:
        """Wait out a cooldown, or pass on the pause of a circuit that wants a person."""
        self.watch.rest()
        self.pause = self.pause or self.watch.pause


@dataclass(frozen=True, slots=True)
class _Started:
    seq: int
    at: float
    summary: str


def _outcome(result: ToolResult) -> tuple[Outcome, str]:
    """Return the outcome for the audit and its error; a command that ended with another code than 0 has failed."""
    exit_code = result.fields.get("exit_code")
    if result.outcome == "ok" and exit_code not in (None, 0):
        return "failed", f"exit code {exit_code}"
    return result.outcome, str(result.fields.get("error", ""))


def summarised(use: ToolUse) -> str:
    """A call in a few words for people: its most telling argument, on one line."""
    given = use.input or {}
    for key in (
        "path",
        "command",
        "pattern",
        "task_id",
        "component",
        "name",
        "topic",
        "section",
        "message",
        "question",
    ):
        value = given.get(key)
        if isinstance(value, str):
            line = " ".join(value.split())
            return line if len(line) <= 120 else line[:117] + "..."
    return ""
