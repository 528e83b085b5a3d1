"""One conversation: model ↔ tools until the step's result is recorded, or until there is a reason to stop.

A response counts only when it is whole; every tool call of it gets its result, in order. What ends a
conversation is a value (`Outcome`); its effect on the session is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lopen.core.errors import LopenError
from lopen.core.events import GuardrailRaised, ModelInput, ModelText
from lopen.guardrails.completion import missing
from lopen.guardrails.guard import times
from lopen.guardrails.premature_stops import detect_stop, nudge
from lopen.guardrails.repeated_failures import ENDED_EARLY
from lopen.loop.guidance import take_guidance
from lopen.loop.model_calls import CallPaused, ModelCall, ModelCalls
from lopen.loop.transcript import Resumed, Transcript, TurnCounts, say, still_refused
from lopen.models.messages import ContextTooLong, Json, Request, Response, ToolUse
from lopen.models.recording import result_fields
from lopen.models.request_body import can_stand_last, cut_call, sendable
from lopen.store.journal import ConversationStore, requested
from lopen.tools.calls import ToolResult, tool_result
from lopen.tools.catalogue import rests_on_earlier_calls
from lopen.tools.running import ToolRunner, before_edit
from lopen.tools.workbench import Workbench
from lopen.workflow.next_step import Outcome
from lopen.workflow.pauses import Pause, pause_asked_for
from lopen.workflow.session import MAX_CLARIFICATIONS
from lopen.workflow.steps import PLANNING_STEPS, Step

MAX_FALSE_CLAIMS = 5  # then a fresh context serves better; an honest try that failed to verify counts too
MAX_PLANNING_TURNS = 40  # of a step that only reads; building has its circuits, step 1 is conversation
MAX_NUDGES = 2  # times that a model which stops too early is told to go on
MAX_CONTINUES = 3  # an answer cut by max_tokens goes on, at most this often
GO_ON = "Go on where you stopped."
CUT = "Your answer was cut by the token limit. Go on where it stopped, with a tool call."


@dataclass(frozen=True)
class AskedModel:
    """The model of a conversation: how it is asked, for which agent, and the rest of its budgets.

    `request` holds system, tools and model, the same in every turn.
    """

    calls: ModelCalls
    request: Request
    agent: str
    left: Callable[[], str]  # in words, once half of a budget is used


@dataclass
class Conversation:
    """The messages of one iteration and the counts that bound it."""

    bench: Workbench
    model: AskedModel
    runner: ToolRunner
    transcript: Transcript
    subject: str  # the task in progress, or the step, as the conversation began
    counts: TurnCounts = field(default_factory=TurnCounts)
    resumed: Resumed | None = None  # the conversation is continued: its last response may not be answered yet

    def run(self) -> Outcome:
        """Converse turn by turn until there is an outcome."""
        while True:
            resumed, self.resumed = self.resumed, None
            unanswered = resumed.response if resumed is not None else None
            if resumed is not None and unanswered is None:
                self._say(resumed.notice)
            self.counts.turn += unanswered is None
            self.runner.begin_turn(self.counts.turn)
            try:
                if unanswered is not None:
                    outcome = self._answered(unanswered, resumed)
                else:
                    outcome = (self._heard() if resumed is None else None) or self._turn()
            except CallPaused as held:
                outcome = _paused(held.pause)
                self.transcript.stopped()
            if outcome is None and self.counts.turn >= MAX_PLANNING_TURNS and self._planning():
                outcome = Outcome("failed", f"{self.counts.turn} turns brought no result of the step")
            if outcome is not None:
                refused = still_refused(self.transcript.messages)
                outcome = replace(outcome, refused=refused, counted=self.bench.evidence.counted)
                return replace(outcome, turns=self.counts.answers, subject=self.subject)
            if resumed is not None and unanswered is not None:
                self._say(resumed.notice)

    def _heard(self) -> Outcome | None:
        """Tell the model what a person said meanwhile; return the pause that they asked for."""
        journal, session = self.bench.journal, self.bench.session.id
        asked = requested(journal.database, session)
        if any(request.kind == "tell" for request in asked):
            with journal.transaction():
                self._say("\n".join(take_guidance(journal)))
        paused = next((request for request in asked if request.kind == "pause"), None)
        return _paused(pause_asked_for(session, paused.body.get("why", ""))) if paused else None

    def _planning(self) -> bool:
        step = self.bench.session.step
        return step in PLANNING_STEPS and step is not Step.DRAFT_SPECIFICATION

    def _turn(self) -> Outcome | None:
        try:
            request = replace(self.model.request, messages=tuple(self.transcript.messages))
            call = ModelCall(request, self.model.agent, self.counts.turn, self._streamed, self._keep)
            response = self.model.calls.ask(call)
        except ContextTooLong as error:
            return Outcome("overflow", error.message)
        return self._answered(response)

    def _streamed(self, text: str, tool: str = "") -> None:
        self.bench.journal.tell(ModelInput(tool, text) if tool else ModelText(text))

    def _keep(self, response: Response) -> None:
        """Take in a whole response, stored before the first of its tools runs."""
        self.counts.answers += 1
        self.counts.tool_calls += len(response.tool_uses)
        self.transcript.keep(response, self.counts)

    def _answered(self, response: Response, resumed: Resumed | None = None) -> Outcome | None:
        match response.stop_reason:
            case "refusal":
                return Outcome("failed", "the model refused to answer")
            case "model_context_window_exceeded":
                return Outcome("overflow", "the context window is full")
        if response.tool_uses:
            return self._use_tools(response, resumed)
        if response.stop_reason in ("max_tokens", "pause_turn"):
            return self._go_on(response)
        return self._nudge(response)

    def _say(self, text: str) -> None:
        """Add text of lopen's own to the conversation."""
        if text:
            self.transcript.say(text, self.counts)

    def _use_tools(self, response: Response, resumed: Resumed | None) -> Outcome | None:
        """Run every call of the turn, in order.

        Of a continued turn the results that are stored stay, and calls that were cut off are answered as interrupted.
        """
        cut = cut_call(response)
        blocks: dict[str, Json] = dict(resumed.results) if resumed else {}
        for use in response.tool_uses if resumed else ():
            if use.id in blocks:
                self.runner.note_failure(use, result_fields(blocks[use.id]))
            if resumed and use.id in resumed.cut_off:
                blocks[use.id] = tool_result(use, self.runner.interrupted(use))
            elif resumed and resumed.cut_off and use.id not in blocks and rests_on_earlier_calls(use.name):
                blocks[use.id] = tool_result(
                    use, self.runner.skipped(use, "an earlier call of this turn was interrupted")
                )
        left = [use for use in response.tool_uses if use.id not in blocks]
        answers = self.runner.run(left, unfinished=cut)
        blocks |= {use.id: tool_result(use, answer) for use, answer in zip(left, answers, strict=True)}
        say(self.transcript.messages, "user", [blocks[use.id] for use in response.tool_uses])
        with self.bench.journal.transaction():
            self._say(self.runner.watch.end_turn())
        if self.runner.pause is not None:
            return _paused(self.runner.pause)
        if self.runner.recorded:
            return Outcome("recorded")
        self.counts.false_claims += any(answer.false_claim for answer in answers)
        if self.counts.false_claims >= MAX_FALSE_CLAIMS:
            said = times(self.counts.false_claims)
            return Outcome("failed", f"completion was claimed {said} without its verifications")
        self._say(self.model.left())
        return self._count_continue(response) if response.stop_reason == "max_tokens" else None

    def _go_on(self, response: Response) -> Outcome | None:
        """`max_tokens` and `pause_turn` go on, a bounded number of times."""
        if response.stop_reason == "max_tokens":
            self._say(CUT)
        elif not can_stand_last(sendable(response.content)):
            self._say(GO_ON)
        return self._count_continue(response)

    def _count_continue(self, response: Response) -> Outcome | None:
        self.counts.continues += 1
        if self.counts.continues > MAX_CONTINUES:
            return Outcome("failed", f"the model's answers ended in {response.stop_reason} again and again")
        return None

    def _nudge(self, response: Response) -> Outcome | None:
        """A turn ended without the step's result: name the missing result, a bounded number of times."""
        session = self.bench.session
        if session.step is Step.DRAFT_SPECIFICATION and self._specified():
            return Outcome("recorded")
        stop = detect_stop(response.text, step=session.step, tool_calls_made=self.counts.tool_calls)
        said_nothing = "no text" if stop.kind == "empty" else "no tool call and no result"
        seen = f"{stop.kind}: {stop.evidence}" if stop.evidence else said_nothing
        if self.counts.nudges >= MAX_NUDGES:
            return Outcome("failed", f"{ENDED_EARLY} ({seen})")
        self.counts.nudges += 1
        self.bench.journal.tell(
            GuardrailRaised(
                "premature_stop", "warn", seen, f"reminder {self.counts.nudges} of {MAX_NUDGES} sent"
            )
        )
        said = nudge(
            stop,
            self._lacking(),
            n=self.counts.nudges,
            of=MAX_NUDGES,
            task_id=session.task.id if session.task else "",
            may_ask=not self.bench.settings.workflow.unattended
            and session.dialogue.clarifications < MAX_CLARIFICATIONS,
        )
        self._say(said)
        return None

    def _specified(self) -> bool:
        """Step 1 ends too where a turn leaves a specification that passes `lopen check`."""
        try:
            return not self.bench.project.load_spec(self.bench.session.module).problems
        except LopenError:
            return False

    def _lacking(self) -> tuple[str, ...]:
        """The verifications that the task in progress still lacks."""
        if self.bench.session.step is not Step.ITERATE_THROUGH_TASKS:
            return ()
        return missing("task", self.bench.project.verifier.commands, self.bench.fresh)


def _paused(pause: Pause) -> Outcome:
    return Outcome("paused", pause.message, pause)


@dataclass(frozen=True)
class StoredCalls:
    """Keeps the calls of a conversation in its store, with the evidence they left."""

    store: ConversationStore
    bench: Workbench

    def started(self, use: ToolUse) -> None:
        self.store.add("started", {"id": use.id, **before_edit(use, self.bench.project.workspace)})

    def ended(self, use: ToolUse, result: ToolResult) -> None:
        self.store.add(
            "result",
            {
                "id": use.id,
                "ok": result.ok,
                "recorded": result.recorded,
                "block": tool_result(use, result),
                "evidence": self.bench.evidence.to_json(),
            },
        )
