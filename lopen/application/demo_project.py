"""The demo's project: the bundled example in a repository of its own, built from recorded answers."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from typing import Any

from lopen.application.command_context import CommandContext, ResumeOptions
from lopen.example import APPROVAL_NOTE, INTERPRETER, MODULE, RECORDING, lay_out
from lopen.settings.sources import Loaded
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

RECORDED = f"replay:{RECORDING}"


class DemoContext(CommandContext):
    """The context of a demo: only defaults and the demo's options, no configuration."""

    def load(self, flags: Mapping[str, Any] | None = None) -> Loaded:
        """Return the defaults, overridden by `flags`."""
        from lopen.settings.keys import nest
        from lopen.settings.schema import Settings

        given = {key: value for key, value in (flags or {}).items() if value is not None}
        return Loaded(Settings.model_validate(nest(given)), {})


def as_demo(context: CommandContext) -> DemoContext:
    """Return the context of a demo in the project; put the interpreter that runs lopen first in PATH."""
    program = own_command()
    os.environ["PATH"] = os.pathsep.join((str(INTERPRETER.parent), os.environ.get("PATH", os.defpath)))
    return DemoContext(
        context.root, context.json, context.verbose, context.presentation, context.given, program
    )


def own_command() -> str:
    """Return the command that starts lopen here: its name if PATH has it, else its path."""
    beside = INTERPRETER.with_name("lopen")
    if shutil.which("lopen"):
        return "lopen"
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(str(INTERPRETER))} -m lopen"


def plays_recording(store: SessionStore, session: Session, options: ResumeOptions) -> bool:
    """Return True for the session of a demo, which goes on with the recorded answers unless a model is named."""
    given = store.approval(session.module)
    return given is not None and given.note == APPROVAL_NOTE and not options.model


def prepare(context: DemoContext) -> None:
    """Create the example in the context's folder as a repository with one commit, and approve its specification."""
    from lopen.application.decisions import checked, record, specification
    from lopen.application.open_store import open_store
    from lopen.core.clock import SystemClock
    from lopen.git.clones import create_repository

    repository = create_repository(context.root, clock=SystemClock())
    lay_out(context.root)
    repository.commit(repository.snapshot(), None, "Begin the project\n", "main")
    store = open_store(context, new=True)
    record(store, checked(specification(context.root, store, MODULE)), APPROVAL_NOTE)
    store.database.close()
