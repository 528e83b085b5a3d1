"""Building several modules by one command: `lopen run A B`, `run --all`, `resume --all`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from lopen.application.command_context import CommandContext, ResumeOptions, RunOptions
from lopen.application.decisions import checked, record, show, specification
from lopen.application.open_store import looked_up, newest_session, open_store, opened_limits
from lopen.application.reports import built_session, is_approved, read_session
from lopen.application.workplaces import require_repository
from lopen.core.errors import ExitCode, LopenError, WrongUsage
from lopen.core.money import cost_text
from lopen.limits.admin_actions import limit_cost
from lopen.limits.budget import GROUP
from lopen.limits.records import new_id
from lopen.queue.builds import Ending, Listed, default_jobs, exit_code
from lopen.queue.crew import Crew
from lopen.specification.modules import find_modules, require_known
from lopen.specification.order import in_order
from lopen.specification.spec import Specification, module_specification
from lopen.store.sessions import SessionStore


class BuildsView(Protocol):
    """A shell's way to show the builds while they go on."""

    def __call__(self, listed: Listed, running: Sequence[str]) -> None:
        """Show what has happened since the last call."""
        ...

    def say(self, text: str) -> None:
        """Show a line."""
        ...

    def close(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Leave the terminal, and show how each build ended."""
        ...


def run_together(
    context: CommandContext, modules: Sequence[str], options: RunOptions, jobs: int | None, watch: BuildsView
) -> ExitCode:
    """Build these modules, or all that are approved and not complete, and tell how each ended."""
    store = open_store(context, new=True)
    selection = chosen(context, store, modules, options)
    return _build(context, store, selection, options, jobs, watch)


def chosen(
    context: CommandContext, store: SessionStore, modules: Sequence[str], options: RunOptions
) -> Selection:
    """Return the selection of these modules, or of every module that is not complete."""
    known = find_modules(context.root)
    for module in modules:
        require_known(module, known)
    if options.prompt:
        raise WrongUsage("-p describes one module", hint="draft them one by one: lopen spec MODULE -p TEXT")
    wanted = tuple(dict.fromkeys(modules)) or tuple(known)
    if not wanted:
        raise LopenError("no modules yet", hint="to write one: lopen init MODULE")
    for module in wanted:
        require_repository(context.root, module)
    return _selected(context, store, wanted, new=options.new, named=bool(modules))


def resume_together(
    context: CommandContext, options: ResumeOptions, jobs: int | None, watch: BuildsView
) -> ExitCode:
    """Resume every unfinished session, and tell how each ended."""
    if options.prompt:
        raise WrongUsage("-p is for one session", hint="lopen resume SESSION -p TEXT")
    store = open_store(context)
    sessions = list(store.readable(store.ids(unfinished=True)))
    if not sessions:
        raise LopenError("no unfinished session", hint="to build every approved module: lopen run --all")
    modules = sorted({session.module for session in sessions})
    groups = {session.limits.group for session in sessions}
    selection = _selected(context, store, modules, new=False, named=True)
    selection.group = groups.pop() if len(groups) == 1 else ""
    if selection.group and options.max_cost is not None:  # also a lower one
        with opened_limits(context) as (limits, _):
            limit_cost(limits, f"{GROUP}:{selection.group}", options.max_cost)
    return _build(context, store, selection, options, jobs, watch)


@dataclass
class Selection:
    """The modules of one command: to build, complete before, and those that cannot be built, with the reason."""

    specs: dict[str, Specification]
    complete: frozenset[str]
    unapproved: list[str]
    endings: dict[str, Ending]
    group: str = ""


def _selected(
    context: CommandContext, store: SessionStore, modules: Sequence[str], *, new: bool, named: bool
) -> Selection:
    """Sort the modules by what can be done with them; complete ones are told of only where they are `named`."""
    every = {name: module_specification(context.root, name) for name in find_modules(context.root)}
    complete = frozenset(name for name in every if built_session(context.root, store, name))
    selection = Selection({}, complete, [], {})
    for module in in_order({name: every[name].after for name in every}, modules):
        spec = every[module]
        if module in complete and not new:
            if named:
                selection.endings[module] = Ending(module, ExitCode.OK, reason="it was complete before")
        elif spec.problems or spec.unwritten:
            reason = str((*spec.problems, *spec.unwritten)[0].message)
            selection.endings[module] = Ending(module, ExitCode.FAILED, 0.0, reason, f"lopen check {module}")
        else:
            selection.specs[module] = spec
            if not is_approved(context.root, store, module):
                selection.unapproved.append(module)
    return selection


def _approve(context: CommandContext, store: SessionStore, selection: Selection, *, unattended: bool) -> None:
    """Ask once for each module that is not approved, where a person can be asked; list and skip the others."""
    for module in selection.unapproved:
        if not unattended and not context.json:
            spec = checked(specification(context.root, store, module))
            show(context, store, spec)
            if context.presentation.confirms(f"approve {module} and build it?"):
                record(store, spec, "approved at the terminal")
                continue
        reason = "its specification is not approved"
        selection.endings[module] = Ending(
            module, ExitCode.PERSON_NEEDED, 0.0, reason, f"lopen approve {module}"
        )


def _build(
    context: CommandContext,
    store: SessionStore,
    selection: Selection,
    options: ResumeOptions,
    jobs: int | None,
    watch: BuildsView,
) -> ExitCode:
    _approve(context, store, selection, unattended=options.unattended)
    store.database.close()
    builds = {name: spec.after for name, spec in selection.specs.items()}
    listed = Listed(builds, selection.complete, dict(selection.endings))
    words = arguments(replace(options, group=selection.group or new_id(), quiet=False, no_color=False))
    crew = Crew(
        context.root,
        jobs or default_jobs(),
        lambda module: ["run", module, "--json", *words],
        lambda running: watch(listed, running),
        watch.say,
    )
    try:
        crew.work(listed)
    finally:
        watch(listed, ())
        rows = [_row(context, listed.endings[module]) for module in sorted(listed.endings)]
        for row in rows:
            context.emit("build_ended", **row)
        watch.close(rows)
    return exit_code(listed.endings)


def arguments(options: ResumeOptions) -> list[str]:
    """Return the options as the command line of one module's process has them."""
    words = ["--no-record"] if options.record is False else []
    for name, value in asdict(options).items():
        if value not in ("", None) and value is not False:  # 0 is a limit that somebody gave
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words


def _row(context: CommandContext, ending: Ending) -> dict[str, Any]:
    """Return an ending as its event has it."""
    found = figures(context, ending.module)
    waits = {} if ending.command else found  # the session knows it
    command = f"lopen merge {ending.module}" if ending.code is ExitCode.OK else waits.get("command", "")
    return {
        "module": ending.module,
        "result": ending.result,
        "exit_code": int(ending.code),
        "tasks": f"{found['tasks_done']}/{found['tasks']}" if found else "",
        "cost": cost_text(found["cost_usd"], found["unpriced_tokens"]) if "cost_usd" in found else "",
        "seconds": round(ending.seconds, 1),
        "reason": ending.reason or waits.get("reason", ""),
        "command": ending.command or command,
    }


def figures(context: CommandContext, module: str) -> dict[str, Any]:
    """Return what a list shows of a module's newest session: its tasks, its cost, and what it waits for."""
    store = open_store(context)
    with closing(store.database):
        session = newest_session(store, module)
        if session is None:
            return {}
        facts = read_session(context.root, store, session)
        found = {name: facts.row()[name] for name in ("session", "tasks_done", "tasks")}
        if own := looked_up(context, store.database).of(f"session:{session.id}"):
            found |= {"cost_usd": round(own.cost_usd, 6), "unpriced_tokens": own.unpriced_tokens}
        if facts.waits:
            found |= {"reason": facts.waits.message, "command": facts.waits.command}
        return found
