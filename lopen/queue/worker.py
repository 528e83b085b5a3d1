"""A worker: takes builds from the queue until it is stopped, and takes over those whose worker has died."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from lopen import __version__
from lopen.application.command_context import CommandContext, RunOptions
from lopen.application.decisions import checked
from lopen.application.open_store import open_store
from lopen.application.reports import built_session
from lopen.core.errors import ExitCode, LopenError, Stopped, StorageError
from lopen.core.person import cache_folder
from lopen.files.workplace import module_documents
from lopen.git.errors import GitError, no_identity
from lopen.limits.records import dump, new_id, parsed
from lopen.queue.builds import Ending, default_jobs
from lopen.queue.crew import Crew
from lopen.queue.engine import Engine
from lopen.queue.opening import (
    OpenQueue,
    bring_home,
    disk_is_full,
    git,
    hand_over,
    open_queue,
    remote_address,
)
from lopen.queue.shared import LAST_S, LEASE_S, BuildOrder, DatabaseAway, Fenced
from lopen.sandbox.choice import probe
from lopen.specification.drift import spec_hash
from lopen.specification.modules import find_modules, require_known
from lopen.specification.order import in_order
from lopen.specification.spec import Specification, module_specification
from lopen.store.sessions import SessionStore

LOOK_S = 1.0  # between two looks for leases that expired
LOOK_CLOSELY_S = 15.0  # between two looks at the whole queue, which take as long as it is
ENDED = ("complete", "waits", "failed")


def add(context: CommandContext, modules: Sequence[str], options: RunOptions, priority: int) -> None:
    """Order modules; each must be approved, and HEAD must be in the remote.

    Raises:
        LopenError: one is not approved, or the workers could not fetch where it starts.
    """
    known = find_modules(context.root)
    specs = {name: module_specification(context.root, name) for name in known}
    for module in modules:
        require_known(module, known)
    store, start = open_store(context, new=True), git(context.root, "rev-parse", "HEAD")
    remote = context.load().settings.queue.remote
    own = remote_address(context) == str(context.root)
    if not own and not git(context.root, "branch", "--remotes", "--contains", start):
        raise LopenError(
            f"HEAD ({start[:12]}) is not in {remote}, from which workers fetch",
            hint=f"git push {remote} HEAD",
        )
    with closing(open_queue(context)) as queue:
        if own and queue.shared.url.startswith("postgresql"):
            context.warn(f"there is no remote {remote}: only workers in {context.root} can build this")
        others = {p.order.module: p for p in queue.shared.placed() if p.order.module in modules}
        groups = {placed.order.group for placed in others.values() if placed.state != "complete"}
        group = options.group or (groups.pop() if len(groups) == 1 else "") or new_id()
        options = replace(options, group=group)
        try:
            for module in in_order({name: spec.after for name, spec in specs.items()}, modules):
                order = _order(context.root, store, specs[module], start, options)
                before = others.get(module)
                complete = before and (before.state, before.order.spec_hash) == ("complete", order.spec_hash)
                if not options.new and (complete or built_session(context.root, store, module)):
                    context.say(f"{module} is complete; to build it anew: lopen queue add {module} --new")
                    continue
                earlier = queue.sessions_before(store, module)
                hand_over(context, store, module, new=options.new)
                queue.shared.place(replace(order, earlier=earlier), priority)
                context.say(f"{module} is in the queue")
                context.emit("queued", module=module, priority=priority)
        finally:  # those before one that cannot be ordered begin
            queue.begin_ready()
    context.say("next: lopen queue (what runs where); to build on this machine: lopen worker")


def _order(
    root: Path, store: SessionStore, spec: Specification, start: str, options: RunOptions
) -> BuildOrder:
    module, digest = checked(spec).module, spec_hash(spec.outline)
    given = store.approval(module)
    if given is None or given.spec_hash != digest:
        raise LopenError(f"the specification of {module} is not approved", hint=f"lopen approve {module}")
    return BuildOrder(
        module,
        digest,
        parsed(dump(replace(given, seal=""))),
        {path: text.decode("utf-8", "replace") for path, text in module_documents(root, module).items()},
        start,
        git(root, "symbolic-ref", "--short", "HEAD"),
        spec.after,
        asdict(options),
    )


@dataclass
class FromQueue:
    """The builds that this worker takes from the queue, until it is stopped."""

    context: CommandContext
    queue: OpenQueue
    engine: Engine
    name: str
    open: bool = True
    fences: dict[str, tuple[int, Future[str]]] = field(default_factory=dict)

    def take(self) -> str | None:
        """Take the lease of a build that this process has claimed; None if none is claimed."""
        for _ in range(self.engine.claimed.qsize() if self.open else 0):
            module, fence, execution = self.engine.claimed.get()
            if module in self.fences:  # its process has lost an older lease, and drops its work
                self.engine.claimed.put((module, fence, execution))
            elif self.queue.shared.take(module, fence, self.name):
                self.fences[module] = fence, execution
                self.context.say(f"{module}: begins")
                return module
            else:
                execution.set_result("it was queued anew, or removed")
        return None

    def arguments(self, module: str) -> list[str]:
        """Return the command line of a build."""
        return ["queue", "build", module, "--fence", str(self.fences[module][0]), "--json"]

    def ended(self, ending: Ending) -> None:
        """Note the end of a build's process; one that left its lease behind has crashed, or was stopped with this worker."""
        fence, execution = self.fences.pop(ending.module)
        told = {"reason": ending.reason or "its process ended without a result", "command": ending.command}
        result = ending.result if self.open or ending.result == "complete" else "handed back"
        self.context.say(f"{ending.module}: {result}{f': {ending.reason}' if ending.reason else ''}")
        self._give_back(ending.module, fence, execution, told if self.open else {})
        if ending.result == "complete" and self.queue.shared.url.startswith("sqlite"):  # of this checkout
            try:
                bring_home(self.context, ending.module)
            except LopenError as error:
                why = f"{error.message}; next: lopen status {ending.module}"
                self.context.warn(f"{ending.module} is complete, and not here yet: {why}")
        self._begin_ready()

    def stop(self) -> None:
        """Take no build any more, and wait no longer for the database than a person waits for the end."""
        self.open, self.queue.shared.give_up_at = False, time.monotonic() + LAST_S

    def close(self) -> None:
        """Hand back what was claimed and has not begun."""
        for _, execution in self.fences.values():
            execution.set_result("ended")
        while not self.engine.claimed.empty():
            self._give_back(*self.engine.claimed.get(), {})
        self._begin_ready()

    def _give_back(self, module: str, fence: int, execution: Future[str], told: Mapping[str, str]) -> None:
        with suppress(Fenced, DatabaseAway):  # the build's process gave it back or lost it, or it expires
            self.queue.shared.release(module, fence, "failed" if told else "waiting", told)
        execution.set_result("ended")

    def _begin_ready(self) -> None:
        with suppress(DatabaseAway):  # the next look does
            self.queue.begin_ready()


