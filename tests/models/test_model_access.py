"""Keys, addresses and providers of the adapter, over real HTTP with the real SDK."""

from __future__ import annotations

import sys

import pytest

from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.models.anthropic_model import AnthropicModel
from lopen.models.messages import Rejected
from lopen.settings.schema import ModelSettings
from tests.endpoint import (
    ScriptedEndpoint,
    status,
    text,
)
from tests.models.conftest import Reach, ignore, request


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

    @pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://[::1"])
    def test_an_address_that_is_none_is_rejected(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "plain-test-secret")
        model = AnthropicModel(ModelSettings(), {"ANTHROPIC_BASE_URL": url}, SystemClock())
        with pytest.raises(Rejected):
            model.send(request(), ignore)

    @pytest.mark.parametrize(
        ("url", "local"),
        [
            ("http://127.0.0.1:8080", True),
            ("http://[::1]:1", True),
            ("https://api.anthropic.com", False),
            ("http://127.0.0.1.example.org", False),
        ],
    )
    def test_only_loopback_is_local(self, url: str, local: bool) -> None:
        assert AnthropicModel(ModelSettings(base_url=url), {}, SystemClock()).local is local


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

    @pytest.mark.parametrize(("provider", "library"), [("vertex", "google.auth")])
    def test_a_provider_without_its_library_names_the_extra(
        self, reach: Reach, monkeypatch: pytest.MonkeyPatch, provider: str, library: str
    ) -> None:
        for name in ("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "AWS_REGION"):
            monkeypatch.setenv(name, "somewhere")
        for name in (library, "botocore.auth"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(LopenError) as caught:
            reach("", provider=provider, api_key="").send(request(), ignore)
        assert f"[{provider}]" in caught.value.hint

    @pytest.mark.parametrize(
        ("provider", "variables", "path"),
        [
            (
                "bedrock",
                {"AWS_REGION": "eu-central-1", "AWS_BEARER_TOKEN_BEDROCK": "token"},
                "/model/claude-test/invoke-with-response-stream",
            ),
            ("foundry", {"ANTHROPIC_FOUNDRY_API_KEY": "foundry-key"}, "/anthropic/v1/messages"),
        ],
    )
    def test_a_provider_is_asked_through_its_own_client(
        self,
        reach: Reach,
        monkeypatch: pytest.MonkeyPatch,
        provider: str,
        variables: dict[str, str],
        path: str,
    ) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        prefix = "/anthropic" if provider == "foundry" else ""
        with ScriptedEndpoint([text("hello")]) as endpoint, pytest.raises(Rejected) as caught:
            reach(endpoint.url + prefix, provider=provider, api_key="").send(request(), ignore)
        assert f"{path} is not served here" in str(caught.value)
