"""Asking a model: the one place where a request is paid for.

Reserve, send (with retries and fallbacks), settle: a budget is checked before a call and settled with the
real usage after it. A request that failed before its answer began is not charged; an answer that broke off is charged as far
as it came, and the next attempt is reserved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lopen.core.clock import Clock
from lopen.core.errors import LopenError, StorageError
from lopen.core.events import Event, Notice, TurnEnded, TurnStarted, Waiting
from lopen.limits.budget import CONFIRMATION
from lopen.limits.call_gate import ToolPass
from lopen.limits.circuits import LATER, CallDecision
from lopen.limits.meter import BudgetReached, Grant, Meter
from lopen.models.messages import (
    ContextTooLong,
    Model,
    ModelError,
    OnText,
    Rejected,
    Request,
    Response,
    Unavailable,
    Usage,
    unheard,
    usage_doubt,
)
from lopen.models.prices import cost_usd
from lopen.models.prompts.sizes import RequestSizes
from lopen.models.retry import Retries, TrackedModel
from lopen.store.journal import Journal, requested
from lopen.workflow.pauses import (
    Pause,
    budget_reached,
    circuit_open,
    endpoint_unreachable,
    pause_asked_for,
)


class CallPaused(Exception):
    """No request may be made, or none brings an answer, until a person or time changes that."""

    def __init__(self, pause: Pause) -> None:
        super().__init__(pause.message)
        self.pause = pause


class ModelRejected(LopenError):
    """The endpoint refuses the request in every form (exit 1; the session is saved)."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request, with the agent and turn that it is charged to.

    `on_response` gets the response within the transaction that records its charge.
    """

    request: Request
    agent: str
    turn: int = 0
    on_text: OnText = unheard
    on_response: Callable[[Response], None] = lambda _: None


@dataclass
class ModelCalls:
    """Sends requests for one session, one at a time."""

    model: Model
    fallbacks: Sequence[str]
    retries: Retries
    meter: Meter
    journal: Journal
    clock: Clock
    _sizes: RequestSizes = field(default_factory=RequestSizes)
    _told: set[str] = field(default_factory=set)  # warnings

    def connect(self) -> None:
        """Raise the reason not to ask the model, before anything is changed for it."""
        self.model.connect()

    def ask(self, call: ModelCall) -> Response:
        """Return the whole response, charged and recorded.

        Raises `CallPaused`, `ContextTooLong` or `ModelRejected`.
        """
        # A judgement is one call, however much it reads.
        begins = call.agent == "oracle" and len(call.request.messages) == 1
        leave = self._leave_for_external(call.turn) if begins else None
        if call.agent == "research" and (dear := self.meter.gate.spending()):
            raise self._held_by(dear)
        try:
            return self._paid(call)
        finally:  # the gate hears of every call's end
            if leave is not None:
                self.meter.gate.external_done(leave)

    def _paid(self, call: ModelCall) -> Response:
        grant = self._reserved(call)
        if not grant.sure:
            self.journal.check_writable()  # nothing is paid for that cannot be kept
        request = replace(call.request, max_tokens=grant.max_tokens)
        call = replace(call, request=request)
        self.journal.tell(TurnStarted(call.turn, request.model, request.max_tokens))
        started = self.clock.monotonic()

        def keep(model: str, usage: Usage) -> None:
            nonlocal grant
            grant = self.meter.streamed(grant, usage, cost_usd(model, usage))

        def broken(model: str, usage: Usage) -> int:
            nonlocal grant
            keep(model, usage)
            self.journal.tell(*self.meter.cut_off(grant))
            grant = self._reserved(call)
            return grant.max_tokens

        def told(event: Event) -> None:
            self.journal.tell(event)
            session = self.journal.session.id
            for request in requested(self.journal.database, session, "pause"):
                raise CallPaused(pause_asked_for(session, request.body.get("why", "")))

        tries = TrackedModel(self.model, keep, broken, self.clock)
        try:
            response = self.retries.ask(tries, request, call.on_text, told, self._fallbacks())
        except ModelError as error:
            self.meter.abandon(grant)
            raise self._translated(error) from error
        except BaseException:
            if not tries.under_way:
                self.meter.abandon(grant)
            else:
                with suppress(StorageError):  # else the next process charges the kept use
                    tries.keep_use()
                    self.journal.tell(*self.meter.cut_off(grant))
            raise
        self._settle(grant, call, response, self.clock.monotonic() - started)
        return response

    def _fallbacks(self) -> list[str]:
        """Return the fallbacks; with a limit on cost only models with a known price, without which it would not hold."""
        unpriced = {n for n in self.fallbacks if self.meter.max_cost > 0 and cost_usd(n, Usage()) is None}
        if unpriced:
            said = f"not used as fallbacks, since their price is not known: {', '.join(sorted(unpriced))}"
            self.journal.tell(*self._first_time(said))
        return [name for name in self.fallbacks if name not in unpriced]

    def _reserved(self, call: ModelCall) -> Grant:
        request = call.request
        try:
            estimate = self._sizes.estimate(request, self.clock.monotonic())

            def quote(answer_tokens: int) -> float | None:
                return cost_usd(request.model, replace(estimate, output_tokens=answer_tokens))

            grant = self.meter.reserve(estimate.billed(), request.max_tokens, call.agent, quote)
        except BudgetReached as reached:
            self.journal.tell(*reached.events)
            confirms = reached.crossing == CONFIRMATION
            session = self.journal.session.id
            pause = budget_reached(session, reached.message, reached.command, confirms=confirms)
            raise CallPaused(pause) from reached
        self.journal.tell(*grant.events)
        return grant

    def _translated(self, error: ModelError) -> Exception:
        match error:
            case Unavailable():
                return CallPaused(endpoint_unreachable(self.journal.session.id, error.message, error.until))
            case Rejected():
                return ModelRejected(error.message, hint=error.hint)
            case ContextTooLong():
                return error
            case _:
                return CallPaused(endpoint_unreachable(self.journal.session.id, error.message))

    def _settle(self, grant: Grant, call: ModelCall, response: Response, seconds: float) -> None:
        usage = self._sizes.settled(call.request, response.usage, self.clock.monotonic())
        cost = cost_usd(response.model, usage)

        def record() -> None:
            told = self.meter.settle(grant, usage, cost, response.model)
            call.on_response(response)
            self.journal.tell(
                TurnEnded(
                    call.turn,
                    response.model,
                    response.stop_reason,
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.cache_read_tokens,
                    usage.cache_write_tokens,
                    cost,
                    seconds,
                    response.text[:4_000],
                    call.request.purpose,
                ),
                *told,
                *self._first_time(usage_doubt(usage)),
            )

        self.journal.patiently(record)

    def _first_time(self, warning: str) -> Iterator[Notice]:
        """Yield a warning that this process has not given yet."""
        if warning and warning not in self._told:
            self._told.add(warning)
            yield Notice("warning", warning)

    def _leave_for_external(self, turn: int) -> ToolPass:
        """lopen's own calls wait for their turn in the window of external calls."""
        while True:
            answer = self.meter.gate.external_call(turn)
            if isinstance(answer, ToolPass):
                return answer
            if answer.needs_ack or answer.until is None:
                raise self._held_by(answer)
            self._tell(answer)
            self._wait_for(answer)

    def start_agent(self, agent_id: str, turn: int) -> CallDecision | None:
        """Start a sub-agent, its turn waited for; what refuses it is told and given back."""
        while isinstance(answer := self.meter.gate.spawn_agent(agent_id, turn), CallDecision):
            self._tell(answer)
            if answer.kind != LATER or answer.until is None:
                return answer
            self._wait_for(answer)
        return None

    def _held_by(self, trip: CallDecision) -> CallPaused:
        """Only a person lets this go on; the trip is told."""
        self._tell(trip)
        return CallPaused(circuit_open(self.journal.session.id, trip.seen, trip.command))

    def _tell(self, trip: CallDecision) -> None:
        self.journal.tell(*trip.events(self.clock.now()))

    def _wait_for(self, trip: CallDecision) -> None:
        """Wait in the process, with a line saying so; for a moment at least, or a limit that is lifted now would spin."""
        now = self.clock.now()
        seconds = max(0.1, (trip.until or 0.0) - now.timestamp())
        self.journal.tell(Waiting(trip.seen, seconds))
        self.clock.sleep(seconds)
