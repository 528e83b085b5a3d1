"""What is sent to a model, without the secrets that are known here: the one place all its text goes through.

A tool may read a file that holds a key, and a command may print one. The model gets `[redacted:known]` in its
place; a person hears of it once for each. Only known values are taken out: what merely looks like a secret may
be the very text that the model works on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from lopen.base.events import AlertRaised, Event
from lopen.llm.messages import Model, OnText, Request, Response

SIGNED: Final = frozenset({"thinking", "redacted_thinking"})  # goes back as it came, or not at all
KEPT: Final = frozenset({"type", "id", "name", "tool_use_id", "signature", "cache_control"})


class Secrets(Protocol):
    """What is known (`lopen.sandbox.known_secrets`)."""

    def refresh(self) -> None: ...

    def hide(self, text: str) -> str: ...

    def sources(self, text: str) -> set[str]: ...


class SecretFilteringModel:
    """A model that is never told a known secret. `notify` hears of each the first time it is kept back."""

    def __init__(self, inner: Model, secrets: Secrets, session: str, notify: Callable[[Event], None]) -> None:
        self._inner = inner
        self._secrets = secrets
        self._session = session
        self._notify = notify
        self._told: set[str] = set()

    @property
    def local(self) -> bool:
        """As the model behind it."""
        return bool(getattr(self._inner, "local", False))

    def connect(self) -> None:
        """As the model behind it."""
        self._inner.connect()

    def send(self, request: Request, on_text: OnText) -> Response:
        """As the model behind it, with a request that holds no known secret."""
        self._secrets.refresh()
        held: list[str] = []
        veiled = replace(
            request,
            system=[replace(block, text=self._hidden(block.text, held)) for block in request.system],
            messages=[
                {**message, "content": self._walked(message["content"], held)} for message in request.messages
            ],
        )
        self._tell({place for text in held for place in self._secrets.sources(text)})
        return self._inner.send(veiled, on_text)

    def _hidden(self, text: str, held: list[str]) -> str:
        clean = self._secrets.hide(text)
        if clean != text:
            held.append(text)
        return clean

    def _walked(self, value: Any, held: list[str]) -> Any:
        """The value with every text in it veiled; signed blocks, ids and names as they are."""
        if isinstance(value, str):
            return self._hidden(value, held)
        if isinstance(value, Mapping):
            if value.get("type") in SIGNED:
                return value
            return {k: inner if k in KEPT else self._walked(inner, held) for k, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._walked(inner, held) for inner in value]
        return value

    def _tell(self, places: set[str]) -> None:
        for place in sorted(places - self._told):
            self._told.add(place)
            self._notify(
                AlertRaised(
                    "secret",
                    f"session:{self._session}",
                    f"text for the model held the secret of {place}; it was taken out before it was sent",
                )
            )
