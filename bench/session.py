"""A session in a temporary project with a scripted endpoint, driven inside this process, for measuring."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lopen.application.command_context import CommandContext, RunOptions
from lopen.application.decisions import record, specification
from lopen.application.open_store import open_store
from lopen.application.wiring import StandIns, wired
from lopen.cli.terminal import TerminalPresentation
from lopen.core.clock import Clock, SystemClock
from lopen.loop.context import SessionContext
from lopen.loop.startup import start
from lopen.settings.sources import load
from lopen.workflow.session import Session
from tests.endpoint import ScriptedEndpoint
from tests.project import Project


@contextmanager
def home() -> Iterator[Path]:
    """A home of its own with a git identity, so that nothing of the person's is read."""
    with tempfile.TemporaryDirectory(prefix="lopen-bench-") as folder:
        path = Path(folder)
        (path / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.invalid\n", "utf-8")
        before = dict(os.environ)
        os.environ.update(HOME=folder, XDG_CONFIG_HOME=f"{folder}/config", XDG_DATA_HOME=f"{folder}/data")
        try:
            yield path
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def approved(
    script: Any, text: str, *, clock: Clock | None = None, **flags: Any
) -> Iterator[tuple[SessionContext, ScriptedEndpoint]]:
    """A session that stands at the gate with its approval, wired to a scripted endpoint; nothing is shown."""
    with home() as folder, ScriptedEndpoint(script) as endpoint:
        project = Project(folder / "project", endpoint)
        project.specify(text=text)
        os.environ.update(endpoint.environment)
        context = CommandContext(project.root, presentation=TerminalPresentation())
        loaded = load(project.root, flags={"sandbox.mode": "none", **flags})
        store = open_store(context, new=True)
        record(store, specification(project.root, store, "calc"), "")
        now = clock.now() if clock else datetime.now(UTC)
        session = Session(store.new_id("calc", now), "calc", now)
        stand_ins = StandIns(clock=clock or SystemClock())
        options = RunOptions(quiet=True)
        with wired(context, loaded.settings, store, session, options, stand_ins=stand_ins) as loop:
            start(loop, resumed=False)
            yield loop, endpoint
