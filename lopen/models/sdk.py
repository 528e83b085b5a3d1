"""The SDK's clients, and the translation of their exceptions. The only importer of `anthropic`.

The import takes a second, so it waits for the first call. No key may reach an error message: messages are scrubbed,
and the SDK's own exceptions are not chained, because they quote headers and bodies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, TypeVar, assert_never
from urllib.parse import urlsplit

import anthropic
import httpx2

from lopen.core.clock import Clock
from lopen.core.errors import LopenError
from lopen.core.extras import install_command
from lopen.models.deadline import Deadline
from lopen.models.failures import Refusal, classify
from lopen.models.messages import ModelError, NoCredentials, Rejected, TransientFailure
from lopen.models.transport import bounded_client

Provider = Literal["anthropic", "bedrock", "vertex", "foundry"]
T = TypeVar("T")

KEY: Final = re.compile(r"sk-ant-[A-Za-z0-9_-]+|(?<=Bearer )\S+")
LONGEST_ADDRESS: Final = 200
SCRUBBED: Final = "[key]"
NO_KEY: Final = "no key for the model endpoint was found"
CREDENTIALS_HINT: Final = {
    "anthropic": "to set one: export ANTHROPIC_API_KEY=sk-ant-...; to try it: lopen doctor",
    "bedrock": "Set AWS_REGION and AWS credentials, as the AWS command line uses them, or AWS_BEARER_TOKEN_BEDROCK.",
    "vertex": "Set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID, and log in with gcloud.",
    "foundry": "Set ANTHROPIC_FOUNDRY_API_KEY and ANTHROPIC_FOUNDRY_RESOURCE.",
}

_Client = (
    anthropic.Anthropic | anthropic.AnthropicBedrock | anthropic.AnthropicVertex | anthropic.AnthropicFoundry
)


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The endpoint and its time limits. For empty strings, the SDK uses its own sources."""

    provider: Provider = "anthropic"
    base_url: str = ""
    api_key: str = ""
    local: bool = False  # on this machine's loopback: proxies of the environment are not used
    connect_timeout_s: float = 10.0
    silence_timeout_s: float = 120.0
    total_timeout_s: float = 3600.0


