"""Traces of a session for OpenTelemetry: session → iteration → turn → request and tool calls. No content is sent.

Off unless `telemetry.endpoint` names a collector; needs the extra `lopen[otel]`. See docs/reference/server.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lopen import __version__
from lopen.core.errors import LopenError
from lopen.core.events import (
    IterationEnded,
    IterationStarted,
    Recorded,
    SessionComplete,
    SessionFailed,
    SessionPaused,
    SessionStarted,
    Subscriber,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from lopen.core.extras import install_command
from lopen.workflow.steps import Step, phase_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

# Names of OpenTelemetry's semantic conventions for generative AI, and lopen's own
# (https://opentelemetry.io/docs/specs/semconv/gen-ai/)
SERVICE = "lopen"
INVOKE_WORKFLOW, INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_workflow", "invoke_agent", "chat", "execute_tool"
PROVIDER, FUNCTION = "anthropic", "function"

OPERATION = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
CONVERSATION_ID = "gen_ai.conversation.id"
WORKFLOW_NAME = "gen_ai.workflow.name"
AGENT_NAME = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

MODULE = "lopen.module"
STEP = "lopen.step"
ITERATION = "lopen.iteration"
TURN = "lopen.turn"
TASK = "lopen.task"
OUTCOME = "lopen.outcome"
COST_USD = "lopen.cost_usd"

PATH = "/v1/traces"
EXPORT_TIMEOUT_S = 5


@contextmanager
def traced(endpoint: str) -> Iterator[tuple[Subscriber, ...]]:
    """Yield the subscriber that sends traces to the collector at `endpoint`; none where it is empty.

    A collector that does not answer loses its traces and nothing else.

    Raises:
        LopenError: the extra is not installed.
    """
    if not endpoint:
        yield ()
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise LopenError(
            f"telemetry.endpoint is set, and {error.name} is not installed", hint=install_command("otel")
        ) from error
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it has no say in a run's output
    resource = Resource.create({"service.name": SERVICE, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + PATH, timeout=EXPORT_TIMEOUT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    spans = SessionSpans(provider.get_tracer(SERVICE, __version__))
    try:
        yield (spans,)
    finally:
        spans.close()
        provider.shutdown()


class SessionSpans:
    """A subscriber that opens and ends spans as events come. Spans that are open at the end of the run end then."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: list[tuple[str, Span]] = []  # from the session inwards
        self._last: datetime | None = None

    def __call__(self, recorded: Recorded) -> None:
        at, self._last = recorded.ts, recorded.ts
        match recorded.event:
            case SessionStarted(module, step, resumed):
                own = {
                    WORKFLOW_NAME: module,
                    MODULE: module,
                    STEP: step,
                    "lopen.resumed": resumed,
                }
                own[CONVERSATION_ID] = recorded.session
                self._begin("session", f"{INVOKE_WORKFLOW} {module}", at, INVOKE_WORKFLOW, own)
            case IterationStarted(number, step, model, _, task):
                agent = "builder" if phase_of(Step(step)) == "building" else "planner"
                own = {AGENT_NAME: agent, STEP: step, ITERATION: number, TASK: task}
                own |= {REQUEST_MODEL: model, CONVERSATION_ID: recorded.session}
                self._begin("iteration", f"{INVOKE_AGENT} {agent}", at, INVOKE_AGENT, own)
            case TurnStarted(turn, _, _):
                self._begin("turn", f"turn {turn}", at, "", {TURN: turn})
            case TurnEnded() as ended:
                self._request(ended, at)
            case ToolEnded() as ended:
                self._tool(ended, at)
            case IterationEnded(_, outcome, _):
                self._end("iteration", at, {OUTCOME: outcome})
            case SessionPaused(kind, _, _):
                self._end("session", at, {OUTCOME: f"paused: {kind}"})
            case SessionComplete():
                self._end("session", at, {OUTCOME: "complete"})
            case SessionFailed():
                self._end("session", at, {OUTCOME: "failed", ERROR_TYPE: "failed"})

    def _begin(self, kind: str, name: str, at: datetime, operation: str, own: dict[str, Any]) -> None:
        self._end(kind, at, {})
        span = self._span(name, at, operation, own)
        self._open.append((kind, span))

    def _span(
        self, name: str, at: datetime, operation: str, own: dict[str, Any], *, call: bool = False
    ) -> Span:
        from opentelemetry.trace import SpanKind, set_span_in_context

        parent = set_span_in_context(self._open[-1][1]) if self._open else None
        attributes = own | ({OPERATION: operation} if operation else {})
        kind = SpanKind.CLIENT if call else SpanKind.INTERNAL
        return self._tracer.start_span(name, parent, kind, attributes, start_time=_ns(at))

    def _end(self, kind: str, at: datetime, own: dict[str, Any]) -> None:
        """End the open span of this kind, and those inside it first."""
        if kind not in [opened for opened, _ in self._open]:
            return
        while self._open:
            opened, span = self._open.pop()
            if opened == kind:
                span.set_attributes(own)
            span.end(_ns(at))
            if opened == kind:
                return

    def _request(self, ended: TurnEnded, at: datetime) -> None:
        own: dict[str, Any] = {
            PROVIDER_NAME: PROVIDER,
            REQUEST_MODEL: ended.model,
            RESPONSE_MODEL: ended.model,
            FINISH_REASONS: (ended.stop_reason,),
            INPUT_TOKENS: ended.input_tokens + ended.cache_read_tokens + ended.cache_write_tokens,
            OUTPUT_TOKENS: ended.output_tokens,
            CACHE_READ_TOKENS: ended.cache_read_tokens,
            CACHE_WRITE_TOKENS: ended.cache_write_tokens,
        }
        if ended.cost_usd is not None:
            own[COST_USD] = ended.cost_usd
        name = f"{CHAT} {ended.model}"
        begun = at - timedelta(seconds=ended.seconds)
        self._span(name, begun, CHAT, own, call=True).end(_ns(at))

    def _tool(self, ended: ToolEnded, at: datetime) -> None:
        own = {TOOL_NAME: ended.tool, TOOL_TYPE: FUNCTION, TOOL_CALL_ID: ended.call}
        own[OUTCOME] = ended.outcome
        if ended.outcome != "ok":
            own[ERROR_TYPE] = ended.outcome
        name = f"{EXECUTE_TOOL} {ended.tool}"
        begun = at - timedelta(seconds=ended.seconds)
        self._span(name, begun, EXECUTE_TOOL, own).end(_ns(at))

    def close(self) -> None:
        """End what is open."""
        if self._last is not None:
            self._end("session", self._last, {})


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
