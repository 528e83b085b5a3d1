"""Events to a response: whatever a message holds, streaming it and putting it together gives it back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.models.fake_api import responses
from lopen.models.messages import Response, TransientFailure, Usage
from lopen.models.stream_parser import StreamParser, parse_input

plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=8,
)
blocks = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, plain),
    st.builds(lambda t, s: {"type": "thinking", "thinking": t, "signature": s}, plain, plain),
    st.builds(
        lambda i: {"type": "tool_use", "name": "a_tool", "input": i},
        st.dictionaries(plain, values, max_size=4),
    ),
    st.builds(lambda d: {"type": "redacted_thinking", "data": d}, plain),
)


def assembled(events: Any, shown: list[str] | None = None) -> Response:
    def show(text: str, tool: str = "") -> None:
        if shown is not None and not tool:
            shown.append(text)

    assembly = StreamParser(show)
    for event in events:
        assembly.feed(event)
    return assembly.response("req_1")


@given(content=st.lists(blocks, max_size=5))
def test_a_streamed_message_is_put_together_as_it_was(content: list[dict[str, Any]]) -> None:
    numbered = [{**b, "id": f"t{i}"} if b["type"] == "tool_use" else b for i, b in enumerate(content)]
    message = {"id": "msg_1", "model": "m", "content": numbered, "stop_reason": "end_turn"}
    shown: list[str] = []
    response = assembled(responses.message_events(message, Usage(1, 2, 3, 4)), shown)
    assert list(response.content) == numbered
    assert response.usage == Usage(1, 2, 3, 4)
    assert "".join(shown) == response.text
    assert [use.input for use in response.tool_uses] == [
        b["input"] for b in numbered if b["type"] == "tool_use"
    ]


@given(value=st.dictionaries(plain, values, max_size=4))
def test_valid_input_is_read_as_any_reader_of_json_does(value: dict[str, Any]) -> None:
    assert parse_input(json.dumps(value)) == (value, "")


@given(raw=st.text(max_size=30))
def test_no_text_at_all_breaks_the_reader_of_inputs(raw: str) -> None:
    given_, error = parse_input(raw)
    assert (given_ is None) == bool(error)


def stream(*deltas: dict[str, Any], start: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {"id": "m", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]


def test_a_character_that_came_in_two_halves_is_one_again() -> None:
    halves = [{"type": "text_delta", "text": "\ud83d"}, {"type": "text_delta", "text": "\ude00!"}]
    assert assembled(stream(*halves, start={"type": "text", "text": ""})).text == "\U0001f600!"


def test_half_a_character_alone_is_replaced_so_that_the_text_can_be_written() -> None:
    shown: list[str] = []
    response = assembled(
        stream({"type": "text_delta", "text": "a\ud83d"}, start={"type": "text", "text": ""}), shown
    )
    assert response.text == "a\ufffd"
    assert shown == ["a\ufffd"]


def test_unknown_deltas_are_kept_with_their_block() -> None:
    deltas: list[dict[str, Any]] = [
        {"type": "novel_delta", "novel": "a"},
        {"type": "novel_delta", "novel": "b", "count": 3},
    ]
    response = assembled(stream(*deltas, start={"type": "novelty", "novel": "", "count": None}))
    assert response.content[0] == {"type": "novelty", "novel": "ab", "count": 3}


def test_citations_gather_beside_their_text() -> None:
    deltas: list[dict[str, Any]] = [
        {"type": "text_delta", "text": "x"},
        *({"type": "citations_delta", "citation": {"n": i}} for i in (1, 2)),
    ]
    response = assembled(stream(*deltas, start={"type": "text", "text": "", "citations": None}))
    assert response.content[0] == {"type": "text", "text": "x", "citations": [{"n": 1}, {"n": 2}]}


def test_input_that_came_whole_with_its_block_counts() -> None:
    start = {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}
    assert assembled(stream(start=start)).tool_uses[0].input == {"a": 1}


def test_a_servers_own_tool_call_is_kept_and_is_not_lopens_to_run() -> None:
    start = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    response = assembled(stream({"type": "input_json_delta", "partial_json": '{"q": 1}'}, start=start))
    assert response.content[0]["input"] == {"q": 1}
    assert response.tool_uses == ()


def test_unknown_events_and_pings_are_passed_over() -> None:
    events = stream(start={"type": "text", "text": "whole"})
    assert assembled([events[0], {"type": "ping"}, {"type": "novel_event"}, *events[1:]]).text == "whole"


@pytest.mark.parametrize("missing", [0, 1, 3, 4, 5])
def test_only_a_delta_can_be_missing(missing: int) -> None:
    events = stream({"type": "text_delta", "text": "x"}, start={"type": "text", "text": ""})
    del events[missing]
    with pytest.raises(TransientFailure):
        assembled(events)


def test_a_double_key_is_found_at_once_among_many() -> None:
    keys = [f"k{n}" for n in range(100_000)]
    raw = json.dumps(dict.fromkeys(keys, 1))[:-1] + ', "k99999": 2}'
    assert parse_input(raw) == (None, "the input is not valid JSON: the key 'k99999' comes twice")


def test_a_message_cannot_start_twice() -> None:
    events = stream(start={"type": "text", "text": ""})
    with pytest.raises(TransientFailure, match="twice"):
        assembled([events[0], *events])


def test_half_of_a_surrogate_pair_is_replaced_wherever_it_comes() -> None:
    half = "a\ud800"
    content = [
        {"type": "text", "text": half, "citations": [{"cited_text": half}]},
        {"type": "tool_use", "id": half, "name": half, "input": {}},
        {"type": "odd", half: half},
    ]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": half, "model": half, "usage": {}}},
        *(
            event
            for index, block in enumerate(content)
            for event in (
                {"type": "content_block_start", "index": index, "content_block": block},
                {"type": "content_block_stop", "index": index},
            )
        ),
        {"type": "message_delta", "delta": {"stop_reason": half}, "usage": {}},
        {"type": "message_stop"},
    ]

    response = assembled(events)

    said = json.dumps(
        [response.id, response.model, response.stop_reason, response.content], ensure_ascii=False
    )
    assert said.encode().decode().count("a\ufffd") == 8
    assert [(use.id, use.name) for use in response.tool_uses] == [("a\ufffd", "a\ufffd")]
