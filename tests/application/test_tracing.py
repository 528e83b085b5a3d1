"""Traces: a session's spans reach a collector over OTLP, and a collector that is gone stops nothing."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.e2e.conftest import MakeProject, make_project
from tests.project import build, plan

__all__ = ["make_project"]


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector on loopback: its address, and what it was sent."""
    received: list[ExportTraceServiceRequest] = []

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            plain = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            received.append(ExportTraceServiceRequest.FromString(plain))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Take)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def values(span: Any) -> dict[str, Any]:
    found = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, kind)
    return found


def test_a_session_s_spans_lie_in_each_other(make_project: MakeProject) -> None:
    with collector() as (url, received):
        project = make_project([plan(), build("calc-t1")], LOPEN_TELEMETRY__ENDPOINT=url)
        project.specify()
        ran = project.drive()
        assert ran.code == 0, ran.err
    spans = [
        s
        for r in received
        for resource in r.resource_spans
        for scope in resource.scope_spans
        for s in scope.spans
    ]
    by_id = {span.span_id: span for span in spans}
    assert len({span.trace_id for span in spans}) == 1
    [session] = [s for s in spans if not s.parent_span_id]
    assert session.name == "invoke_workflow calc"
    assert values(session)["gen_ai.conversation.id"] == project.status()["session"]
    assert values(session)["lopen.outcome"] == "complete"
    calls = [s for s in spans if s.name.startswith("execute_tool ")]
    assert len(calls) == len(ran.named("tool_ended"))
    for call in calls:
        turn = by_id[call.parent_span_id]
        iteration = by_id[turn.parent_span_id]
        assert turn.name.startswith("turn ")
        assert iteration.name in ("invoke_agent planner", "invoke_agent builder")
        assert iteration.parent_span_id == session.span_id
        assert call.start_time_unix_nano <= call.end_time_unix_nano <= turn.end_time_unix_nano
        assert values(call)["gen_ai.operation.name"] == "execute_tool"
    chats = [values(s) for s in spans if s.name.startswith("chat ")]
    assert len(chats) == len(ran.named("turn_ended"))
    assert sum(c["gen_ai.usage.output_tokens"] for c in chats) == sum(
        e["output_tokens"] for e in ran.named("turn_ended")
    )
    sent = b"".join(r.SerializeToString() for r in received)
    assert b"def add" not in sent


@pytest.mark.parametrize("listens", [False, True])
def test_a_collector_that_does_not_answer_stops_nothing(make_project: MakeProject, listens: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        if not listens:
            silent.close()
        project = make_project([plan(), build("calc-t1")], LOPEN_TELEMETRY__ENDPOINT=url)
        project.specify()
        ran = project.drive()
    assert ran.code == 0, ran.err
    assert "opentelemetry" not in ran.err.lower()