class Sdk:
    """A client that sends a body and returns the events of the answer. It translates the SDK's exceptions."""

    def __init__(self, connection: EndpointSettings, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._deadline = Deadline(clock)
        self._client = self._translated("", lambda: _client(connection, self._deadline))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def require_credentials(self) -> None:
        """Raise `NoCredentials` if there are none. Only the provider `anthropic` allows this check before a request."""
        client = self._client
        if self._connection.provider != "anthropic":
            return
        if not isinstance(client, anthropic.Anthropic) or client.credentials is not None:
            return
        headers = {name.lower() for name, value in client.default_headers.items() if value}
        if not headers & {"authorization", "x-api-key"}:
            raise NoCredentials(NO_KEY, hint=CREDENTIALS_HINT["anthropic"])

    def send(self, body: Mapping[str, Any]) -> AnswerStream:
        """Send `body`; return when the answer's headers have arrived."""
        self._deadline.begin(self._connection.total_timeout_s)
        model = str(body["model"])
        # The plain `post` returns each event as its JSON object: unknown blocks and deltas are preserved, and no
        # typed object is built for every piece of text.
        stream = self._translated(
            model,
            lambda: self._client.post(
                "/v1/messages",
                cast_to=object,
                body=dict(body),
                stream=True,
                stream_cls=anthropic.Stream[object],
            ),
        )
        return AnswerStream(stream, lambda step: self._translated(model, step))

    def _translated(self, model: str, step: Callable[[], T]) -> T:
        try:
            return step()
        except (ModelError, LopenError):
            raise
        except Exception as error:  # noqa: BLE001  # cloud credentials raise types of libraries that may be absent
            failure = self._failure(error, model)
        raise failure  # outside the handler, so that the foreign exception is not its context

    def _failure(self, error: Exception, model: str) -> Exception:
        if isinstance(error, anthropic.APIStatusError):
            refusal = Refusal(
                status=error.status_code,
                kind=str(error.type or ""),
                message=self._scrubbed(str(error.api_message or error.message)),
                headers={name.lower(): value for name, value in error.response.headers.items()},
            )
            how = CREDENTIALS_HINT[self._connection.provider]
            return classify(refusal, model=model, now=self._clock.now(), credentials_hint=how)
        cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error
        if isinstance(cause, ModelError):
            cause.message = self._scrubbed(cause.message)
            return cause
        said = self._scrubbed(f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__)
        return _unanswered(error, cause, said, self._connection, self._host())

    def _host(self) -> str:
        """Return the endpoint's host, with its port where that is not the usual one; never its credentials."""
        address = urlsplit(str(getattr(getattr(self, "_client", None), "base_url", "")))
        port = f":{address.port}" if address.port else ""
        return f"{address.hostname}{port}" if address.hostname else "the model endpoint"

    def _scrubbed(self, text: str) -> str:
        secrets = [self._connection.api_key, *_credentials(getattr(self, "_client", None))]
        for secret in secrets:
            if len(secret.strip()) > 3:
                text = text.replace(secret.strip(), SCRUBBED)
        return KEY.sub(SCRUBBED, text)


class AnswerStream:
    """One answer as it arrives: a context manager over its events that closes the connection on exit."""

    def __init__(
        self, stream: anthropic.Stream[object], translated: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._stream = stream
        self._translated = translated
        headers = stream.response.headers
        self.request_id: str = headers.get("request-id", "")
        self.content_type: str = headers.get("content-type", "")
        url = stream.response.url  # shown without a user name and password
        self.address = f"{url.scheme}://{url.netloc.decode()}{url.path}"[:LONGEST_ADDRESS]

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[object]:
        events = iter(self._stream)
        end = object()
        while (event := self._translated(lambda: next(events, end))) is not end:
            yield event


def _client(connection: EndpointSettings, deadline: Deadline) -> _Client:
    """Return the SDK's client of the provider, without its retries (see `lopen.models.retry`) and telemetry."""
    timeout = anthropic.Timeout(
        connection.silence_timeout_s,
        connect=connection.connect_timeout_s,
        pool=connection.connect_timeout_s,
    )
    options: dict[str, Any] = {"timeout": timeout, "max_retries": 0, "open_telemetry": False}
    if connection.base_url:
        options["base_url"] = connection.base_url
    if connection.api_key:
        options["api_key"] = connection.api_key
        options["default_headers"] = {"x-api-key": connection.api_key}  # over ANTHROPIC_CUSTOM_HEADERS
    options["http_client"] = bounded_client(deadline, proxies=not connection.local)
    match connection.provider:
        case "anthropic":
            return anthropic.Anthropic(**options)
        case "bedrock":
            return anthropic.AnthropicBedrock(**options)
        case "vertex":
            return anthropic.AnthropicVertex(**options)
        case "foundry":
            return anthropic.AnthropicFoundry(**options)
    assert_never(connection.provider)


def _unanswered(
    error: Exception, cause: BaseException | None, said: str, connection: EndpointSettings, host: str
) -> Exception:
    """Return the failure for a request without an answer from the endpoint."""
    provider = connection.provider
    if isinstance(error, ImportError) or "missing required dependency" in str(error):
        return LopenError(
            f"model.provider = {provider} needs a library that is not installed: {said}",
            hint=f"Install it with: {install_command(provider)}",
        )
    if isinstance(cause, httpx2.LocalProtocolError):
        return Rejected(
            "the key, or another header, contains characters that HTTP does not allow",
            hint=CREDENTIALS_HINT[provider],
        )
    if isinstance(cause, (httpx2.InvalidURL, httpx2.UnsupportedProtocol)):
        return Rejected(
            f"the endpoint's address is not valid: {said}",
            hint="Check model.base_url and ANTHROPIC_BASE_URL.",
        )
    if isinstance(error, (anthropic.APIConnectionError, httpx2.HTTPError, httpx2.StreamError)):
        if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return TransientFailure(f"cannot reach {host} ({said})")
        return TransientFailure(f"the connection to {host} failed: {said}")
    if isinstance(error, (anthropic.APIError, json.JSONDecodeError, UnicodeDecodeError, RecursionError)):
        return TransientFailure(f"cannot read the endpoint's answer: {said}")
    if isinstance(error, TypeError) and "authentication method" in str(error):
        return Rejected(NO_KEY, hint=CREDENTIALS_HINT[provider])
    if (
        isinstance(error, anthropic.AnthropicError)
        or provider != "anthropic"
        or isinstance(error, ValueError)
    ):
        return Rejected(f"cannot use the {provider} client: {said}", hint=CREDENTIALS_HINT[provider])
    return error


def _credentials(client: object) -> Iterator[str]:
    for name in ("api_key", "auth_token", "aws_secret_key", "aws_session_token", "access_token"):
        value = getattr(client, name, None)
        if isinstance(value, str):
            yield value
