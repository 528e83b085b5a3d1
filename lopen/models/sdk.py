"""The SDK's clients and its stream, and the translation of its exceptions. The only importer of `anthropic`.

The import takes a second, so it waits for the first request. No key may reach an error message: messages are scrubbed,
and the SDK's own exceptions are not chained, because they quote headers and bodies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, assert_never, cast, get_args
from urllib.parse import urlsplit

import anthropic
import httpx2
from anthropic.resources.messages import Messages

from lopen.core.clock import Clock
from lopen.core.errors import LopenError, install_command
from lopen.models.messages import (
    ModelError,
    NoCredentials,
    OnText,
    OnUsage,
    Rejected,
    Request,
    Response,
    StopReason,
    ToolUse,
    TransientFailure,
    Usage,
    parse_input,
)
from lopen.models.request_body import body_of
from lopen.models.retry import Refusal, classify
from lopen.settings.schema import ModelSettings

T = TypeVar("T")

KEY: Final = re.compile(r"sk-ant-[A-Za-z0-9_-]+|(?<=Bearer )\S+")
LONGEST_ADDRESS: Final = 300
REFUSED_RETRIES: Final = 4  # some 8 s, which a restart of the endpoint takes
SCRUBBED: Final = "[key]"
CONNECT_TIMEOUT_S: Final = 10.0
STOP_REASONS: Final = frozenset(get_args(StopReason))
MAX_TOKENS: Final = 100_000_000  # a larger count for one request is an error of the endpoint
BYTES_PER_TOKEN: Final = 3  # of streamed output: less than a token has on average, so no estimate is too low
NO_KEY: Final = "no key for the model endpoint was found"
CREDENTIALS_HINT: Final = {
    "anthropic": "to set a key: export ANTHROPIC_API_KEY=sk-ant-...; to try it: lopen doctor --online",
    "bedrock": "Set AWS_REGION and AWS credentials, as the AWS command line uses them, or AWS_BEARER_TOKEN_BEDROCK.",
    "vertex": "Set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID, and log in with gcloud.",
    "foundry": "Set ANTHROPIC_FOUNDRY_API_KEY and ANTHROPIC_FOUNDRY_RESOURCE.",
}

_Client = (
    anthropic.Anthropic | anthropic.AnthropicBedrock | anthropic.AnthropicVertex | anthropic.AnthropicFoundry
)
_Stream = anthropic.MessageStream[Any]


class Sdk:
    """A client that sends requests and reads their answers. It translates the SDK's exceptions."""

    def __init__(self, settings: ModelSettings, base_url: str, clock: Clock, *, local: bool) -> None:
        """Open a client. Without `base_url` the SDK finds the endpoint; a `local` one is on this machine's loopback."""
        self._provider = settings.provider
        self._clock = clock
        self._client = self._translated("", lambda: _client(settings, base_url, local))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def require_credentials(self) -> None:
        """Raise `NoCredentials` if there are none. Only the provider `anthropic` allows this check before a request."""
        client = self._client
        if self._provider != "anthropic":
            return
        if not isinstance(client, anthropic.Anthropic) or client.credentials is not None:
            return
        headers = {name.lower() for name, value in client.default_headers.items() if value}
        if not headers & {"authorization", "x-api-key"}:
            raise NoCredentials(NO_KEY, hint=CREDENTIALS_HINT["anthropic"])

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage) -> Response:
        """Send `request` once, read the answer to its end, and return it."""
        answer = Messages(cast(anthropic.Anthropic, self._client)).stream(**body_of(request))
        stream = self._translated(request.model, answer.__enter__)
        with stream:
            progress = _Progress(on_text, on_usage)
            try:
                # Beyond message_stop: the connection can only be reused if the stream is read to its end.
                for event in self._events(stream, request.model):
                    progress.note(event, stream)
            except TransientFailure:
                if not progress.stopped and (_is_event_stream(stream.response) or progress.started):
                    raise  # after message_stop the response is complete
            if not progress.started and not _is_event_stream(stream.response):
                raise TransientFailure(_no_stream(stream.response), retries=1)
            return progress.response(stream)

    def _events(self, stream: _Stream, model: str) -> Iterator[Any]:
        """Yield the events; only a failure to read one is translated, not a failure of the caller."""
        events = iter(stream)
        end = object()
        while (event := self._translated(model, lambda: next(events, end), reading=True)) is not end:
            yield event

    def _translated(self, model: str, step: Callable[[], T], *, reading: bool = False) -> T:
        try:
            return step()
        except (ModelError, LopenError):
            raise
        except Exception as error:  # noqa: BLE001  # cloud credentials raise types of libraries that may be absent
            failure = self._failure(error, model, reading=reading)
        raise failure  # outside the handler, so that the foreign exception is not its context

    def _failure(self, error: Exception, model: str, *, reading: bool) -> Exception:
        if isinstance(error, anthropic.APIStatusError):
            if 300 <= error.status_code < 400:
                return self._redirect_refused(error.response)
            refusal = Refusal(
                status=error.status_code,
                kind=str(error.type or ""),
                message=self._scrubbed(str(error.api_message or error.message)),
                headers={name.lower(): value for name, value in error.response.headers.items()},
            )
            how = CREDENTIALS_HINT[self._provider]
            return classify(refusal, model=model, now=self._clock.now(), credentials_hint=how)
        cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error
        said = self._scrubbed(f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__)
        if reading and not isinstance(error, (anthropic.APIError, httpx2.HTTPError)):
            # The SDK puts the message together as it comes, and a malformed one can raise any exception.
            return TransientFailure(f"cannot read the endpoint's answer: {said}")
        return _unanswered(error, cause, said, self._provider, self._host())

    def _redirect_refused(self, answer: httpx2.Response) -> Rejected:
        """Return the error for a redirect, whose target would receive the whole prompt: the user must decide."""
        location = " ".join(answer.headers.get("location", "").split())[:LONGEST_ADDRESS]
        return Rejected(
            f"the model endpoint redirects to {self._scrubbed(location) or 'nowhere'} (HTTP {answer.status_code});"
            " nothing was sent there",
            answer.status_code,
            hint="If that is your endpoint, name it: lopen config set --user model.base_url URL, or ANTHROPIC_BASE_URL.",
        )

    def _host(self) -> str:
        """Return the endpoint's host, with its port where that is not the usual one; never its credentials."""
        address = urlsplit(str(getattr(getattr(self, "_client", None), "base_url", "")))
        port = f":{address.port}" if address.port else ""
        return f"{address.hostname}{port}" if address.hostname else "the model endpoint"

    def _scrubbed(self, text: str) -> str:
        for secret in _credentials(getattr(self, "_client", None)):
            if len(secret.strip()) > 3:
                text = text.replace(secret.strip(), SCRUBBED)
        return KEY.sub(SCRUBBED, text)


