"""The verify commands under `lopen doctor`: approved ones are run once, the programs of others are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from lopen.application.command_context import CommandContext
from lopen.application.doctor_report import CheckResult, Examined
from lopen.core.errors import LopenError


def verify_commands(examined: Examined) -> Iterator[CheckResult]:
    """Run the approved verify commands once; look up the programs of others, or of the detected ones."""
    from lopen.specification.modules import find_modules, spec_path
    from lopen.specification.spec import load_specification

    modules = find_modules(examined.root)
    if not modules:
        yield from _detected_commands(examined)
    for module in modules:
        document = f"specs/{module}/SPECIFICATION.md"
        try:
            commands = load_specification(spec_path(examined.root, module), module=module).command_lines
        except LopenError as error:
            yield CheckResult(f"{module}: verify commands", "warn", error.message, f"lopen check {module}")
            continue
        if not any(commands.values()):
            yield CheckResult(
                f"{module}: verify commands", "warn", "none", f"name one under Skills & Hooks in {document}"
            )
            continue
        failures = _tried(examined, module, commands)
        for name, command in commands.items():
            if command is None:
                continue
            if failures is not None and name in failures:
                mend = f"install what it needs, or correct the command in {document}"
                detail = f"{command}: cannot start: {failures[name]}"
                yield CheckResult(f"{module}: {name}", "fail", detail, mend)
            elif failures is not None:
                yield CheckResult(f"{module}: {name}", "ok", f"{command}: starts")
            else:
                yield _found(
                    examined, f"{module}: {name}", command, f", or correct the command in {document}"
                )


def _tried(examined: Examined, module: str, commands: Mapping[str, str | None]) -> dict[str, str] | None:
    """Run the commands, on a copy of the state; return those that cannot start with the reason.

    Return None if they may not run: nobody approved them, or a run works on the module.
    """
    from lopen.application.open_store import open_store
    from lopen.application.run_options import ResumeOptions
    from lopen.application.wiring import wired
    from lopen.application.work_trees import in_checkout
    from lopen.loop.startup import start_failures
    from lopen.store.folder import Locked, module_lock
    from lopen.store.sessions import SessionStore
    from lopen.workflow.session import Session

    context = CommandContext(examined.root)
    store = open_store(context)
    approval = store.approval(module)
    if approval is None or dict(approval.commands) != dict(commands) or examined.loaded is None:
        return None
    now = datetime.now(UTC)
    session = Session(store.new_id(module, now), module, now, approval=approval)
    settings = examined.settings.model_copy(
        update={"recording": examined.settings.recording.model_copy(update={"enabled": False})}
    )
    loaded = in_checkout(replace(examined.loaded, settings=settings))
    try:
        with module_lock(examined.root, module), closing(store.database.in_memory()) as copy:
            memory = SessionStore(copy, store.archives)
            memory.save(session, now)
            with wired(context, loaded, memory, session, ResumeOptions(), heard=False) as run:
                return dict(start_failures(run.loop, commands))
    except Locked:
        return None


def _detected_commands(examined: Examined) -> Iterator[CheckResult]:
    from lopen.application.verify_detection import detect, listing

    detected = detect(listing(examined.root))
    for name, command in detected.commands.items():
        if command is not None:
            yield _found(examined, name, command)
    for what in detected.missing:
        yield CheckResult("verify commands", "warn", f"no {what} found", "name one under Skills & Hooks")


def _found(examined: Examined, name: str, command: str, otherwise: str = "") -> CheckResult:
    from lopen.tools.verify_programs import missing

    lacks = missing(command, examined.root, examined.environ.get("PATH"))
    if not lacks:
        return CheckResult(name, "ok", f"{command}: found, not tried before it is approved")
    wanted = ", ".join(lacks)
    return CheckResult(name, "warn", f"{command}: {wanted} not found", f"install {wanted}{otherwise}")
