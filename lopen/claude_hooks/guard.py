"""The effects of each event on the budgets and circuits of its Claude Code session.

All changes of an event, its place in the transcripts included, are one transaction. If it cannot be stored, the same
part is read again with the next event. So nothing is lost and nothing counted twice.
"""

from __future__ import annotations

from dataclasses import replace

from lopen.claude_hooks import answers
from lopen.claude_hooks.answers import Answer
from lopen.claude_hooks.calls import CallGuard
from lopen.claude_hooks.session import LAST_PARTS, HookSession
from lopen.claude_hooks.settings import TASK_TYPES
from lopen.limits.agents import OVERRIDE
from lopen.limits.budget import NEAR_LIMIT
from lopen.limits.records import Incident

NOT_A_PERSON = "<task-notification>"  # the client submits these by itself
TYPE_COMMAND = "/lopen-type"


class SessionGuard:
    """One event of one session, inside one transaction."""

    def __init__(self, session: HookSession, root: str, nested_in: str | None) -> None:
        """`nested_in`: the session inside whose hook this process runs; None outside of every hook."""
        self.session = session
        self.rows = session.rows
        self.event = session.event
        self.memo = session.memo
        self.spending = session.spending
        self.agents = session.agents
        self.calls = CallGuard(session, root, nested_in)

    def run(self, name: str) -> Answer:
        """Return the answer to the event `name`."""
        self.spending.catch_up(LAST_PARTS if name == "session-end" else 1)
        tripped = self.calls.failures_in_transcript()
        answer = {
            "pre-tool-use": self.calls.before,
            "post-tool-use": self.calls.after,
            "post-tool-use-failure": self.calls.after,
            "post-tool-batch": self.calls.batch_ended,
            "user-prompt-submit": self.prompted,
            "session-start": self.started,
            "session-end": self.ended,
            "stop": self.stopping,
            "subagent-start": self.agent_started,
            "subagent-stop": self.agent_stopped,
            "pre-compact": Answer,
        }[name]()
        if tripped and not answer.block:
            answer = replace(answer, block=tripped)
        recovered = self._recovered(held=bool(answer.block or answer.stop))
        self.rows.put_memo(f"hooks:{self.event.session}", self.memo)
        warned = [
            alert
            for alert in self.spending.alerts
            if alert.alert_type == "warning_threshold" and not (alert.utilization and self.spending.paused)
        ]
        for_model = (answers.warning(alert, self.spending.budgets) for alert in warned)
        for_person = (f"lopen: {alert.message}" for alert in warned)
        return replace(
            answer,
            context=(*for_model, *answer.context),
            tell=(*answer.tell, *recovered, *for_person),
        )

    def _recovered(self, *, held: bool) -> tuple[str, ...]:
        """Said once after a person's command, or the end of a cooldown, lets held work go on."""
        circuit = self.session.circuit()
        waits = self.spending.paused is not None or circuit.tripped
        if waits or held:
            self.memo["held"] = self.memo.get("held", False) or held
            return ()
        if not self.memo.pop("held", False):
            return ()
        return (answers.recovered(self.spending.session, circuit),)

    # the session's own events

    def prompted(self) -> Answer:
        """A person asks for something, or the client tells of a task in the background that ended."""
        words = self.event.prompt.split()
        if words[:1] != [NOT_A_PERSON] and not self.event.prompt.startswith(NOT_A_PERSON):
            self.memo["prompts"] = int(self.memo.get("prompts", 0)) + 1
            self.memo["lifted"] = OVERRIDE in self.event.prompt
        elif self.memo.get("lifted"):
            words = []
        if paused := self.spending.paused:
            return Answer(answers.exhausted(paused))
        circuit = self.session.circuit()
        if circuit.tripped and circuit.needs_ack and circuit.holds_all:
            return Answer(answers.waits_for_ack(circuit))
        tell: tuple[str, ...] = ()
        if self.memo.get("lifted") and OVERRIDE in self.event.prompt and words:
            self.rows.add_incident(
                Incident(self.session.id, "override", f"{OVERRIDE} in the prompt", self.session.now)
            )
            tell = (f"{OVERRIDE}: the limits on starting sub-agents are lifted until the next prompt",)
        if words[:1] == [TYPE_COMMAND]:
            tell = (*tell, self._typed(words[1:]))
        session = self.spending.session
        lines = [
            f"## Budget Status\n{answers.budget_line(session)}\n{answers.circuit_line(circuit, self.session.book)}"
        ]
        if session.utilization >= session.spec.alert_threshold or circuit.state != "closed":
            lines.append(NEAR_LIMIT)
        return Answer(context=tuple(lines), tell=tell)

    def _typed(self, words: list[str]) -> str:
        if len(words) != 1 or words[0] not in TASK_TYPES:
            return f"lopen: {TYPE_COMMAND} takes one of {', '.join(TASK_TYPES)}"
        return f"lopen: a task of type {words[0]} begins. {answers.budget_line(self.spending.begin_task(words[0]))}"

    def started(self) -> Answer:
        """A session starts, goes on, or is compacted."""
        self.session.pending.clear()
        if self.event.source != "compact":
            self.agents.clear()
        session = self.spending.session
        text = (
            "lopen guards this session: token budget, circuit breaker, limits on sub-agents and external calls."
            f" {NEAR_LIMIT}\n{answers.budget_line(session)}"
        )
        tell = answers.guarded(session, self.session.circuit(), self.session.limits)
        held = (f"lopen: {answers.exhausted(paused)}",) if (paused := self.spending.paused) else ()
        return Answer(context=(text,), tell=(tell, *held))

    def ended(self) -> Answer:
        """End a session; the rest of its transcripts is counted by now."""
        self.agents.clear()
        return Answer()

    def stopping(self) -> Answer:
        """A turn ends. Where the settings say so, a stop without a reason is held back once."""
        if self.event.background is not None:
            self.agents.only(self.event.background)
        if not self.session.settings["hooks"]["check_stops"] or self.event.held_back or self.spending.paused:
            return Answer()
        # late: most events need no phrases
        from lopen.guardrails.premature_stops import OBSERVATIONS, detect_stop
        from lopen.workflow.steps import Step

        stop = detect_stop(self.event.closing, step=Step.REPEAT)
        if stop.kind not in ("permission", "status", "claim"):
            return Answer()
        said = f" (“{stop.evidence}”)" if stop.evidence else ""
        return Answer(f"{OBSERVATIONS[stop.kind].format(said=said).capitalize()}.")

    def agent_started(self) -> Answer:
        """A sub-agent begins."""
        if self.event.agent:
            self.agents.started(self.event.agent, self.session.now.timestamp())
        return Answer()

    def agent_stopped(self) -> Answer:
        """A sub-agent is done."""
        if self.event.agent:
            self.agents.ended(self.event.agent)
        return Answer()
