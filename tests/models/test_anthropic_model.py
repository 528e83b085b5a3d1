"""The model behind the SDK, and what it loads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lopen.core.errors import ExitCode, Stopped
from lopen.models.messages import TransientFailure, Usage
from tests import fake_api
from tests.endpoint import Raw, ScriptedEndpoint, cut_stream, message, silence, text, tools
from tests.models.conftest import Reach, ignore, request
from tests.models.exchange import events, failure, sent

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


class TestResponses:
    def test_text_and_tool_calls_arrive_in_order_with_usage_and_ids(self, reach: Reach) -> None:
        usage = Usage(7, 11, 13, 17)
        answer = tools(("write_file", {"path": "ä.py"}), ("write_file", {}), say="On it.", usage=usage)
        response = sent(reach, answer)
        assert response.text == "On it."
        assert [(use.name, use.input) for use in response.tool_uses] == [
            ("write_file", {"path": "ä.py"}),
            ("write_file", {}),
        ]
        assert (response.usage, response.stop_reason) == (usage, "tool_use")
        assert response.request_id == "req_000001"
        assert response.model == "claude-test"

    def test_thinking_goes_back_exactly_as_it_came(self, reach: Reach) -> None:
        blocks = (
            {"type": "thinking", "thinking": "hm " * 3000, "signature": "c2lnbmF0dXJl"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "novelty", "payload": {"a": [1, None]}},
            {"type": "text", "text": "done"},
        )
        with ScriptedEndpoint([message(*blocks), text("again")]) as endpoint:
            model = reach(endpoint.url)
            first = model.send(request(), ignore)
            assert list(first.content) == list(blocks)
            history = [
                *request().messages,
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
            ]
            model.send(request(messages=history), ignore)
            assert endpoint.requests[1]["messages"][1]["content"] == list(blocks)

    def test_a_connection_is_used_again(self, reach: Reach) -> None:
        with ScriptedEndpoint(text("hello")) as endpoint:
            model = reach(endpoint.url)
            for _ in range(3):
                model.send(request(), ignore)
            assert endpoint.connections == 1

    def test_what_breaks_after_message_stop_takes_nothing_away(self, reach: Reach) -> None:
        whole = cut_stream(text("whole"), events=99)
        assert sent(reach, whole).text == "whole"

    @given(content=st.lists(blocks, max_size=5))
    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_message_comes_as_it_was(self, reach: Reach, content: list[dict[str, Any]]) -> None:
        numbered = [{**b, "id": f"t{i}"} if b["type"] == "tool_use" else b for i, b in enumerate(content)]
        response = sent(reach, message(*numbered, usage=Usage(1, 2, 3, 4)))
        assert list(response.content) == numbered
        assert response.usage == Usage(1, 2, 3, 4)
        uses = [use.input for use in response.tool_uses]
        assert uses == [b["input"] for b in numbered if b["type"] == "tool_use"]

    def test_a_character_in_halves_is_one_again_and_a_half_alone_is_replaced(self, reach: Reach) -> None:
        whole = events({"type": "text", "text": "x"})
        delta = whole[3]
        halves = [
            delta | {"delta": {"type": "text_delta", "text": half}}
            for half in ("\ud83d", "\ude00!", "\ud83d")
        ]
        pieces = [*whole[:3], *halves, *whole[4:]]
        as_json = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in pieces]
        assert sent(reach, Raw(as_json)).text == "\U0001f600!\ufffd"


class TestToolInput:
    @pytest.mark.parametrize(
        ("raw", "said"),
        [
            ('{"path": "a', "not valid JSON"),
            ('{"a": NaN}', "not JSON compliant"),
            ("[1, 2]", "not an object"),
        ],
    )
    def test_broken_input_is_told_and_can_still_be_sent_back(self, reach: Reach, raw: str, said: str) -> None:
        with ScriptedEndpoint([raw_tool_call(raw), text("ok")]) as endpoint:
            model = reach(endpoint.url)
            response = model.send(request(), ignore)
            (use,) = response.tool_uses
            assert use.input is None
            assert said in use.error
            history = [
                *request().messages,
                {"role": "assistant", "content": response.content},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "no"}],
                },
            ]
            assert model.send(request(messages=history), ignore).text == "ok"
            assert endpoint.requests[1]["messages"][1]["content"][0]["input"] == {}

    @pytest.mark.parametrize("raw", ["[" * 200_000, '{"a": nope}'])
    def test_input_that_the_sdk_cannot_put_together_spoils_the_response(self, reach: Reach, raw: str) -> None:
        assert isinstance(failure(reach, raw_tool_call(raw)), TransientFailure)

    @pytest.mark.parametrize("block", [{"id": "", "name": "w"}, {"id": "t"}])
    def test_a_call_that_nothing_can_answer_spoils_the_response(self, reach: Reach, block: Any) -> None:
        whole = events({"type": "tool_use", "input": {}, **block})
        assert isinstance(failure(reach, Raw([fake_api.encode(e) for e in whole])), TransientFailure)

    def test_two_calls_with_one_id_spoil_the_response(self, reach: Reach) -> None:
        block = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {}}
        assert "same id" in str(failure(reach, message(block, block)))


class TestUsage:
    def test_counts_that_no_request_can_have_are_estimated_from_the_answer(self, reach: Reach) -> None:
        spoiled = events({"type": "text", "text": "x" * 30}, Usage(100, 5))
        spoiled[-2]["usage"] = {"output_tokens": -9, "input_tokens": 10**15}
        assert sent(reach, Raw([fake_api.encode(e) for e in spoiled])).usage == Usage(0, 10, estimated=True)

    def test_an_answer_that_breaks_off_says_what_it_used(self, reach: Reach) -> None:
        used: list[Usage] = []
        whole = message({"type": "text", "text": "x" * 300}, usage=Usage(100, 500, 20, 3))
        with (
            ScriptedEndpoint([cut_stream(whole, events=4)]) as endpoint,
            pytest.raises(TransientFailure),
        ):
            reach(endpoint.url).send(request(), ignore, lambda usage: used.append(usage))
        assert used[-1] == Usage(100, 100, 20, 3)


class TestHangingUp:
    def test_a_stop_passes_through_and_closes_the_connection(self, reach: Reach) -> None:
        def stop(text: str, tool: str = "") -> None:
            raise Stopped(ExitCode.INTERRUPTED)

        with ScriptedEndpoint([silence(text("so"), events=4), text("next")]) as endpoint:
            model = reach(endpoint.url, silence_timeout_s=30)
            with pytest.raises(Stopped):
                model.send(request(), stop)
            assert model.send(request(), ignore).text == "next"

    def test_a_bug_in_what_shows_the_text_is_not_mistaken_for_a_failure(self, reach: Reach) -> None:
        def bug(text: str, tool: str = "") -> None:
            raise json.JSONDecodeError("mine", "", 0)

        with ScriptedEndpoint([text("hello")]) as endpoint, pytest.raises(json.JSONDecodeError, match="mine"):
            reach(endpoint.url).send(request(), bug)


def raw_tool_call(raw: str, stop_reason: str = "tool_use") -> Raw:
    """A tool call whose input is this text, well formed or not."""
    whole = events({"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}})
    whole[3]["delta"] = {"type": "input_json_delta", "partial_json": raw}
    whole[-2]["delta"]["stop_reason"] = stop_reason
    return Raw([fake_api.encode(event) for event in whole])
