"""The model of a session: real or replayed, its exchanges recorded, and no secret sent to it.

A tool may read a file that contains a key, and a command may print one. The model gets `[redacted:known]` in its
place, and the user one alert per secret. Only known values are removed: text that merely looks like a secret may be
the text that the model works on.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lopen.application.command_context import CommandContext, ResumeOptions
from lopen.application.workplaces import recording_path
from lopen.core.clock import Clock, SystemClock
from lopen.core.errors import LopenError, PersonNeeded, did_you_mean
from lopen.core.events import AlertRaised, Event, TurnEnded
from lopen.models.anthropic_model import AnthropicModel
from lopen.models.messages import Model, OnText, OnUsage, Request, Response, ignore_usage
from lopen.models.recording import Recorder, RecordingModel, UnreadableRecording
from lopen.models.recording import load as load_recording
from lopen.models.replay import ReplayModel
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.keys import Value
from lopen.settings.schema import ALIASES, Settings, full_name
from lopen.settings.sources import Loaded
from lopen.store.folder import quarantine_file, state_folder
from lopen.store.journal import Journal
from lopen.workflow.session import Session

REPLAY = "replay:"
KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def require_credentials(settings: Settings) -> None:
    """Raise `NoCredentials` if the endpoint of the settings needs a key and there is none. Send nothing.

    A key in the environment is enough: importing the SDK to look further takes a second or two.
    """
    if settings.model.provider != "anthropic" or any(os.environ.get(name) for name in KEY_VARIABLES):
        return
    model = AnthropicModel(settings.model, os.environ, SystemClock())
    try:
        model.connect()
    finally:
        model.close()


def check_models(context: CommandContext, loaded: Loaded, override: str) -> None:
    """Settle the objections to the configured models before anything is paid for."""
    _confirm_models(context, loaded)
    if not override.startswith(REPLAY):
        _check_prices(context, loaded.settings, override)


def _check_prices(context: CommandContext, settings: Settings, override: str) -> None:
    """Tell of each model that will be asked and has no known price: its name may be wrong.

    Fallbacks are left out: those without a price are skipped. An endpoint of one's own may have any names.

    Raises:
        LopenError: a limit on cost would not hold for the model.
    """
    from lopen.models.messages import Usage
    from lopen.models.prices import cost_usd, known_models

    models, endpoint = settings.models, settings.model
    phases = ("requirement_gathering", "planning", "building", "research")
    asked = (
        {"--model": override} if override else {f"models.{name}": getattr(models, name) for name in phases}
    )
    asked["oracle.model"] = settings.oracle.model
    foreign = endpoint.provider != "anthropic" or endpoint.base_url or "ANTHROPIC_BASE_URL" in os.environ
    for key, name in asked.items():
        model = full_name(name)
        if not model or cost_usd(model, Usage()) is not None:
            continue
        likely = did_you_mean(name, (*ALIASES, *known_models()), "")
        if settings.budget.max_cost_usd > 0:
            near = f"{likely} Else " if likely else ""
            with_price = "--model sonnet" if key == "--model" else f"lopen config set --user {key} sonnet"
            raise LopenError(
                f"no price is known for {model} ({key}), so a limit on cost would not hold for it",
                hint=f"{near}name a model with a known price: {with_price}; or limit tokens instead: "
                "lopen config set budget.session_tokens N, with --max-cost 0",
            )
        if not foreign:
            context.warn(
                f"no model named {name} is in the price table; {likely or 'its cost is not counted'}"
            )


def _confirm_models(context: CommandContext, loaded: Loaded) -> None:
    """Ask the person once to confirm each model that only the repository names."""
    from lopen.settings.trust import confirm

    for model in loaded.unconfirmed:
        question = f"this repository sets {model.key} = {model.value!r}; use it?"
        answer = None if context.json else context.presentation.confirms(question)
        if answer is None:
            raise PersonNeeded(
                f"this repository sets a model that you have not confirmed: {model.key} = {model.value!r}",
                command=f"lopen config set --user {model.key} {shlex.quote(as_argument(model.value))}",
                hint="at a terminal lopen asks, and a yes holds for this project only; the command below sets it for all"
                " your projects",
            )
        if not answer:
            raise PersonNeeded(f"{model.key} was not confirmed", command="lopen config show")
        confirm(context.root, model.key, model.value)


def as_argument(value: Value) -> str:
    """Return a setting's value as `lopen config set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def session_model(
    stack: ExitStack,
    settings: Settings,
    options: ResumeOptions,
    journal: Journal,
    context: CommandContext,
    secrets: KnownSecrets,
) -> Model:
    """Return the model that the options and settings name; `stack` closes it."""

    clock = SystemClock()

    def step() -> str:
        return journal.session.step.value

    if options.model.startswith(REPLAY):
        recording = load_recording(Path(options.model.removeprefix(REPLAY)))
        counted = "SELECT count(*) FROM events WHERE session=? AND name=?"
        row = journal.database.connection.execute(counted, (journal.session.id, TurnEnded.name)).fetchone()
        answered = int(row[0])
        return ReplayModel(recording, step=step, answered=answered)
    real = AnthropicModel(settings.model, os.environ, clock)
    stack.callback(real.close)
    recorder = None
    if settings.workflow.record:
        recorder = _recorder(context, journal.session, clock, secrets.redact)
    model = real if recorder is None else RecordingModel(real, recorder, step, journal.tell)
    return SecretFilteringModel(model, secrets, journal.session.id, journal.tell)


