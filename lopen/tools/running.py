"""Run tool calls: the audit, the circuits and the habits around each.

The start is recorded before a tool runs, its outcome after it. A crash can leave a call without an outcome, but no
effect without a record. A call that trips a circuit is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lopen.core.clock import Clock
from lopen.core.events import GuardrailRaised, ToolEnded, ToolStarted, Waiting
from lopen.files.protection import ToolRefused
from lopen.files.workspace import Workspace
from lopen.git.errors import NotEncodable
from lopen.guardrails.call_history import CallEnd, WastefulHabit
from lopen.guardrails.habits import guard_of, in_words, notice
from lopen.limits.call_gate import CallGate, ToolPass
from lopen.limits.circuits import CallDecision
from lopen.models.messages import Json, ToolUse
from lopen.store.audit import AuditTrail, Outcome
from lopen.store.journal import Journal
from lopen.tools.calls import ToolResult, failed, refused
from lopen.tools.catalogue import Registry, Tool, rests_on_earlier_calls
from lopen.tools.workbench import Project, Workbench
from lopen.verification.runners import runs_tests
from lopen.workflow.pauses import Pause, circuit_open

TURNS_AN_ITERATION = 100_000  # more than there can be
EDITS = frozenset({"write_file", "edit_file"})
REPEATABLE = frozenset(  # run twice, these leave what they leave run once
    {"ask_user", "write_file", "write_spec", "record_dependencies", "record_components", "select_component"}
)
INTERRUPTED = {
    "interrupted": True,
    "error": "the run was interrupted while this call ran; it may have run in part or in whole",
    "hint": "look at what it left before you call it again",
}


def runs_again(tool: Tool | None, use: ToolUse, started: Json, workspace: Workspace) -> bool:
    """Return whether a call that was cut off may simply be run once more. `started` was stored as it began."""
    if tool is None:
        return False
    if tool.read_only or tool.name.startswith("verify_") or tool.name in REPEATABLE:
        return True
    return "before" in started and before_edit(use, workspace) == {"before": started["before"]}


def before_edit(use: ToolUse, workspace: Workspace) -> Json:
    """Return the hash of the file that an edit is going to change, {} if there is none.

    A file is replaced at once, so an edit that was cut off either left this hash or had its whole effect.
    """
    if use.name != "edit_file":
        return {}
    with suppress(ToolRefused, OSError):
        return {"before": workspace.read(str((use.input or {}).get("path", ""))).content_hash}
    return {}


@dataclass
class Watch:
    """The watch over one session's calls: circuits before a call, circuits and wasteful habits after it.

    It waits out a cooldown and says so; a circuit that needs a person sets `pause`, which ends the run.
    """

    gate: CallGate
    journal: Journal
    clock: Clock
    project: Project
    redact: Callable[[str], str] = str
    pause: Pause | None = None
    turn: int = 0
    _passes: dict[str, ToolPass] = field(default_factory=dict)
    _wait: tuple[float, str] = (0.0, "")  # until when, in seconds since the epoch, and why

    def begin_iteration(self, subject: str, shown: Collection[str] = ()) -> None:
        """Begin a conversation about a task's id or a planning step. `shown`: files that its prompt carries whole."""
        self.gate.begin_conversation(subject, shown)
        self.pause = None

    def begin_turn(self, turn: int) -> None:
        """Begin a turn, for the limits that count by turn."""
        self.turn = turn

    def before(self, use: ToolUse) -> ToolResult | None:
        """Return None where the call may run, else the refusal that the model gets."""
        given = use.input or {}
        writes = str(given.get("path", "")) if use.name in EDITS else ""
        answer = self.gate.before_tool(use.name, given, self.turn, use.id, writes=writes)
        if isinstance(answer, ToolPass):
            self._passes[use.id] = answer
            return None
        self._tripped(answer, summarised(use))
        return refused(answer.text(self.clock.now()), "do something else than before", circuit=answer.rule)

    def _tripped(self, trip: CallDecision, call: str) -> None:
        self.journal.tell(*trip.events(self.clock.now()))
        told = f"{trip.seen}{f' ({call})' if call else ''}"
        if trip.needs_ack:
            self.pause = circuit_open(self.journal.session.id, told, trip.command)
        elif trip.until is not None:
            self._wait = (trip.until, told)

    def rest(self) -> None:
        """Wait out a cooldown, outside any transaction."""
        (until, why), self._wait = self._wait, (0.0, "")
        seconds = until - self.clock.now().timestamp()
        if seconds > 0:
            self.journal.tell(Waiting(why, seconds))
            self.clock.sleep(seconds)

    def cut_off(self, use: ToolUse) -> None:
        """Count a call that was cut off, and is answered as interrupted, nowhere."""
        self.gate.cut_off(self.turn, use.id)

    def failed_before(self, use: ToolUse) -> bool:
        """Tell whether the call runs a command that failed when it last ran."""
        return self.gate.failed_before(use.name, use.input or {})

    def after(self, use: ToolUse, result: ToolResult, *, before: str = "", tree: str = "") -> str:
        """Count the end of the call; return the text that the model gets with the result, or "".

        `tree` is the work tree's id after a command that failed, `before` its id before a command that had
        failed earlier. A refused call is not counted.
        """
        passed = self._passes.pop(use.id, None)
        if passed is None:
            return ""
        verified = result.fields.get("passed") is True and not use.name.endswith("_completion")
        trip, habits = self.gate.after_tool(
            passed, self._end(use, result, before, tree), passed_verify=verified
        )
        if trip is not None:
            self._tripped(trip, summarised(use))
        return self._told(habits)

    def end_turn(self) -> str:
        """Return the text that the model gets after all results of a turn, or ""."""
        if self.project.test_command is None:
            return ""
        return self._told(self.gate.end_turn(self.project.has_tests))

    def _told(self, habits: tuple[WastefulHabit, ...]) -> str:
        for habit in habits:
            self.journal.tell(
                GuardrailRaised(guard_of(habit), "warn", in_words(habit), "tells the model, continues")
            )
        return notice(habits)

    def _end(self, use: ToolUse, result: ToolResult, before: str, tree: str) -> CallEnd:
        given = use.input or {}
        resource = next(
            (str(given[k]) for k in ("path", "command", "section", "pattern", "topic") if given.get(k)), ""
        )
        exit_code = result.fields.get("exit_code")
        return CallEnd(
            use.name,
            "",  # the gate knows the signature
            result.ok,
            exit_code,
            tree,
            resource=self.redact(resource),
            content_hash=result.content_hash,
            edited=(str(given.get("path", "")),) if result.ok and use.name in EDITS else (),
            tree_before=before,
            is_test_run=use.name == "run_command"
            and runs_tests(str(given.get("command", "")), result.raw or "", self.project.test_command),
        )


