"""What a model is sent holds no known secret; everything else goes as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lopen.application.session_model import SecretFilteringModel
from lopen.core.events import AlertRaised, Event
from lopen.models.messages import Request, Response, SystemBlock, Usage, unheard
from lopen.sandbox.known_secrets import KnownSecrets
from tests.fakes import ScriptedModel

SECRET = "a-secret-value-4711"


def test_every_text_is_veiled_and_a_person_hears_of_it_once(tmp_path: Path) -> None:
    answer = Response("id", "m", [{"type": "text", "text": SECRET}], [], "end_turn", Usage())
    inner, told = ScriptedModel([answer, answer]), list[Event]()
    model = SecretFilteringModel(inner, KnownSecrets(tmp_path, {"API_TOKEN": SECRET}), "s-1", told.append)
    thinking = {"type": "thinking", "thinking": SECRET, "signature": SECRET}
    content: list[dict[str, Any]] = [
        {"type": "text", "text": f"x {SECRET}", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_use", "id": SECRET, "name": "run", "input": {"a": [SECRET, {"name": SECRET}], "n": 1}},
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": SECRET}]},
        {"type": "tool_result", "tool_use_id": "1", "content": f'{{"out": "{SECRET}"}}', "is_error": False},
        thinking,
    ]
    request = Request("m", (SystemBlock(SECRET, cached=True),), [{"role": "user", "content": content}])

    model.send(request, unheard)
    assert model.send(request, unheard) is answer

    [sent, again] = inner.requests
    assert sent == again
    assert sent.system == [SystemBlock("[redacted:known]", cached=True)]
    assert sent.messages[0]["content"] == [
        {"type": "text", "text": "x [redacted:known]", "cache_control": {"type": "ephemeral"}},
        {
            "type": "tool_use",
            "id": SECRET,
            "name": "run",
            "input": {"a": ["[redacted:known]", {"name": "[redacted:known]"}], "n": 1},
        },
        {
            "type": "tool_result",
            "tool_use_id": "1",
            "content": [{"type": "text", "text": "[redacted:known]"}],
        },
        {
            "type": "tool_result",
            "tool_use_id": "1",
            "content": '{"out": "[redacted:known]"}',
            "is_error": False,
        },
        thinking,
    ]
    assert request.messages[0]["content"] is content
    [alert] = told
    assert isinstance(alert, AlertRaised)
    assert (alert.alert_type, alert.budget_id) == ("secret", "session:s-1")
    assert "API_TOKEN" in alert.message
    assert SECRET not in alert.message
