"""What an endpoint can do wrong, as a table: for each fault what it may cost when it never ends.

    python -m tests.crash.endpoint_faults     # meets every fault and prints what it cost

A row's counts are of a build whose planning went well and whose first task meets the fault in every request.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lopen.models.messages import Usage
from tests import fake_api
from tests.crash.building import MOST_BROKEN, PER_REQUEST, USAGE, Found, Site, answer
from tests.endpoint import Body, Turn, cut_stream, error_event, message, status, tools
from tests.fake_api import Answer, Message, NoResponse, Raw, Status

RETRIES = 2  # of the first model, and of the fallback
TRIES = 2 * (1 + RETRIES)
PLANNED = 4  # calls of the one turn that plans
BOUND = 60  # requests that no fault may pass, whatever the model does with it
EVIL = tools(("write_file", {"path": "evil.py", "content": "never"}), usage=USAGE)

REFUSED = (400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 414, 415, 416, 417, 418, 421, 422, 423, 424, 426, 428, 431, 451, 499)  # fmt: skip
AWAY = (408, 409, 425, 429, 500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 522, 524, 529, 599)


@dataclass(frozen=True)
class Fault:
    """A row. `requests` are the model's own, planning included; None: at most `BOUND`, each one paid for."""

    name: str
    answer: Turn
    code: int
    requests: int | None


@dataclass(frozen=True)
class Met:
    """What a fault cost."""

    fault: Fault
    code: int
    requests: int
    oracle: int
    found: Found
    said: str

    def wrong(self) -> list[str]:
        """What does not hold of it."""
        fault, found = self.fault, self.found
        wrong = [f"it said: {word}" for word in ("Traceback", "internal error") if word in self.said]
        if self.code != fault.code:
            wrong.append(f"it ended with {self.code}: {self.said}")
        if fault.requests is None:
            if not 2 <= self.requests <= BOUND:
                wrong.append(f"{self.requests} requests")
            if found.tokens < PER_REQUEST * 2:
                wrong.append("answers that came whole were not charged")
            return wrong
        if self.requests != fault.requests:
            wrong.append(f"{self.requests} requests, not {fault.requests}")
        if found.tools != PLANNED:
            wrong.append(f"{found.tools - PLANNED} tools of broken answers were run")
        if not PER_REQUEST <= found.tokens <= PER_REQUEST + MOST_BROKEN * (self.requests - 1):
            wrong.append(f"{found.tokens - PER_REQUEST} tokens were charged for answers that broke off")
        if found.iterations != 1:
            wrong.append(f"{found.iterations - 1} iterations were counted that did not happen")
        return wrong

    def line(self) -> str:
        """For the table."""
        found = self.found
        return (
            f"{self.fault.name:<44}{self.requests:>9}{found.tools:>7}{found.tokens:>9}"
            f"{found.iterations:>12}{self.code:>6}  {'; '.join(self.wrong())}"
        ).rstrip()


HEAD = f"{'the first task meets, for ever':<44}{'requests':>9}{'tools':>7}{'tokens':>9}{'iterations':>12}{'exit':>6}"


def faults() -> Iterator[Fault]:
    """Every row."""
    for number in REFUSED:
        yield Fault(f"HTTP {number}", status(number, "no"), 1, 2)
    for number in AWAY:
        yield Fault(f"HTTP {number}", status(number, "not now"), 3, 1 + TRIES)
    yield Fault("HTTP 429, to come back in an hour", status(429, "slow down", retry_after="3600"), 3, 2)
    yield Fault(
        "HTTP 502 with a page for people", Status(502, body=b"<html>bad gateway</html>"), 3, 1 + TRIES
    )
    for name, given in broken():
        yield Fault(name, given, 3, 1 + TRIES)
    for name, said in contradictions():
        yield Fault(name, said, 3, None)
    call = {"type": "tool_use", "name": "read_file", "input": {"path": "README.md"}}
    yield Fault("an id that was given before", raw(call, itertools.repeat(1)), 1, None)


def broken() -> Iterator[tuple[str, Answer]]:
    """Answers that are none, or break off: thrown away whole, and asked for again."""
    events = [fake_api.encode(event) for event in events_of(EVIL)]
    for kind in ("overloaded_error", "api_error", "rate_limit_error", "timeout_error", "strange_error"):
        yield f"an event {kind} in the stream", error_event(kind)
    for place, name in enumerate(("message_start", "ping", "content_block_start"), start=1):
        yield f"a stream that ends after {name}", cut_stream(EVIL, events=place)
    yield "a stream that ends before message_stop", cut_stream(EVIL)
    yield "a stream that ends properly before message_stop", Raw(events[:-1])
    yield "a stream that is reset in the middle", Raw(events[:4], then="reset")
    yield "a stream that falls silent", Raw(events[:4], then="silence")
    yield "a stream cut inside an event", Raw([b"".join(events)[:-40]], then="hang_up")
    yield "a connection that is reset", NoResponse("reset")
    yield "a connection that hangs up", NoResponse("hang_up")
    yield "no answer at all", NoResponse("silence")
    yield "an event that is no JSON", Raw([b"event: message_start\ndata: {not json\n\n"])
    yield "an event that is a list", Raw([b"event: message_start\ndata: []\n\n"])
    yield "an event that is no text", Raw([b"event: message_start\ndata: \xff\xfe\n\n"])
    yield "a page for people instead of a stream", Raw([b"<html>hello</html>"], content_type="text/html")
    yield "an empty answer", Raw()
    yield "a stream without its beginning", Raw(events[1:])
    yield "a delta of a block that was never opened", Raw([*events[:2], *events[3:]])
    yield "a stream without a stop reason", Raw([e for e in events if b"message_delta" not in e])


