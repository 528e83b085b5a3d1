"""Failures of the model, from the answer to the exception."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.models.messages import ContextTooLong, Rejected, TransientFailure
from lopen.models.retry import MAX_WAIT_S, Refusal, classify, retry_after_s
from tests.endpoint import (
    NoResponse,
    Raw,
    ScriptedEndpoint,
    Turn,
    cut_stream,
    error_event,
    invalid_sse,
    reset,
    silence,
    status,
    tools,
)
from tests.fakes import FakeClock
from tests.models.conftest import Reach, ignore, request
from tests.models.exchange import failure


class TestBrokenStreams:
    @pytest.mark.parametrize("kept", [0, 1, 3, 5, 8])
    def test_a_stream_cut_anywhere_gives_no_response(self, reach: Reach, kept: int) -> None:
        answer = tools(("write_file", {"path": "a"}), say="Writing.")
        assert len(cut_stream(answer).pieces) == 9
        assert isinstance(failure(reach, cut_stream(answer, events=kept)), TransientFailure)

    @pytest.mark.parametrize("turn", [reset(), NoResponse("hang_up"), Raw((), then="reset"), invalid_sse()])
    def test_connection_and_protocol_errors_can_be_tried_again(self, reach: Reach, turn: Turn) -> None:
        assert isinstance(failure(reach, turn), TransientFailure)

    @pytest.mark.parametrize(
        "garbage",
        [
            b"event: message_start\ndata: {}\n\n",
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{}}\n\n',
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
            b"event: message_start\ndata: \xff\xfe\n\n",
            b"event: message_start\ndata: " + b"[" * 200_000 + b"\n\n",
        ],
    )
    def test_a_stream_out_of_order_can_be_tried_again(self, reach: Reach, garbage: bytes) -> None:
        assert isinstance(failure(reach, Raw([garbage])), TransientFailure)

    def test_silence_longer_than_the_limit_can_be_tried_again(self, reach: Reach) -> None:
        assert isinstance(failure(reach, silence(), silence_timeout_s=0.2), TransientFailure)
        assert isinstance(failure(reach, NoResponse("silence"), silence_timeout_s=0.2), TransientFailure)

    def test_an_endpoint_that_does_not_stream_is_named_as_such(self, reach: Reach) -> None:
        for page in (b"<html>hello</html>", b"<pre>\ndata: {no json\n\n</pre>"):
            with ScriptedEndpoint([Raw([page], content_type="text/html")]) as endpoint:
                with pytest.raises(TransientFailure, match="'text/html', not with an event stream") as found:
                    reach(endpoint.url.replace("://", "://me:hidden@")).send(request(), ignore)
                assert str(found.value).startswith(f"{endpoint.url}/v1/messages answered with")
            assert "ANTHROPIC_BASE_URL" in str(found.value)

    def test_nobody_listening_can_be_tried_again(self, reach: Reach) -> None:
        with ScriptedEndpoint() as endpoint:
            gone = endpoint.url
        with pytest.raises(TransientFailure, match=f"cannot reach {gone.partition('//')[2]} .*ConnectError"):
            reach(gone).send(request(), ignore)


class TestRefusals:
    def test_retry_after_is_read_as_seconds_and_as_a_date(self, reach: Reach) -> None:
        clock = FakeClock()
        later = clock.now().replace(minute=1)
        for headers, seconds in (
            ({"retry_after": format_datetime(later, usegmt=True)}, 60.0),
            ({"retry_after": "2"}, 2.0),
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

    @pytest.mark.parametrize(("kind", "after"), [("overloaded_error", 0), ("api_error", 4), ("novelty", 4)])
    def test_error_events_in_the_stream_can_be_tried_again(self, reach: Reach, kind: str, after: int) -> None:
        found = failure(reach, error_event(kind, after=after))
        assert isinstance(found, TransientFailure)
        assert kind in str(found)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(status=st.integers(300, 999), kind=st.text(max_size=20), message=st.text(max_size=80))
def test_every_refusal_becomes_exactly_one_kind_of_failure(status: int, kind: str, message: str) -> None:
    failure = classify(Refusal(status, kind, message), model="m", now=NOW)
    again = status in (408, 409, 425, 429) or status >= 500
    assert isinstance(failure, TransientFailure) == again
    assert isinstance(failure, (TransientFailure, ContextTooLong, Rejected))
    assert status != 413 or isinstance(failure, ContextTooLong)
    assert "\n" not in str(failure)


@given(value=st.text(max_size=30) | st.floats().map(str))
def test_any_retry_after_is_a_sensible_wait_or_none(value: str) -> None:
    wait = retry_after_s({"retry-after": value}, NOW)
    assert wait is None or 0 <= wait <= MAX_WAIT_S