@dataclass
class _Progress:
    """The received part of one answer, beside the message that the SDK puts together.

    The SDK reads a tool's unfinished input as far as it goes, so a call that was cut would look whole. Therefore the
    text of each input is kept and parsed once it ends.
    """

    on_text: OnText
    on_usage: OnUsage
    started: bool = False
    stopped: bool = False
    _inputs: dict[int, list[str]] = field(default_factory=dict)  # by the block's index
    _streamed_bytes: int = 0

    def note(self, event: Any, stream: _Stream) -> None:
        """Pass on the news of one event."""
        self.started = self.started or event.type == "message_start"
        if not self.started or self.stopped:
            return
        if event.type == "content_block_delta":
            self._note_delta(event.delta, event.index, stream)
        self.stopped = event.type == "message_stop"
        if not self.stopped:
            self.on_usage(self._used(stream))

    def _used(self, stream: _Stream) -> Usage:
        """Return the reported tokens; of the output at least an estimate of the received part."""
        usage = _usage(stream.current_message_snapshot.usage)
        streamed = -(-self._streamed_bytes // BYTES_PER_TOKEN)
        return replace(usage, output_tokens=max(usage.output_tokens, streamed))

    def _note_delta(self, delta: Any, index: int, stream: _Stream) -> None:
        piece = ""
        if delta.type == "text_delta":
            piece = delta.text
            self.on_text(_encodable(piece))
        elif delta.type == "thinking_delta":
            piece = delta.thinking
        elif delta.type == "input_json_delta":
            piece = delta.partial_json
            self._inputs.setdefault(index, []).append(piece)
            self.on_text(
                _encodable(piece), str(getattr(stream.current_message_snapshot.content[index], "name", ""))
            )
        self._streamed_bytes += len(piece.encode("utf-8", "surrogatepass"))

    def response(self, stream: _Stream) -> Response:
        """Return the complete response.

        Raises:
            TransientFailure: the stream ended early, or lacks a part of a response.
        """
        if not self.started or not self.stopped:
            raise _incomplete("the stream ended before message_stop")
        message = stream.current_message_snapshot
        usage = _usage(message.usage)
        if not message.stop_reason:
            raise _incomplete("message_stop came without a stop reason")
        content, tool_uses = [], []
        for index, block in enumerate(message.content):
            fields = json.loads(_encodable(json.dumps(block.to_dict(warnings=False), ensure_ascii=False)))
            if block.type in ("tool_use", "server_tool_use"):
                raw = "".join(self._inputs.get(index, ())) or json.dumps(fields.get("input") or {})
                given, error = parse_input(raw)
                fields["input"] = given if given is not None else {}  # the API accepts only an object
                if block.type == "tool_use":
                    tool_uses.append(
                        ToolUse(str(fields.get("id", "")), str(fields.get("name", "")), given, error)
                    )
            content.append(fields)
        ids = [use.id for use in tool_uses]
        if len(set(ids)) < len(ids) or not all(use.id and use.name for use in tool_uses):
            raise _incomplete("tool calls have the same id, or no id or name")
        return Response(
            id=_encodable(str(message.id)),
            model=_encodable(str(message.model)),
            content=tuple(content),
            tool_uses=tuple(tool_uses),
            stop_reason=_stop_reason(message.stop_reason, tool_uses),
            usage=self._used(stream) if usage.estimated else usage,
            request_id=stream.request_id or "",
        )


def _usage(reported: Any) -> Usage:
    """Return the reported tokens. A count that no request can have is none; without input and output it is estimated."""
    names = "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"
    counts = [getattr(reported, name, None) for name in names]
    known = [count if type(count) is int and 0 <= count <= MAX_TOKENS else None for count in counts]
    reads, output, writes, cached = known
    missing = output is None or (reads is None and writes is None and cached is None)
    return Usage(*(count or 0 for count in known), estimated=missing)


def _stop_reason(reason: str, tool_uses: list[ToolUse]) -> StopReason:
    """Return the reason; an unknown one becomes "tool_use" if there are calls, or else "end_turn"."""
    if reason in STOP_REASONS:
        return cast(StopReason, reason)
    return "tool_use" if tool_uses else "end_turn"


def _encodable(text: str) -> str:
    """Return text that can be written: join surrogate pairs that came in halves, and replace single halves."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _incomplete(how: str) -> TransientFailure:
    return TransientFailure(f"the endpoint's answer was incomplete or malformed: {how}")


def _is_event_stream(answer: httpx2.Response) -> bool:
    return "eventstream" in answer.headers.get("content-type", "").lower().replace("-", "")


def _no_stream(answer: httpx2.Response) -> str:
    """Return the message for an answer without a stream: a gateway's temporary page, or the wrong address."""
    address = (
        f"{answer.url.scheme}://{answer.url.netloc.decode()}{answer.url.path}"  # no user name and password
    )
    return (
        f"{address[:LONGEST_ADDRESS]} answered with {answer.headers.get('content-type', '')[:80] or 'nothing'!r}, "
        "not with an event stream; is that the model's endpoint? model.base_url or ANTHROPIC_BASE_URL names it"
    )


def _client(settings: ModelSettings, base_url: str, local: bool) -> _Client:
    """Return the SDK's client of the provider, without its retries (see `lopen.models.retry`) and telemetry."""
    timeout = anthropic.Timeout(settings.silence_timeout_s, connect=CONNECT_TIMEOUT_S, pool=CONNECT_TIMEOUT_S)
    options: dict[str, Any] = {"timeout": timeout, "max_retries": 0, "open_telemetry": False}
    if base_url:
        options["base_url"] = base_url
    # The SDK's own client uses the proxies of the environment, and would send the prompt after a redirect.
    options["http_client"] = (
        httpx2.Client(trust_env=False, timeout=timeout)
        if local
        else anthropic.DefaultHttpxClient(follow_redirects=False, timeout=timeout)
    )
    match settings.provider:
        case "anthropic":
            return anthropic.Anthropic(**options)
        case "bedrock":
            return anthropic.AnthropicBedrock(**options)
        case "vertex":
            return anthropic.AnthropicVertex(**options)
        case "foundry":
            return anthropic.AnthropicFoundry(**options)
    assert_never(settings.provider)


def _is_refused(error: BaseException | None) -> bool:
    """Return True if nobody listens at the address, which a wait of a minute hardly changes."""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


def _unanswered(
    error: Exception, cause: BaseException | None, said: str, provider: str, host: str
) -> Exception:
    """Return the failure for a request without an answer from the endpoint."""
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
            retries = REFUSED_RETRIES if _is_refused(cause) else None
            return TransientFailure(f"cannot reach {host} ({said})", retries=retries, unreachable=True)
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
