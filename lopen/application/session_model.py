"""The model of a session: real or replayed, its exchanges recorded, and no secret sent to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.application.confinement import recording_path
from lopen.application.run_options import ResumeOptions
from lopen.base.clock import Clock, SystemClock
from lopen.llm.anthropic_model import AnthropicModel
from lopen.llm.messages import Model
from lopen.llm.recorder import Recorder, RecordingModel
from lopen.llm.recording import UnreadableRecording
from lopen.llm.recording import load as load_recording
from lopen.llm.replay import ReplayModel
from lopen.llm.secret_filter import SecretFilteringModel
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.storage.folder import quarantine_file, state_folder
from lopen.storage.journal import Journal
from lopen.workflow.session import Session

REPLAY = "replay:"


def require_credentials(settings: Settings) -> None:
    """Raise `NoCredentials` if the endpoint of the settings needs a key and there is none. Send nothing."""
    model = AnthropicModel(settings.model, os.environ, SystemClock())
    try:
        model.connect()
    finally:
        model.close()


def session_model(
    stack: ExitStack,
    settings: Settings,
    options: ResumeOptions,
    journal: Journal,
    clock: Clock,
    context: CommandContext,
    secrets: KnownSecrets,
) -> Model:
    """Return the model that the options and settings name; `stack` closes it."""

    def step() -> str:
        return journal.session.step.value

    if options.model.startswith(REPLAY):
        recording = load_recording(Path(options.model.removeprefix(REPLAY)))
        return stack.enter_context(ReplayModel(recording, step=step, clock=clock))
    real = AnthropicModel(settings.model, os.environ, clock)
    stack.callback(real.close)
    recorder = None
    if settings.recording.enabled:
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