def contradictions() -> Iterator[tuple[str, Turn]]:
    """Whole answers that make no sense: they are paid for, and their calls are answered and bounded."""
    call = {"type": "tool_use", "name": "write_file", "input": {"path": "evil.py", "content": "never"}}
    yield (
        "tool input that is no JSON",
        message({**call, "unparsed": True}, stop_reason="tool_use", usage=USAGE),
    )
    yield "tool input that is a list", raw(call | {"input": ["evil.py"]}, itertools.count())
    yield "tool input of wrong types", message(call | {"input": {"path": 7, "content": {}}}, stop_reason="tool_use", usage=USAGE)  # fmt: skip
    yield (
        "a tool that there is not",
        message(call | {"name": "make_coffee"}, stop_reason="tool_use", usage=USAGE),
    )
    yield "a stop for tools without a tool", message({"type": "text", "text": "Go."}, stop_reason="tool_use", usage=USAGE)  # fmt: skip
    yield (
        "a stop reason that nobody knows",
        message({"type": "text", "text": "Go."}, stop_reason="tired", usage=USAGE),
    )
    yield "nothing at all, paid for", message(usage=USAGE)
    yield "a refusal", message({"type": "text", "text": "No."}, stop_reason="refusal", usage=USAGE)
    yield "an answer cut by its limit, for ever", message({"type": "text", "text": "And"}, stop_reason="max_tokens", usage=USAGE)  # fmt: skip
    yield "usage that shrinks", counted(start=Usage(900, 100), end={"output_tokens": 1})
    yield "usage below nothing", counted(start=Usage(1_000, 0), end={"output_tokens": -7_000_000})
    yield "usage that is no number", counted(start=Usage(1_000, 0), end={"output_tokens": "many"})
    yield "usage beyond all measure", counted(start=Usage(1_000, 0), end={"output_tokens": 10**15})
    yield (
        "usage that says less than nothing was read",
        counted(start=Usage(1_000, 0), end={"input_tokens": -1}),
    )


def events_of(given: Message) -> list[Any]:
    """The events of a message."""
    blocks = [
        {"id": f"toolu_{n}", **b} if b["type"] == "tool_use" else b for n, b in enumerate(given.content)
    ]
    whole = {"id": "msg_1", "model": "m", "content": blocks, "stop_reason": given.stop_reason}
    return list(fake_api.message_events(whole, given.usage or USAGE))


def raw(block: Any, numbers: Iterator[int]) -> Turn:
    """A whole message with one call, as it stands; the call's id is a new one each time, as far as `numbers` are."""

    def said(_: Body) -> Answer:
        call = block | {"id": f"toolu_raw_{next(numbers)}"}
        return Raw(
            [fake_api.encode(e) for e in events_of(message(call, stop_reason="tool_use", usage=USAGE))]
        )

    return said


def counted(start: Usage, end: dict[str, Any]) -> Raw:
    """A whole message of words whose counts at its end do not fit those at its start."""
    events = events_of(message({"type": "text", "text": "Words."}, usage=start))
    told = [e | {"usage": end} if e["type"] == "message_delta" else e for e in events]
    return Raw([fake_api.encode(event) for event in told])


class FaultyModel:
    """The model of `building`, but for what it says to the first task. A list is used up once."""

    def __init__(self) -> None:
        self.fault: Turn | None = None
        self.once: list[Turn] = []

    def __call__(self, body: Body) -> Answer:
        if "calc-t1" not in str(body["messages"][0]["content"]):
            return answer(body)
        said = self.once.pop(0) if self.once else self.fault or answer
        return said(body) if callable(said) else said


def meet(site: Site, model: FaultyModel, fault: Fault) -> Met:
    """Build with the fault in every request of the first task."""
    with site.project() as root:
        model.fault = fault.answer
        try:
            ran = site.lopen(root, "run", "calc", arrange=[["tests.crash.faults:no_waiting"]]).ran
        finally:
            model.fault = None
        asked = site.asked
        return Met(fault, ran.code, asked.model, asked.oracle, site.found(root), ran.err)


PATIENCE = {
    "LOPEN_MODEL__MAX_RETRIES": str(RETRIES),
    "LOPEN_MODEL__SILENCE_TIMEOUT_S": "1",
}


def main() -> int:
    """Print the table; 1 where a row does not hold."""
    from tests.crash.sweep import say, sites

    model = FaultyModel()
    wrong = 0
    with sites(1, model) as (site,):
        site.variables = PATIENCE
        say(HEAD)
        for fault in faults():
            met = meet(site, model, fault)
            wrong += bool(met.wrong())
            say(met.line())
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