def work(context: CommandContext, jobs: int | None, name: str, *, until_idle: bool = False) -> ExitCode:
    """Build what the queue has until SIGTERM or Ctrl-C; then pause the builds and hand them back."""
    if context.load().settings.sandbox.mode == "auto" and not probe("bwrap").works:
        raise LopenError(
            "a worker needs bubblewrap, and it does not work here",
            hint="install it, or say what to use instead: lopen config set --user sandbox.mode landlock",
        )
    email = "GIT_AUTHOR_EMAIL" in os.environ
    with suppress(GitError):
        email = email or bool(git(context.root, "config", "--get", "user.email"))
    if not email:
        raise no_identity()
    queue, own_name = open_queue(context), name or f"{os.uname().nodename}-{os.getpid()}"
    count = jobs or default_jobs()
    engine = Engine(queue.shared.url, queue.shared.project, count)

    source = FromQueue(context, queue, engine, own_name)
    look_at = look_closely_at = 0.0

    def look(running: Sequence[str]) -> None:
        nonlocal look_at, look_closely_at
        now = time.monotonic()
        if now < look_at or not source.open:  # one that stops takes nothing over
            return
        look_at = now + LOOK_S
        if disk_is_full():
            raise LopenError(
                f"the disk of {cache_folder()} is full: this worker ends, and others take its builds over",
                hint="make room, then: lopen worker",
            )
        try:
            for module in queue.take_over_dead(whole=now >= look_closely_at):
                context.say(
                    f"{module} goes on here or elsewhere: its worker has not been heard of for {LEASE_S:.0f} s"
                )
                context.emit("lease_expired", module=module)
            if now >= look_closely_at:
                look_closely_at = now + LOOK_CLOSELY_S
                queue.begin_ready()  # a worker begins what comes after its build, unless it dies before
            if until_idle and not running:
                source.open = any(p.state not in ENDED for p in queue.shared.placed())
        except StorageError as error:  # it may be back at the next look
            context.warn(error.message)

    queue.shared.warn = context.warn
    if others := {*queue.executions.open().values()} - {__version__, ""}:
        context.warn(
            f"builds in the queue wait for a worker of lopen {', '.join(others)}, and this is {__version__};"
            " to build them here, order them again: lopen queue add MODULE"
        )
    context.say(
        f"worker {own_name} takes builds of {context.root.name}, {count} at a time, from {queue.shared.address}"
    )
    crew = Crew(context.root, count, source.arguments, look, context.say)
    code = ExitCode.OK
    try:
        crew.work(source)
    except Stopped as stopped:
        code = ExitCode.OK if stopped.exit_code is ExitCode.TERMINATED else stopped.exit_code
    finally:
        source.stop()
        source.close()
        engine.close()
        queue.close()
    return code
