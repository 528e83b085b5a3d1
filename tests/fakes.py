"""Fakes of lopen's ports: a clock that moves by itself alone, and a model with answers from a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lopen.models.messages import ModelError, OnText, OnUsage, Rejected, Request, Response, ignore_usage


class FakeClock:
    """A clock that moves only with `sleep` and `advance`; `slept` records the waits."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Advance the time by `seconds`."""
        self._elapsed += max(0.0, seconds)


@dataclass
class ScriptedModel:
    """A fake of the port: returns `answers` in order and stores the requests it receives."""

    answers: list[Response | ModelError]
    requests: list[Request] = field(default_factory=list)

    def connect(self) -> None:
        """Do nothing: a scripted model needs no connection."""

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        self.requests.append(request)
        if not self.answers:
            raise Rejected("the scripted model has no more answers")
        answer = self.answers.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        if answer.text:
            on_text(answer.text)
        return answer
