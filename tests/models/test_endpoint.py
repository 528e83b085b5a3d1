"""The loopback endpoint: what it refuses, how it counts, and that it is quick and ends when told."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from lopen.models.fake_api import Message, MessagesEndpoint
from lopen.models.messages import Rejected, Response
from tests.endpoint import (
    NoResponse,
    ScriptedEndpoint,
    silence,
    text,
)
from tests.models.conftest import Reach, ignore, request

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
BODY = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}


def post(url: str, body: Any, headers: dict[str, str], path: str = "/v1/messages") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if raw.startswith(b"{") else raw
    finally:
        connection.close()


class TestRefusing:
    @pytest.mark.parametrize(
        ("headers", "body", "path", "status", "kind"),
        [
            ({"anthropic-version": "x"}, BODY, "/v1/messages", 401, "authentication_error"),
            (HEADERS | {"x-api-key": "wrong"}, BODY, "/v1/messages", 401, "authentication_error"),
            ({"x-api-key": "k"}, BODY, "/v1/messages", 400, "invalid_request_error"),
            (HEADERS, BODY | {"max_tokens": 0}, "/v1/messages", 400, "invalid_request_error"),
            (HEADERS, BODY, "/v1/complete", 404, "not_found_error"),
        ],
    )
    def test_what_the_api_refuses_never_reaches_the_script(
        self, headers: dict[str, str], body: Any, path: str, status: int, kind: str
    ) -> None:
        with ScriptedEndpoint(text("never"), key="k") as endpoint:
            code, answer = post(endpoint.url, body, headers, path)
            assert (code, answer["error"]["type"]) == (status, kind)
            assert endpoint.requests == []

    def test_a_bearer_token_is_a_key_too(self) -> None:
        with ScriptedEndpoint(text("yes"), key="k") as endpoint:
            headers = {"authorization": "Bearer k", "anthropic-version": "x"}
            assert post(endpoint.url, BODY, headers)[0] == 200

    def test_an_answer_that_fails_is_told_to_the_client(self, reach: Reach) -> None:
        def faulty(_body: Any) -> Message:
            raise AssertionError("the test is wrong")

        with ScriptedEndpoint(faulty) as endpoint, pytest.raises(Rejected, match="the test is wrong"):
            reach(endpoint.url).send(request(), ignore)

    def test_a_script_that_is_used_up_says_so(self, reach: Reach) -> None:
        with ScriptedEndpoint() as endpoint, pytest.raises(Rejected, match="no turn left"):
            reach(endpoint.url).send(request(), ignore)


class TestServing:
    def test_several_clients_are_served_side_by_side(self, reach: Reach) -> None:
        meeting = threading.Barrier(3, timeout=10)

        def answer(_body: Any) -> Message:
            meeting.wait()
            return Message([{"type": "text", "text": "met"}])

        responses: list[Response] = []
        with MessagesEndpoint(answer) as endpoint:
            model = reach(endpoint.url)
            threads = [
                threading.Thread(target=lambda: responses.append(model.send(request(), ignore)))
                for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
        assert [response.text for response in responses] == ["met"] * 3

    @pytest.mark.parametrize("turn", [silence(), NoResponse("silence")])
    def test_closing_ends_a_silent_answer_at_once(self, reach: Reach, turn: Any) -> None:
        endpoint = ScriptedEndpoint([turn])
        endpoint.__enter__()
        failures: list[Exception] = []

        def wait_for_it() -> None:
            try:
                reach(endpoint.url).send(request(), ignore)
            except Exception as error:  # noqa: BLE001  # whatever it is, the test looks at it
                failures.append(error)

        thread = threading.Thread(target=wait_for_it)
        thread.start()
        while not endpoint.requests:
            thread.join(0.01)
        endpoint.__exit__(None, None, None)
        thread.join(10)
        assert not thread.is_alive()
        assert len(failures) == 1
