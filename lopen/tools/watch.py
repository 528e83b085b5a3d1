"""The watch over tool calls: circuits before a call, circuits and wasteful habits after it.

A call that trips a circuit is not executed. The watch waits out a cooldown and says so; a circuit that needs
a person sets the pause that ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from lopen.core.clock import Clock
from lopen.core.events import GuardrailRaised, Waiting
from lopen.guardrails.call_history import CallEnd, WastefulHabit
from lopen.guardrails.habits import guard_of, in_words, notice
from lopen.guardrails.pipeline import circuit_events
from lopen.limits.call_gate import CallGate, ToolPass, ToolTrip
from lopen.models.messages import ToolUse
from lopen.store.journal import Journal
from lopen.tools.calls import ToolResult, failed
from lopen.tools.workbench import Project
from lopen.verification.runners import failed_tests, runs_tests
from lopen.workflow.pauses import Pause, circuit_open

EDITS = ("write_file", "edit_file")


@dataclass
class Watch:
    """The watch of one session. `pause` is set where only a person lets the run continue."""

    gate: CallGate
    journal: Journal
    clock: Clock
    project: Project
    redact: Callable[[str], str] = str
    pause: Pause | None = None
    turn: int = 0
    _passes: dict[str, ToolPass] = field(default_factory=dict)
    _until: datetime | None = None

    def begin_iteration(self, subject: str, shown: Collection[str] = ()) -> None:
        """Begin a conversation about a task's id or a planning step. `shown`: files that its prompt carries whole."""
        self.gate.begin_conversation(subject, shown)
        self.pause = None

    def begin_turn(self, turn: int) -> None:
        """Begin a turn, for the limits that count by turn."""
        self.turn = turn

    def before(self, use: ToolUse) -> ToolResult | None:
        """Return None where the call may run, else the refusal that the model gets."""
        answer = self.gate.before_tool(use.name, use.input or {}, self.turn)
        if isinstance(answer, ToolPass):
            self._passes[use.id] = answer
            return None
        self._tripped(answer)
        return failed(answer.text, "do something else than before", outcome="refused", circuit=answer.rule)

    def _tripped(self, trip: ToolTrip) -> None:
        lines = circuit_events(trip.events, needs_ack=trip.needs_ack, until=trip.until, now=self.clock.now())
        self.journal.tell(*trip.events, *lines)
        if trip.needs_ack:
            self.pause = circuit_open(self.journal.session.id, trip.text, trip.command)
        elif trip.until is not None:
            self._until = trip.until

    def rest(self) -> None:
        """Wait out a cooldown, outside any transaction."""
        if self._until is None:
            return
        seconds = (self._until - self.clock.now()).total_seconds()
        self._until = None
        if seconds > 0:
            self.journal.tell(Waiting("a circuit cools down", seconds))
            self.clock.sleep(seconds)

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
            self._tripped(trip)
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
            is_test_run=runs_tests(str(given.get("command", "")), self.project.test_command),
            failed_tests=failed_tests(str(result.raw or result.fields.get("output", "")))
            if exit_code
            else (),
        )