def _recorder(
    context: CommandContext, session: Session, clock: Clock, hide: Callable[[str], str]
) -> Recorder | None:
    """Continue the session's recording. A damaged one is moved aside; a failure does not stop the session."""
    path = recording_path(context.root, session.id)
    try:
        try:
            return Recorder(path, session.module, redact=hide, clock=clock)
        except UnreadableRecording as error:
            kept = quarantine_file(path, state_folder(context.root))
            context.warn(f"{error.message}; moved to {kept.relative_to(context.root)}; a new one is started")
            return Recorder(path, session.module, redact=hide, clock=clock)
    except OSError as error:
        context.warn(f"this run is not recorded: {path}: {error.strerror or error}")
        return None


SIGNED: Final = frozenset({"thinking", "redacted_thinking"})  # goes back as it came, or not at all
KEPT: Final = frozenset({"type", "id", "name", "tool_use_id", "signature", "cache_control"})


class SecretFilteringModel:
    """A model that never receives a known secret. `notify` gets one alert per secret that was removed."""

    def __init__(
        self, inner: Model, secrets: KnownSecrets, session: str, notify: Callable[[Event], None]
    ) -> None:
        self._inner = inner
        self._secrets = secrets
        self._session = session
        self._notify = notify
        self._reported: set[str] = set()

    @property
    def local(self) -> bool:
        """Same as in the wrapped model."""
        return bool(getattr(self._inner, "local", False))

    def connect(self) -> None:
        """Same as in the wrapped model."""
        self._inner.connect()

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        """Send through the wrapped model, without known secrets in the request."""
        self._secrets.refresh()
        found: list[str] = []
        hide = self._secrets.hide
        filtered = replace(
            request,
            system=[replace(block, text=_filtered_text(block.text, found, hide)) for block in request.system],
            messages=[
                {**message, "content": _filtered(message["content"], found, hide)}
                for message in request.messages
            ],
        )
        self._report({place for text in found for place in self._secrets.sources(text)})
        return self._inner.send(filtered, on_text, on_usage)

    def _report(self, places: set[str]) -> None:
        for place in sorted(places - self._reported):
            self._reported.add(place)
            self._notify(
                AlertRaised(
                    "secret",
                    f"session:{self._session}",
                    f"text for the model contained the secret of {place}; it was removed before sending",
                )
            )


Hide = Callable[[str], str]


def _filtered_text(text: str, found: list[str], hide: Hide) -> str:
    clean = hide(text)
    if clean != text:
        found.append(text)
    return clean


def _filtered(value: Any, found: list[str], hide: Hide, *, blocks: bool = True) -> Any:
    """Filter every text in the value; signed blocks, and ids and names of `blocks`, are unchanged."""
    if isinstance(value, str):
        return _filtered_text(value, found, hide)
    if isinstance(value, Mapping):
        if blocks and value.get("type") in SIGNED:
            return value
        return {
            k: inner
            if blocks and k in KEPT
            else _filtered(inner, found, hide, blocks=blocks and k == "content")
            for k, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_filtered(inner, found, hide, blocks=blocks) for inner in value]
    return value
