"""Watching tool calls: circuits before a call, habits after it. What it says goes to the model; what it stops, stops.

A call that trips a circuit is not executed. A cooldown is waited out in the process, with a line saying so; a
circuit that wants a person sets the pause that ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from lopen.base.clock import Clock
from lopen.base.events import GuardrailRaised, Notice, Waiting
from lopen.guardrails import discipline
from lopen.guardrails.call_history import Habits, guard_of
from lopen.guardrails.calls import HabitLimits, ToolFact
from lopen.guardrails.pipeline import circuit_events
from lopen.guardrails.shell_text import looks_like_tests
from lopen.limits.answers import ToolPass, ToolTrip
from lopen.limits.circuits.call_gate import Gate
from lopen.llm.messages import ToolUse
from lopen.storage.database import Database
from lopen.storage.journal import Journal
from lopen.tools.results import ToolResult, failed
from lopen.workflow.pauses import circuit_pause
from lopen.workflow.session import Pause

EDITS = ("write_file", "edit_file")


@dataclass
class Watch:
    """The tool-call checks of one session. `pause` is set if only a person can continue the run.

    `test_command` returns the approved verify-tests command, None if there is none yet.
    """

    gate: Gate
    journal: Journal
    database: Database
    clock: Clock
    limits: HabitLimits
    test_command: Callable[[], str | None] = lambda: None
    pause: Pause | None = None
    turn: int = 0
    _habits: Habits | None = None
    _passes: dict[str, ToolPass] = field(default_factory=dict)
    _until: datetime | None = None
    _tree: str = ""  # after the last command that failed

    @property
    def habits(self) -> Habits:
        """The counts so far, including those of earlier processes."""
        if self._habits is None:
            self._habits = self._kept()
        return self._habits

    def _kept(self) -> Habits:
        row = self.database.connection.execute(
            "SELECT body FROM habits WHERE session=?", (self.journal.session.id,)
        ).fetchone()
        try:
            return Habits.from_json(row["body"], self.limits) if row else Habits(self.limits)
        except ValueError as error:  # a guard's own trouble never stops the work
            self.journal.tell(Notice("warning", f"the counts of tool habits begin anew: {error}"))
            return Habits(self.limits)

    def begin_iteration(self, subject: str) -> None:
        """Reset the counts of one conversation for the new context; keep the others."""
        self._habits = self.habits.begin(subject)
        self.pause = None

    def begin_turn(self, turn: int) -> None:
        """Reset the limits that count by turn."""
        self.turn = turn

    def before(self, use: ToolUse) -> ToolResult | None:
        """Return None to allow the call, or the refusal for the model."""
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
            self.pause = circuit_pause(self.journal.session, trip.text, trip.command)
        elif trip.until is not None:
            self._until = trip.until

    def rest(self) -> None:
        """Wait until a cooldown ends, outside any transaction."""
        if self._until is None:
            return
        seconds = (self._until - self.clock.now()).total_seconds()
        self._until = None
        if seconds > 0:
            self.journal.tell(Waiting("a circuit cools down", seconds))
            self.clock.sleep(seconds)

    def failed_before(self, use: ToolUse) -> bool:
        """Return True if the call runs a command whose last run failed."""
        return self.habits.failing(use.name, str((use.input or {}).get("command", "")))

    def after(self, use: ToolUse, result: ToolResult, *, before: str = "", tree: str = "") -> str:
        """Count the call; return the notice that the model should get at once, "" without one.

        `tree` is the work tree's id after a failed command, `before` its id before a command that had failed already.
        They distinguish an attempted repair from files that the command itself leaves. Each costs a process.
        """
        seen = before or tree
        if seen and self._tree and seen != self._tree:
            self._habits = self.habits.moved()
        self._tree = tree or self._tree
        passed = self._passes.pop(use.id, None)
        exit_code = result.fields.get("exit_code")
        if passed is not None:
            verified = result.fields.get("passed") is True and not use.name.endswith("_completion")
            trip = self.gate.after_tool(
                passed, result.ok, exit_code=exit_code, tree=tree, passed_verify=verified
            )
            if trip is not None:
                self._tripped(trip)
        self._habits = self.habits.after(
            self._fact(use, result, exit_code, bool(before and tree and tree != before))
        )
        self._keep()
        for finding in self.habits.latest:
            self.journal.tell(
                GuardrailRaised(
                    guard_of(finding), "warn", discipline.in_words(finding), "tells the model, goes on"
                )
            )
        return self.habits.notice or ""

    def _keep(self) -> None:
        self.database.write(
            "INSERT INTO habits (session, body) VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
            (self.journal.session.id, self.habits.to_json()),
        )

    def _fact(self, use: ToolUse, result: ToolResult, exit_code: int | None, tree_changed: bool) -> ToolFact:
        given = use.input or {}
        resource = next(
            (str(given[k]) for k in ("path", "command", "section", "pattern", "topic") if given.get(k)), ""
        )
        edited = (str(given.get("path", "")),) if result.ok and use.name in EDITS else ()
        return ToolFact(
            tool=use.name,
            resource=resource,
            part=" ".join(str(given[k]) for k in ("offset", "limit", "glob", "module") if given.get(k)),
            ok=result.ok,
            exit_code=exit_code,
            content_hash=result.content_hash,
            edited=edited,
            tree_changed=tree_changed,
            is_test_run=looks_like_tests(str(given.get("command", "")), self.test_command()),
        )
