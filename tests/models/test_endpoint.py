"""The loopback endpoint: what it refuses, how it counts, and that it is quick and ends when told."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from lopen.models.fake_api import Message, MessagesEndpoint
from lopen.models.messages import Rejected, Response, SystemBlock, ToolSpec, Usage
from lopen.models.request_body import body_of
from tests.endpoint import (
    NoResponse,
    ScriptedEndpoint,
    last_result,
    silence,
    text,
    tool_results,
    tools,
    verdict,
)
from tests.messages_api import PromptCache
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


class TestScripting:
    def test_turns_may_use_what_the_tools_gave(self, reach: Reach) -> None:
        def second(body: Any) -> Message:
            return text(f"{last_result(body, 'write_file').data['bytes']} of {len(tool_results(body))}")

        with ScriptedEndpoint([tools(("write_file", {"path": "a"})), second]) as endpoint:
            model = reach(endpoint.url)
            first = model.send(request(), ignore)
            outcome = {
                "type": "tool_result",
                "tool_use_id": first.tool_uses[0].id,
                "content": '{"bytes": 3}\nraw',
            }
            history = [
                *request().messages,
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": [outcome]},
            ]
            assert model.send(request(messages=history), ignore).text == "3 of 1"
            assert endpoint.left == 0
            with pytest.raises(LookupError):
                last_result(endpoint.requests[1], "read_file")

    def test_the_oracle_and_routes_do_not_use_up_the_script(self, reach: Reach) -> None:
        submit = ToolSpec("submit_verdict", "", {"type": "object"})
        routes = [(lambda body: "question" in json.dumps(body["messages"]), [text("an answer")])]
        with ScriptedEndpoint(
            [text("a turn")], oracle=[verdict(), verdict(False)], routes=routes
        ) as endpoint:
            model = reach(endpoint.url)
            oracle = request(tools=[submit], tool_choice="submit_verdict", purpose="oracle")
            verdicts = [model.send(oracle, ignore).tool_uses[0] for _ in range(2)]
            assert [use.input and use.input["passed"] for use in verdicts] == [True, False]
            assert verdicts[0].id != verdicts[1].id
            assert model.send(request("a question"), ignore).text == "an answer"
            assert model.send(request(), ignore).text == "a turn"
            counts = len(endpoint.requests), len(endpoint.oracle_requests), len(endpoint.routed_requests)
            assert counts == (1, 2, 1)


class TestPromptCache:
    def test_a_growing_conversation_is_read_and_only_its_end_written(self, reach: Reach) -> None:
        system = [SystemBlock("stable " * 2000, cached=True)]
        history = list(request("first " * 500).messages)
        usages: list[Usage] = []
        with ScriptedEndpoint(text("an answer")) as endpoint:
            model = reach(endpoint.url)
            for turn in range(4):
                response = model.send(request(system=system, messages=history), ignore)
                usages.append(response.usage)
                history += [
                    {"role": "assistant", "content": response.content},
                    {"role": "user", "content": [{"type": "text", "text": f"more {turn} " * 100}]},
                ]
        assert usages[0].cache_read_tokens == 0
        for before, after in itertools.pairwise(usages):
            assert after.cache_read_tokens == before.cache_read_tokens + before.cache_write_tokens
            assert after.cache_write_tokens < 400

    def test_the_mark_before_the_last_bridges_a_turn_of_many_blocks(self) -> None:
        cache = PromptCache(smallest=1)
        opening = request("first " * 500).messages
        cache.input_usage(body_of(request(messages=opening)))
        uses = [{"type": "tool_use", "id": f"t{i}", "name": "write_file", "input": {}} for i in range(15)]
        results = [{"type": "tool_result", "tool_use_id": f"t{i}", "content": "{}"} for i in range(15)]
        history = [*opening, {"role": "assistant", "content": uses}, {"role": "user", "content": results}]
        assert cache.input_usage(body_of(request(messages=history))).cache_read_tokens > 700

    def test_another_model_or_another_beginning_reads_nothing(self) -> None:
        def body(model: str, words: str) -> dict[str, Any]:
            block = {"type": "text", "text": words * 5000, "cache_control": {"type": "ephemeral"}}
            return {"model": model, "system": [block], "messages": []}

        cache = PromptCache()
        assert cache.input_usage(body("m", "a")).cache_write_tokens > 1024
        assert cache.input_usage(body("m", "a")).cache_read_tokens > 1024
        assert cache.input_usage(body("n", "a")).cache_read_tokens == 0
        assert cache.input_usage(body("m", "b")).cache_read_tokens == 0

    def test_a_small_prefix_is_not_kept(self) -> None:
        block = {"type": "text", "text": "small", "cache_control": {"type": "ephemeral"}}
        body = {"model": "m", "system": [block], "messages": [{"role": "user", "content": "hello"}]}
        cache = PromptCache()
        assert cache.input_usage(body) == cache.input_usage(body)
        assert cache.input_usage(body).cache_write_tokens == 0
