"""How the endpoint is reached: redirects, proxies and refused connections."""

from __future__ import annotations

import sys

import pytest

from lopen.core.errors import LopenError
from lopen.models.messages import Rejected
from tests.endpoint import ScriptedEndpoint, status
from tests.models.conftest import Reach, ignore, request
from tests.models.exchange import failure


@pytest.mark.parametrize("code", [302, 307])
def test_a_redirect_sends_the_prompt_nowhere(reach: Reach, code: int) -> None:
    with ScriptedEndpoint() as other:
        said = failure(reach, status(code, location=f"{other.url}/test-key/v1"))
        assert other.connections == 0
    assert isinstance(said, Rejected)
    assert f"redirects to {other.url}/[key]/v1 (HTTP {code}); nothing was sent there" in said.message
    assert "model.base_url" in said.hint


def test_a_proxy_that_needs_a_missing_library_names_it(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://person:secret@127.0.0.1:9")
    with pytest.raises(LopenError, match="socksio") as caught:
        reach("http://endpoint.invalid").send(request(), ignore)
    assert "secret" not in caught.value.message
