"""`lopen queue` and `lopen worker`: order builds, list them, and work on them on any machine."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from types import ModuleType
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext, RunOptions
from lopen.cli.command import command, group
from lopen.cli.parameters import JobsOption, SeveralModules
from lopen.core.errors import ExitCode, LopenError, WrongUsage, install_command
from lopen.core.money import dollars

app = group("Order builds for workers, and see what they do (default: list).", default="list")
PriorityOption = Annotated[
    int, typer.Option("--priority", min=1, max=1_000, metavar="N", help="Lower numbers go first.")
]
NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Name in the list (default: host and process).")
]
IdleOption = Annotated[bool, typer.Option("--until-idle", help="End when nothing is left to build.")]
OneModule = Annotated[str, typer.Argument(help="Module: the name of its folder in specs/.")]
FenceOption = Annotated[int, typer.Option("--fence")]


def _queue(name: str) -> ModuleType:
    """Return a module that needs the extra. Raises `LopenError` where it is not installed."""
    try:
        return import_module(f"lopen.queue.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dbos", "sqlalchemy", "psycopg"):
            raise
        raise LopenError(
            "the queue needs more than is installed; several modules on this machine go without: lopen run --all",
            hint=f"to install it: {install_command('queue')}",
        ) from error


@app.command("add")
@command
def add(
    context: CommandContext,
    options: RunOptions,
    modules: SeveralModules = None,
    priority: PriorityOption = 100,
) -> ExitCode:
    """Order approved modules to be built by workers, from where HEAD is."""
    if not modules:
        raise WrongUsage("name a module", hint="see lopen queue add --help")
    _queue("worker").add(context, modules, options, priority)
    return ExitCode.OK


@app.command("list")
@command
def show(context: CommandContext) -> ExitCode:
    """Show every order with its state, where it runs and what it waits for."""
    with closing(_queue("opening").open_shared(context)) as queue:
        placed = queue.placed()
        for each in placed:
            told = each.told
            left = max(0.0, round(each.left_s, 1)) if each.state == "running" else None
            context.emit(
                "order",
                module=each.order.module,
                state=each.state,
                worker=each.worker,
                lease_s=left,
                priority=each.priority,
                after=each.order.after,
                **told,
            )
            parts = [each.order.module, each.state, f"on {each.worker}" if each.state == "running" else ""]
            parts += [f"{told['tasks_done']}/{told['tasks']} tasks"] if "tasks" in told else []
            parts += [dollars(told["cost_usd"])] if "cost_usd" in told else []
            parts += (
                [f"after {', '.join(each.order.after)}"]
                if each.state == "waiting" and each.order.after
                else []
            )
            context.say("  ".join(filter(None, parts)))
            if told.get("reason"):
                context.say(f"    {told['reason']}")
            if each.state in ("waits", "failed"):
                context.say(f"    next: {told.get('command') or f'lopen queue retry {each.order.module}'}")
        if any(each.state == "complete" for each in placed):
            context.say("to merge what is complete: lopen merge --all")
        if not placed:
            context.say("the queue is empty; to order a module: lopen queue add MODULE")
    return ExitCode.OK


@app.command("remove")
@command
def remove(context: CommandContext, module: OneModule) -> ExitCode:
    """Take a module out of the queue; a worker that builds it drops the work. Its commits stay in the remote."""
    with closing(_queue("opening").open_queue(context)) as queue:
        placed = queue.shared.remove(module)
        if placed is None:
            raise LopenError(f"{module} is not in the queue", hint="lopen queue list")
        queue.executions.cancel(queue.executions.id(placed))
    context.say(f"removed {module} from the queue")
    context.emit("removed", module=module)
    return ExitCode.OK


@app.command("retry")
@command
def retry(context: CommandContext, module: OneModule) -> ExitCode:
    """Let a build that failed or waits go on, from its last checkpoint."""
    with closing(_queue("opening").open_queue(context)) as queue:
        state = next((placed.state for placed in queue.shared.placed(module)), None)
        if state is None:
            raise LopenError(f"{module} is not in the queue", hint=f"lopen queue add {module}")
        if state not in ("failed", "waits"):
            hint = (
                f"to build it anew: lopen queue add {module} --new" if state == "complete" else "lopen queue"
            )
            raise LopenError(f"{module} neither failed nor waits for you: it is {state}", hint=hint)
        queue.shared.wait_again(module)
        queue.begin_ready()
    context.say(f"{module} waits for a worker")
    context.emit("queued", module=module)
    return ExitCode.OK


@app.command("build", hidden=True)
@command
def build(context: CommandContext, module: OneModule, fence: FenceOption) -> ExitCode:
    """Build a module whose lease this worker has."""
    from lopen.queue.build_here import build_here
    from lopen.queue.opening import open_shared
    from lopen.queue.shared import patient

    with closing(patient(open_shared)(context)) as shared:
        return build_here(context, shared, module, fence)


@command
def worker(
    context: CommandContext, jobs: JobsOption = None, name: NameOption = "", until_idle: IdleOption = False
) -> ExitCode:
    """Build what the queue has, until it is stopped: SIGTERM finishes the turn, hands back, and exits with 0."""
    code: ExitCode = _queue("worker").work(context, jobs, name, until_idle=until_idle)
    return code
