"""The adapter over real HTTP with the real SDK: what comes back, and what every failure becomes."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from email.utils import format_datetime
from typing import Any

import pytest

from lopen.clock import FakeClock, SystemClock
from lopen.errors import ExitCode, LopenError, Stopped
from lopen.llm import sse
from lopen.llm.anthropic_model import AnthropicModel
from lopen.llm.messages import (
    ContextTooLong,
    ModelError,
    Rejected,
    Response,
    TransientFailure,
    Usage,
)
from lopen.settings.schema import Model as ModelSettings
from tests.endpoint import (
    Nothing,
    Raw,
    ScriptedEndpoint,
    Status,
    Turn,
    cut_stream,
    error_event,
    invalid_sse,
    message,
    reset,
    silence,
    status,
    text,
    tools,
)
from tests.llm.conftest import Reach, ignore, request


def sent(reach: Reach, turn: Turn, **settings: Any) -> Response:
    """The response to one request that is answered with `turn`."""
    with ScriptedEndpoint([turn]) as endpoint:
        return reach(endpoint.url, **settings).send(request(), ignore)


def failure(reach: Reach, turn: Turn, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        sent(reach, turn, **settings)
    return caught.value


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

    def test_text_streams_while_it_comes(self, reach: Reach) -> None:
        words = "x" * 10_000
        pieces: list[str] = []
        with ScriptedEndpoint([text(words)]) as endpoint:
            reach(endpoint.url).send(request(), pieces.append)
        assert len(pieces) > 1
        assert "".join(pieces) == words

    @pytest.mark.parametrize(
        "reason",
        [
            "end_turn",
            "max_tokens",
            "stop_sequence",
            "pause_turn",
            "refusal",
            "model_context_window_exceeded",
        ],
    )
    def test_every_stop_reason_is_passed_on(self, reach: Reach, reason: str) -> None:
        assert sent(reach, text("so far", stop_reason=reason)).stop_reason == reason

    def test_an_unknown_stop_reason_is_read_by_what_came(self, reach: Reach) -> None:
        assert sent(reach, text("so", stop_reason="novelty")).stop_reason == "end_turn"
        assert sent(reach, tools(("write_file", {}), stop_reason="novelty")).stop_reason == "tool_use"

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

    def test_ten_megabytes_of_text_and_of_tool_input_take_no_time(self, reach: Reach) -> None:
        long = "line of text\n" * 800_000
        started = time.process_time()
        assert sent(reach, text(long)).text == long
        response = sent(reach, tools(("write_file", {"content": long})))
        assert response.tool_uses[0].input == {"content": long}
        assert time.process_time() - started < 10

    def test_a_connection_is_used_again(self, reach: Reach) -> None:
        with ScriptedEndpoint(text("hello")) as endpoint:
            model = reach(endpoint.url)
            for _ in range(3):
                model.send(request(), ignore)
            assert endpoint.connections == 1

    def test_what_breaks_after_message_stop_takes_nothing_away(self, reach: Reach) -> None:
        whole = cut_stream(text("whole"), events=99)
        assert sent(reach, whole).text == "whole"


class TestToolInput:
    @pytest.mark.parametrize(
        ("raw", "said"),
        [
            ('{"path": "a', "not valid JSON"),
            ('{"a": 1, "a": 2}', "'a' comes twice"),
            ('{"a": NaN}', "NaN is not a JSON number"),
            ('{"a": 1e999}', "not a finite number"),
            ("[1, 2]", "not an object"),
            ('"text"', "not an object"),
            ('{"a": "\\ud800"}', "half of a surrogate pair"),
            ("[" * 200_000, "nested too deeply"),
            ("{} {}", "not valid JSON"),
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

    def test_no_input_at_all_is_an_empty_object(self, reach: Reach) -> None:
        assert sent(reach, raw_tool_call("")).tool_uses[0].input == {}

    def test_a_call_cut_by_max_tokens_comes_with_its_reason(self, reach: Reach) -> None:
        response = sent(reach, raw_tool_call('{"content": "half', "max_tokens"))
        assert response.stop_reason == "max_tokens"
        assert response.tool_uses[0].input is None

    @pytest.mark.parametrize(
        "block", [{"id": "", "name": "w"}, {"id": "t", "name": ""}, {"id": "t"}, {"name": "w"}]
    )
    def test_a_call_that_nothing_can_answer_spoils_the_response(self, reach: Reach, block: Any) -> None:
        whole = events({"type": "tool_use", "input": {}, **block})
        assert isinstance(failure(reach, Raw([sse.encode(e) for e in whole])), TransientFailure)

    def test_two_calls_with_one_id_spoil_the_response(self, reach: Reach) -> None:
        block = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {}}
        assert "same id" in str(failure(reach, message(block, block)))


class TestUsage:
    def test_contradictory_counts_give_the_largest_sensible_one(self, reach: Reach) -> None:
        spoiled = events({"type": "text", "text": "x"}, Usage(100, 5))
        spoiled[0]["message"]["usage"] |= {"output_tokens": 40, "cache_read_input_tokens": -3}
        spoiled[-2]["usage"] = {
            "output_tokens": 9,
            "input_tokens": 10**15,
            "cache_creation_input_tokens": True,
        }
        assert sent(reach, Raw([sse.encode(e) for e in spoiled])).usage == Usage(100, 40)

    def test_missing_usage_counts_nothing(self, reach: Reach) -> None:
        bare = events({"type": "text", "text": "x"})
        del bare[0]["message"]["usage"], bare[-2]["usage"]
        assert sent(reach, Raw([sse.encode(e) for e in bare])).usage == Usage()


class TestBrokenStreams:
    @pytest.mark.parametrize("kept", range(9))
    def test_a_stream_cut_anywhere_gives_no_response(self, reach: Reach, kept: int) -> None:
        answer = tools(("write_file", {"path": "a"}), say="Writing.")
        assert len(cut_stream(answer).pieces) == 9
        assert isinstance(failure(reach, cut_stream(answer, events=kept)), TransientFailure)

    def test_a_stream_that_ends_politely_before_message_stop_counts_as_cut(self, reach: Reach) -> None:
        pieces = cut_stream(text("almost")).pieces
        assert "before message_stop" in str(failure(reach, Raw(pieces)))

    @pytest.mark.parametrize("turn", [reset(), Nothing("hang_up"), Raw((), then="reset"), invalid_sse()])
    def test_connection_and_protocol_errors_can_be_tried_again(self, reach: Reach, turn: Turn) -> None:
        assert isinstance(failure(reach, turn), TransientFailure)

    @pytest.mark.parametrize(
        "garbage",
        [
            b"data: no event name\n\n",
            b"event: message_start\ndata: [1]\n\n",
            b"event: message_start\ndata: {}\n\n",
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{}}\n\n',
            b'event: content_block_start\ndata: {"type":"content_block_start","index":"x","content_block":{}}\n\n',
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
            b"event: message_start\ndata: \xff\xfe\n\n",
            b"event: message_start\ndata: " + b"[" * 200_000 + b"\n\n",
        ],
    )
    def test_a_stream_out_of_order_can_be_tried_again(self, reach: Reach, garbage: bytes) -> None:
        assert isinstance(failure(reach, Raw([garbage])), TransientFailure)

    def test_a_block_that_is_not_closed_spoils_the_response(self, reach: Reach) -> None:
        unclosed = [e for e in events({"type": "text", "text": "x"}) if e["type"] != "content_block_stop"]
        assert "inside a content block" in str(failure(reach, Raw([sse.encode(e) for e in unclosed])))

    def test_silence_longer_than_the_limit_can_be_tried_again(self, reach: Reach) -> None:
        assert isinstance(failure(reach, silence(), silence_timeout_s=0.2), TransientFailure)
        assert isinstance(failure(reach, Nothing("silence"), silence_timeout_s=0.2), TransientFailure)

    def test_pings_do_not_keep_a_stream_alive_for_ever(self, reach: Reach) -> None:
        clock = FakeClock()

        def hour_long(_body: Any) -> Raw:
            return Raw(_pings(clock))  # type: ignore[arg-type]  # an iterator on purpose: time passes between pieces

        with ScriptedEndpoint([hour_long]) as endpoint, pytest.raises(TransientFailure, match="longer than"):
            reach(endpoint.url, clock=clock).send(request(), ignore)

    def test_an_endpoint_that_does_not_stream_is_named_as_such(self, reach: Reach) -> None:
        page = Raw([b"<html>hello</html>"], content_type="text/html")
        assert "text/html" in str(failure(reach, page))

    def test_nobody_listening_can_be_tried_again(self, reach: Reach) -> None:
        with ScriptedEndpoint() as endpoint:
            gone = endpoint.url
        with pytest.raises(TransientFailure, match="ConnectError"):
            reach(gone).send(request(), ignore)


class TestRefusals:
    @pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
    def test_statuses_that_pass_can_be_tried_again(self, reach: Reach, code: int) -> None:
        found = failure(reach, status(code, "busy", retry_after="2"))
        assert isinstance(found, TransientFailure)
        assert (found.status, found.retry_after_s) == (code, 2.0)

    def test_retry_after_is_read_as_milliseconds_and_as_a_date(self, reach: Reach) -> None:
        clock = FakeClock()
        later = clock.now().replace(minute=1)
        for headers, seconds in (
            ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
            ({"retry_after": format_datetime(later, usegmt=True)}, 60.0),
            ({"retry_after": "nan"}, None),
            ({"retry_after": "soon"}, None),
            ({"retry_after": "-5"}, 0.0),
        ):
            found = failure(reach, status(429, **headers), clock=clock)
            assert isinstance(found, TransientFailure)
            assert found.retry_after_s == seconds

    @pytest.mark.parametrize(
        "turn",
        [
            status(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            status(400, "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000"),
            status(400, "Input is too long for requested model."),
            status(413, "Request exceeds the maximum size"),
            error_event("request_too_large", "too large"),
            error_event("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"),
        ],
    )
    def test_a_prompt_that_does_not_fit_is_its_own_failure(self, reach: Reach, turn: Turn) -> None:
        assert isinstance(failure(reach, turn), ContextTooLong)

    @pytest.mark.parametrize(
        ("turn", "hint"),
        [
            (status(401, "invalid x-api-key"), "ANTHROPIC_API_KEY"),
            (status(402, "no money"), "Add credit"),
            (status(400, "Your credit balance is too low to access the API"), "Add credit"),
            (status(403, "not for you"), "claude-test"),
            (status(404, "model: claude-test"), "claude-test"),
            (status(422, "odd"), "lopen doctor"),
            (error_event("authentication_error", "expired"), "ANTHROPIC_API_KEY"),
        ],
    )
    def test_other_refusals_say_what_to_do(self, reach: Reach, turn: Turn, hint: str) -> None:
        found = failure(reach, turn)
        assert isinstance(found, Rejected)
        assert hint in found.hint

    def test_the_endpoints_own_words_are_in_the_message_on_one_line(self, reach: Reach) -> None:
        assert "tools.0: \u2026 odd" in str(failure(reach, status(400, "tools.0:\n\u2026  odd")))

    @pytest.mark.parametrize(
        "kind", ["overloaded_error", "api_error", "rate_limit_error", "timeout_error", "novelty"]
    )
    @pytest.mark.parametrize("after", [0, 4])
    def test_error_events_in_the_stream_can_be_tried_again(self, reach: Reach, kind: str, after: int) -> None:
        found = failure(reach, error_event(kind, after=after))
        assert isinstance(found, TransientFailure)
        assert kind in str(found)

    def test_an_error_event_that_is_no_json_can_be_tried_again(self, reach: Reach) -> None:
        assert isinstance(failure(reach, Raw([b"event: error\ndata: boom\n\n"])), TransientFailure)

    def test_an_error_page_of_a_proxy_is_no_riddle(self, reach: Reach) -> None:
        found = failure(reach, Status(502, body=b"<html>Bad Gateway</html>"))
        assert isinstance(found, TransientFailure)


class TestKeys:
    def test_without_a_key_the_hint_names_the_variable(self) -> None:
        model = AnthropicModel(ModelSettings(base_url="http://127.0.0.1:9"), {}, SystemClock())
        with pytest.raises(Rejected) as caught:
            model.send(request(), ignore)
        assert "ANTHROPIC_API_KEY" in caught.value.hint

    def test_the_key_and_address_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with ScriptedEndpoint([text("hello")], key="from-the-environment") as endpoint:
            monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
            model = AnthropicModel(ModelSettings(), {"ANTHROPIC_BASE_URL": endpoint.url}, SystemClock())
            assert model.send(request(), ignore).text == "hello"
            model.close()

    def test_an_endpoint_that_echoes_the_key_does_not_get_it_into_a_message(self, reach: Reach) -> None:
        secrets = ("sk-ant-api03-abc_DEF-123", "plain-test-secret")
        for key in secrets:
            with (
                ScriptedEndpoint([status(400, f"bad key {key}, Bearer {key} refused")]) as endpoint,
                pytest.raises(Rejected) as caught,
            ):
                reach(endpoint.url, api_key=key).send(request(), ignore)
            assert key not in str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None

    def test_a_key_that_no_header_can_carry_is_rejected_unseen(self, reach: Reach) -> None:
        with ScriptedEndpoint([text("never")]) as endpoint, pytest.raises(Rejected) as caught:
            reach(endpoint.url, api_key="sk-ant-broken\nkey").send(request(), ignore)
        assert "sk-ant" not in str(caught.value)

    @pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "127.0.0.1:80", "http://[::1"])
    def test_an_address_that_is_none_is_rejected(self, reach: Reach, url: str) -> None:
        with pytest.raises(Rejected):
            reach(url).send(request(), ignore)

    @pytest.mark.parametrize(
        ("url", "local"),
        [
            ("http://127.0.0.1:8080", True),
            ("http://localhost", True),
            ("http://[::1]:1", True),
            ("https://api.anthropic.com", False),
            ("http://127.0.0.1.example.org", False),
            ("http://[::1", False),
            ("", False),
        ],
    )
    def test_only_loopback_is_local(self, url: str, local: bool) -> None:
        assert AnthropicModel(ModelSettings(base_url=url), {}, SystemClock()).local is local

    def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
        self, reach: Reach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
        with ScriptedEndpoint([text("Here.")]) as endpoint:
            assert reach(endpoint.url).send(request(), ignore).text == "Here."


class TestProviders:
    @pytest.mark.parametrize(
        ("provider", "variable"),
        [("bedrock", "AWS_REGION"), ("vertex", "CLOUD_ML_REGION"), ("foundry", "ANTHROPIC_FOUNDRY_API_KEY")],
    )
    def test_a_provider_without_its_settings_names_them(
        self, reach: Reach, provider: str, variable: str
    ) -> None:
        with pytest.raises(Rejected) as caught:
            reach("", provider=provider, api_key="").send(request(), ignore)
        assert variable in caught.value.hint

    @pytest.mark.parametrize(("provider", "library"), [("vertex", "google.auth"), ("bedrock", "boto3")])
    def test_a_provider_without_its_library_names_the_extra(
        self, reach: Reach, monkeypatch: pytest.MonkeyPatch, provider: str, library: str
    ) -> None:
        for name in ("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "AWS_REGION"):
            monkeypatch.setenv(name, "somewhere")
        for name in (library, "botocore.auth"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(LopenError) as caught:
            reach("", provider=provider, api_key="").send(request(), ignore)
        assert f"anthropic[{provider}]" in caught.value.hint

    def test_foundry_speaks_through_its_own_client(
        self, reach: Reach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_FOUNDRY_API_KEY", "foundry-key")
        with ScriptedEndpoint([text("hello")], key="foundry-key") as endpoint:
            model = reach(endpoint.url, provider="foundry", api_key="")
            assert model.send(request(), ignore).text == "hello"


class TestHangingUp:
    def test_a_stop_passes_through_and_closes_the_connection(self, reach: Reach) -> None:
        def stop(_text: str) -> None:
            raise Stopped(ExitCode.INTERRUPTED)

        with ScriptedEndpoint([silence(text("so"), events=4), text("next")]) as endpoint:
            model = reach(endpoint.url, silence_timeout_s=30)
            with pytest.raises(Stopped):
                model.send(request(), stop)
            assert model.send(request(), ignore).text == "next"

    def test_a_signal_ends_the_wait_for_a_silent_endpoint_at_once(self, reach: Reach) -> None:
        def stop(_number: int, _frame: object) -> None:
            raise Stopped(ExitCode.INTERRUPTED)

        with ScriptedEndpoint([silence()]) as endpoint:
            model = reach(endpoint.url, silence_timeout_s=60)
            model.connect()
            before = signal.signal(signal.SIGALRM, stop)
            started = time.monotonic()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                with pytest.raises(Stopped):
                    model.send(request(), ignore)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            assert time.monotonic() - started < 5

    def test_a_bug_in_what_shows_the_text_is_not_mistaken_for_a_failure(self, reach: Reach) -> None:
        def bug(_text: str) -> None:
            raise json.JSONDecodeError("mine", "", 0)

        with ScriptedEndpoint([text("hello")]) as endpoint, pytest.raises(json.JSONDecodeError, match="mine"):
            reach(endpoint.url).send(request(), bug)


def events(block: dict[str, Any], usage: Usage | None = None) -> list[Any]:
    """The events of a message of one block, to be spoiled."""
    whole = {"id": "msg_1", "model": "claude-test", "content": [block], "stop_reason": "tool_use"}
    return [dict(event) for event in sse.message_events(whole, usage or Usage(1, 1))]


def raw_tool_call(raw: str, stop_reason: str = "tool_use") -> Raw:
    """A tool call whose input is this text, well formed or not."""
    whole = events({"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}})
    whole[3]["delta"] = {"type": "input_json_delta", "partial_json": raw}
    whole[-2]["delta"]["stop_reason"] = stop_reason
    return Raw([sse.encode(event) for event in whole])


def _pings(clock: FakeClock) -> Iterator[bytes]:
    for _ in range(100):
        clock.advance(60)
        yield sse.encode({"type": "ping"})