class CallLog(Protocol):
    """Keeps the calls of a conversation within the transactions that record them."""

    def started(self, use: ToolUse) -> None:
        """Note that the call begins."""
        ...

    def ended(self, use: ToolUse, result: ToolResult) -> None:
        """Note that the call ended with `result`."""
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
    log: CallLog  # keeps the calls for a conversation that is continued
    turn: int = 0
    pause: Pause | None = None  # a call came to a pause: no further call of the iteration runs
    recorded: bool = False  # the step's result is recorded: no further call of the iteration runs
    _failed: list[str] = field(default_factory=list)  # failed verifications and refused writes of this turn

    def begin_turn(self, turn: int) -> None:
        """Begin a turn: limits that count by turn start over."""
        self.turn = turn
        self._failed = []
        # Turns are counted anew in each iteration; to the limits, no two turns of a session are the same one.
        self.watch.begin_turn(self.bench.session.limits.iterations * TURNS_AN_ITERATION + turn)

    def run(self, uses: Sequence[ToolUse], *, unfinished: ToolUse | None = None) -> list[ToolResult]:
        """Return the result of every call, in order. `unfinished` was cut by max_tokens and is not run."""
        return [self._run_one(use, unfinished=use is unfinished) for use in uses]

    def _run_one(self, use: ToolUse, *, unfinished: bool) -> ToolResult:
        if self._failed and rests_on_earlier_calls(use.name) and self._over() is None:
            return self.skipped(use, f"{', '.join(dict.fromkeys(self._failed))} failed in this turn")
        started, refusal = self._start(use)
        if unfinished:
            refusal = failed(
                "the call was cut by max_tokens and not run", "send it again, whole, in smaller pieces"
            )
        elif refusal is not None and use.name in EDITS:
            self._failed.append(use.name)  # the work is not whole: judging it would be paid for nothing
        if refusal is not None:
            return self._end(use, started, refusal)
        before = self._tree() if self.watch.failed_before(use) else ""
        return self._end(use, started, self.registry.run(use, self.bench), before)

    def _start(self, use: ToolUse) -> tuple[_Started, ToolResult | None]:
        """Record that the call begins, and return the refusal where it may not run."""
        summary = summarised(use)
        self.bench.journal.tell(ToolStarted(use.id, use.name, summary))
        with self.bench.journal.transaction():
            seq = self.audit.start(
                iteration=self.bench.session.limits.iterations,
                turn=self.turn,
                task=task.id if (task := self.bench.session.task) else None,
                tool=use.name[:200],
                arguments=use.input if use.input is not None else {},
                at=self.bench.clock.now(),
            )
            refusal = self._over() or self.watch.before(use)
            self.log.started(use)
        self._held()
        return _Started(seq, self.bench.clock.monotonic(), summary), refusal

    def _over(self) -> ToolResult | None:
        """Return the refusal of a call after the end of the iteration: no task would own its work."""
        if self.pause is not None:
            return refused("the run is pausing; this call was not run")
        if self.recorded:
            return refused("the step's result is recorded already; this call was not run")
        return None

    def _end(self, use: ToolUse, started: _Started, result: ToolResult, before: str = "") -> ToolResult:
        """Record the outcome. `before` is the work tree's id before a command that had failed already."""
        self.recorded = self.recorded or result.recorded
        self.note_failure(use, result.fields)
        self.pause = self.pause or result.pause
        seconds = self.bench.clock.monotonic() - started.at
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
        """Note a failed command or verification: the calls of this turn that rest on it are not run."""
        if (use.name == "run_command" and fields.get("exit_code", 0) != 0) or (
            use.name.startswith("verify_") and fields.get("passed") is False
        ):
            self._failed.append(use.name)

    def interrupted(self, use: ToolUse) -> ToolResult:
        """Answer a call that was running when the run ended; it may have had its effect."""
        self.watch.cut_off(use)
        return self._answer_unrun(use, ToolResult(False, INTERRUPTED), "interrupted", "error")

    def skipped(self, use: ToolUse, why: str) -> ToolResult:
        """Answer a call that is not run because an earlier call of its turn failed; it counts for no circuit.

        A completion still counts as claimed in vain, which ends the conversation in time.
        """
        answer = failed(f"not run: {why}", "call it again once that is mended", skipped=True)
        claims = use.name == "update_task_status" and (use.input or {}).get("status") == "complete"
        return self._answer_unrun(use, replace(answer, false_claim=claims), f"not run: {why}", "refused")

    def _answer_unrun(self, use: ToolUse, result: ToolResult, reason: str, outcome: Outcome) -> ToolResult:
        with self.bench.journal.transaction():
            self.bench.journal.tell(ToolEnded(use.id, use.name, summarised(use), outcome, 0.0, reason))
            self.log.ended(use, result)
        return result

    def _tree_after(self, result: ToolResult) -> str:
        """Return the work tree's id where a command failed: only failing again over the same tree is a failure."""
        return self._tree() if result.fields.get("exit_code") not in (None, 0) else ""

    def _tree(self) -> str:
        """Return the work tree's id, "" where there is none: the tools that need it tell the model why."""
        try:
            return self.bench.project.verifier.tree()
        except NotEncodable:
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
    """Return the most telling argument of a call, on one line for people."""
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
