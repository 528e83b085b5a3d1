"""An endpoint that fails for ever: nothing loops, nothing broken is run, nothing is charged for what did not happen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lopen.models.messages import Usage
from tests import fake_api
from tests.crash.building import MOST_BROKEN, PER_REQUEST, USAGE
from tests.crash.conftest import Place
from tests.endpoint import Body, Turn, cut_stream, message, status, tools
from tests.fake_api import Message, NoResponse, Raw

RETRIES = 2  # of the first model, and of the fallback
TRIES = 2 * (1 + RETRIES)
PLANNED = 4  # calls of the one turn that plans
BOUND = 60  # requests that no fault may pass, whatever the model does with it
EVIL = tools(("write_file", {"path": "evil.py", "content": "never"}), usage=USAGE)
WRITE = {"type": "tool_use", "name": "write_file", "input": {"path": "evil.py", "content": "never"}}
READ = {"type": "tool_use", "name": "read_file", "input": {"path": "README.md"}}
WORDS = {"type": "text", "text": "Go."}
PATIENCE = {"LOPEN_MODEL__MAX_RETRIES": str(RETRIES), "LOPEN_MODEL__SILENCE_TIMEOUT_S": "1"}


@dataclass(frozen=True)
class Fault:
    """An answer to the first task of a build whose planning went well, and what it may cost when it never ends.

    `requests` are the model's own, planning included; None: at most `BOUND`, each one paid for.
    """

    name: str
    answer: Turn
    code: int
    requests: int | None


def events(given: Message) -> list[Any]:
    """Return the events of a message."""
    blocks = [
        {"id": f"toolu_{n}", **b} if b["type"] == "tool_use" else b for n, b in enumerate(given.content)
    ]
    whole = {"id": "msg_1", "model": "m", "content": blocks, "stop_reason": given.stop_reason}
    return list(fake_api.message_events(whole, given.usage or USAGE))


def raw(block: Any, numbers: Iterator[int]) -> Turn:
    """Return a whole message with one call as it stands, whose id takes the next number."""

    def said(_: Body) -> Raw:
        call = block | {"id": f"toolu_raw_{next(numbers)}"}
        return Raw([fake_api.encode(e) for e in events(message(call, stop_reason="tool_use", usage=USAGE))])

    return said


def miscounted() -> Raw:
    """Return a message of words whose counts at its end do not fit those at its start."""
    told = events(message(WORDS, usage=Usage(1_000, 0)))
    spoiled = [
        e | {"usage": {"output_tokens": -7_000_000}} if e["type"] == "message_delta" else e for e in told
    ]
    return Raw([fake_api.encode(event) for event in spoiled])


BROKEN = [fake_api.encode(event) for event in events(EVIL)]
FAULTS = (
    Fault("HTTP 500", status(500, "not now"), 3, 1 + TRIES),
    # Answers that break off are thrown away whole and asked for again.
    Fault("a stream that ends before message_stop", cut_stream(EVIL), 3, 1 + TRIES),
    Fault("a stream that falls silent", Raw(BROKEN[:4], then="silence"), 3, 1 + TRIES),
    Fault("a connection that hangs up", NoResponse("hang_up"), 3, 1 + TRIES),
    # Whole answers that make no sense are paid for, and their calls are answered and bounded.
    Fault("a tool that there is not", raw(WRITE | {"name": "make_coffee"}, itertools.count()), 3, None),
    Fault("a stop for tools without a tool", message(WORDS, stop_reason="tool_use", usage=USAGE), 3, None),
    Fault("nothing at all, paid for", message(usage=USAGE), 3, None),
    Fault("a refusal", message(WORDS, stop_reason="refusal", usage=USAGE), 3, None),
    Fault("usage below nothing", miscounted(), 3, None),
    Fault("an id that was given before", raw(READ, itertools.repeat(1)), 1, None),
)


def wrong(fault: Fault, place: Place) -> list[str]:
    """Build with the fault in every request of the first task; return what does not hold."""
    site = place.site
    with site.project() as root:
        place.model.fault = fault.answer
        try:
            ran = site.lopen(
                root, "run", "calc", variables=PATIENCE, arrange=[["tests.crash.faults:no_waiting"]]
            ).ran
        finally:
            place.model.fault = None
        found, requests = site.found(root), site.asked.model
    said = [f"it said: {word}" for word in ("Traceback", "internal error") if word in ran.err]
    if ran.code != fault.code:
        said.append(f"it ended with {ran.code}: {ran.err}")
    if fault.requests is None:
        if not 2 <= requests <= BOUND:
            said.append(f"{requests} requests")
        if found.tokens < PER_REQUEST * 2:
            said.append("answers that came whole were not charged")
        return said
    if requests != fault.requests:
        said.append(f"{requests} requests, not {fault.requests}")
    if found.tools != PLANNED:
        said.append(f"{found.tools - PLANNED} tools of broken answers were run")
    if not PER_REQUEST <= found.tokens <= PER_REQUEST + MOST_BROKEN * (requests - 1):
        said.append(f"{found.tokens - PER_REQUEST} tokens were charged for answers that broke off")
    if found.iterations != 1:
        said.append(f"{found.iterations - 1} iterations were counted that did not happen")
    return said


def test_a_fault_that_never_ends_is_met_within_its_bounds(place: Place) -> None:
    assert not {fault.name: found for fault in FAULTS if (found := wrong(fault, place))}
