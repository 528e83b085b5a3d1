"""One exchange of the adapter with an endpoint that answers as it is told."""

from __future__ import annotations

from typing import Any

import pytest

from lopen.models.messages import ModelError, Response, Usage
from tests import fake_api
from tests.endpoint import (
    ScriptedEndpoint,
    Turn,
)
from tests.models.conftest import Reach, ignore, request


def sent(reach: Reach, turn: Turn, **settings: Any) -> Response:
    """The response to one request that is answered with `turn`."""
    with ScriptedEndpoint([turn]) as endpoint:
        return reach(endpoint.url, **settings).send(request(), ignore)


def failure(reach: Reach, turn: Turn, **settings: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        sent(reach, turn, **settings)
    return caught.value


def events(block: dict[str, Any], usage: Usage | None = None) -> list[Any]:
    """The events of a message of one block, to be spoiled."""
    whole = {"id": "msg_1", "model": "claude-test", "content": [block], "stop_reason": "tool_use"}
    return [dict(event) for event in fake_api.message_events(whole, usage or Usage(1, 1))]
