"""One build of the queue in this process: take the module up from its checkpoint, drive it, and keep what changes.

A worker starts this as `lopen queue build`. The build has a folder of its own: a clone of the project's remote with its
own state, made anew each time, so that what is kept in the queue and in the remote is all there is.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lopen.application.command_context import CommandContext, Presentation, ResumeOptions, RunOptions, View
from lopen.application.driving import drive_module
from lopen.application.open_store import open_store
from lopen.application.workplaces import clones_folder, workplace_of
from lopen.core import events as e
from lopen.core.errors import ExitCode, LopenError, Stopped, StorageError
from lopen.core.person import cache_folder, required
from lopen.git.clones import GIT_FOLDER
from lopen.git.errors import GitError
from lopen.git.refs import BRANCH_PREFIX, HEADS
from lopen.loop.context import SessionContext
from lopen.queue.group_budget import group_limits, shared_prefix
from lopen.queue.messages import act, take_up
from lopen.queue.opening import approve_again, disk_is_full, git, remote_address
from lopen.queue.shared import HEARTBEAT_S, LAST_S, BuildOrder, DatabaseAway, Fenced, SharedQueue
from lopen.queue.together import figures
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.specification.drift import spec_hash
from lopen.specification.spec import module_specification
from lopen.store.changed_rows import ChangedRows, restore
from lopen.store.folder import module_lock
from lopen.store.sessions import SessionStore, reserve_id

WORK = "refs/lopen/work/"  # in the remote: uncommitted work of the task, as it was at the last checkpoint
RETRY_S = 2.0  # until a push that the remote refused is tried again
GIVE_UP_S = 600.0  # of trying at a build's end
STOPPED = "the worker stopped, and another takes it up"
MORE_MONEY = "lopen resume --all --max-cost"  # what a group without a queue is told
KEEPING = (e.TurnEnded, e.TaskChanged, e.StepEntered, e.SessionPaused, e.SessionFailed, e.SessionComplete)


@dataclass
class Lease:
    """This process's hold on a module; a thread renews it as long as the worker lives."""

    queue: SharedQueue
    module: str
    fence: int
    lost: threading.Event = field(default_factory=threading.Event)
    handed_back: threading.Event = field(default_factory=threading.Event)  # the worker ends

    @contextmanager
    def held(self, each_beat: Callable[[], None]) -> Iterator[None]:
        """Renew the lease within the context. A lease that is lost ends this process's work."""
        done, worker = threading.Event(), os.getppid()

        def beat() -> None:
            next_at = time.monotonic() + HEARTBEAT_S
            while not done.wait(1.0):
                if os.getppid() != worker:
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                try:
                    each_beat()
                    if time.monotonic() >= next_at:
                        next_at = time.monotonic() + HEARTBEAT_S
                        self.queue.renew(self.module, self.fence)
                except Fenced:
                    self.lost.set()
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                except StorageError:  # the database is away: the lease says whether it was for too long
                    continue

        thread = threading.Thread(target=beat, name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


class Keeper(Presentation, View):
    """Keeps the session's rows in the queue and its work in the remote, before the run goes on: nobody watches it here."""

    def __init__(self, lease: Lease, address: str) -> None:
        self._lease = lease
        self._address = address
        self.pushed: str | None = None  # where the module's branch is in the remote
        self._running: list[SessionContext] = []
        self._work = ""  # the tree of the last work that was pushed
        self._rows: ChangedRows | None = None

    def view(
        self,
        context: CommandContext,
        options: ResumeOptions,
        redact: Callable[[str], str],
        running: list[SessionContext],
    ) -> View:
        self._running = running
        return self

    def __call__(self, recorded: e.Recorded) -> None:
        """Keep what has changed, where the event ends something."""
        if isinstance(recorded.event, KEEPING):
            self.keep()

    def keep(self, *, at_last: bool = False) -> None:
        """Push, then keep the rows: what they tell of is then in the remote. `at_last`: until the remote takes it."""
        if not self._running:
            return
        loop, give_up_at, why = self._running[0], time.monotonic() + GIVE_UP_S, ""
        queue, module, fence = self._lease.queue, self._lease.module, self._lease.fence
        if self._rows is None:
            self._rows = ChangedRows(loop.record.journal.database)
            self._rows.note_all()
        while True:
            queue.renew(module, fence, why)
            try:
                self._push(loop)
                break
            except GitError as error:
                if not at_last:
                    return  # the next event tries again
                if time.monotonic() > give_up_at:
                    raise
                why = f"the remote refuses the push, which is tried again: {' '.join(error.message.split())}"
                time.sleep(RETRY_S)
        rows = self._rows.take()
        queue.checkpoint(module, fence, rows)
        self._rows.forget(rows)

    def _push(self, loop: SessionContext) -> None:
        place, branch = loop.project.place, BRANCH_PREFIX + self._lease.module
        own = place.repository.root.parent / GIT_FOLDER
        removed = not own.is_dir()  # at the end of the session
        tip = (place.person if removed else place.repository).branch_tip(branch)
        if tip is None:
            return
        tree, refs = self._work, []
        if not removed and (tree := place.repository.snapshot()) != self._work:
            work = place.repository.commit_of(tree, tip, "uncommitted work\n")
            refs.append(f"+{work}:{WORK}{self._lease.module}")
        if tip != self.pushed:
            refs.append(f"{tip}:{HEADS}{branch}")
        if refs:
            expected = f"--force-with-lease={HEADS}{branch}:{self.pushed or ''}"
            folder = place.home if removed else own
            git(folder, "push", "--quiet", "--no-verify", expected, self._address, *refs)
        self._work, self.pushed = tree, tip


def build_here(context: CommandContext, queue: SharedQueue, module: str, fence: int) -> ExitCode:
    """Build a module of the queue, whose lease has this fencing number, and give the lease back with the result."""
    found, began = queue.placed(module), time.monotonic()
    queue.renew(module, fence)  # also says where the order is gone
    lease = Lease(queue, module, fence)
    try:
        code, told = _build(context, lease, found[0].order)
    except Stopped:
        if lease.lost.is_set():
            raise Fenced(module) from None
        raise
    state = {ExitCode.OK: "complete", ExitCode.PERSON_NEEDED: "waits"}.get(code, "failed")
    paused = state == "waits" and lease.handed_back.is_set()
    if paused or (state != "complete" and disk_is_full()):  # this machine's matter: another one goes on
        state, told = "waiting", {}
    else:
        told["seconds"] = round(time.monotonic() - began, 1)
    queue.release(module, fence, state, told)
    return code


def _build(context: CommandContext, lease: Lease, order: BuildOrder) -> tuple[ExitCode, dict[str, Any]]:
    """Build it while the lease is held; return the exit code and what a list tells of the build."""
    queue, module = lease.queue, order.module
    settings = context.load().settings
    address = remote_address(context)
    folder = required(cache_folder()) / "queue" / queue.project / module / context.root.name
    keeper = Keeper(lease, address)
    os.environ["LOPEN_BUDGET__KEY_PREFIX"] = shared_prefix(settings, queue)  # Redis counts for all machines
    limits = partial(group_limits, queue=queue, group=order.group, module=module, fence=lease.fence)
    inner = CommandContext(folder, json=True, presentation=keeper, limits=limits, pace=queue)

    def beat() -> None:
        if lease.handed_back.is_set():  # also where the queue's database is away
            act(inner, module, "pause", {"why": STOPPED})
            context.emit("pause_requested", module=module)
        take_up(inner, queue, module, running=True)

    def hand_back(_number: int, _frame: object) -> None:
        lease.handed_back.set()
        queue.give_up_at = time.monotonic() + LAST_S

    signal.signal(signal.SIGINT, hand_back)
    told: dict[str, Any] = {}
    with lease.held(beat):
        try:
            keeper.pushed = _clone(context.root, folder, address, order)
            options = _take_up(inner, queue, order)
            take_up(inner, queue, module, running=False)
            code = drive_module(inner, module, options)
        except (Fenced, DatabaseAway):
            raise
        except LopenError as error:
            command = getattr(error, "command", error.hint) or f"lopen queue retry {module}"
            code, told = error.exit_code, {"reason": error.message, "command": command}
        keeper.keep(at_last=True)
    told |= figures(inner, module)
    idle = {p.order.module for p in queue.placed() if p.order.group == order.group and p.state == "waits"}
    more_money = f"lopen queue add {' '.join(sorted({*idle, module}))} --max-cost"  # orders them again
    command = str(told.get("command", "")).replace(MORE_MONEY, more_money)
    if command == f"lopen resume {told.get('session')}":  # the session is on no person's machine
        command = f"lopen queue retry {module}"
    return code, told | {"command": command}


def _clone(root: Path, folder: Path, address: str, order: BuildOrder) -> str | None:
    """Clone the project anew at the order's commit, to commit as the author of the worker's checkout.

    Return where the module's branch is in the remote.
    """
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.rmtree(clones_folder(folder), ignore_errors=True)
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--template=", f"--initial-branch={order.branch}")
    refspecs = (f"+{HEADS}*:refs/remotes/origin/*", f"+{HEADS}{BRANCH_PREFIX}*:{HEADS}{BRANCH_PREFIX}*")
    git(folder, "fetch", "--quiet", "--no-tags", address, *refspecs, f"+{WORK}*:{WORK}*")
    git(folder, "reset", "--quiet", "--hard", order.commit)
    for key in ("user.name", "user.email"):
        with suppress(GitError):
            git(folder, "config", key, git(root, "config", "--get", key))
    with suppress(GitError):
        return git(folder, "rev-parse", "--verify", "--quiet", f"{HEADS}{BRANCH_PREFIX}{order.module}")
    return None


def _take_up(inner: CommandContext, queue: SharedQueue, order: BuildOrder) -> RunOptions:
    """Lay out the documents, restore the checkpoint, and approve what a person approved where it was ordered.

    Return the options to run with: a build that has begun since it was ordered is not begun anew.

    Raises:
        LopenError: the specification is not the approved one.
    """
    for path, text in order.documents.items():
        file = inner.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    spec = module_specification(inner.root, order.module)
    if spec_hash(spec.outline) != order.spec_hash or order.approval["spec_hash"] != order.spec_hash:
        raise LopenError(
            f"the specification of {order.module} is not the approved one: its hash is {spec_hash(spec.outline)},"
            f" approved is {order.approval['spec_hash']}",
            hint=f"lopen approve {order.module}, then: lopen queue add {order.module}",
        )
    store = open_store(inner, new=True)
    with closing(store.database):
        for earlier in queue.placed():
            if earlier.order.module in spec.after:
                rows = queue.checkpointed(earlier.order.module)
                restore(store.database, (row for row in rows if row[0] == "sessions"))
                approve_again(store, earlier.order)
        restore(store.database, queue.checkpointed(order.module))
        approve_again(store, order)
        _restore_work(inner, store, order.module)
        for session in order.earlier:
            reserve_id(store.database.connection, session)
        last, options = store.latest(module=order.module), RunOptions(**order.options)
        return replace(options, new=options.new and (last is None or last.id in order.earlier))


def _restore_work(inner: CommandContext, store: SessionStore, module: str) -> None:
    """Make lopen's clone with the uncommitted work of the last checkpoint, where it belongs to the branch's tip."""
    session = store.latest(module=module, unfinished=True)
    if session is None or session.branch is None:
        return
    try:
        work, parent = git(inner.root, "rev-parse", WORK + module, f"{WORK}{module}^").split()
    except GitError:
        return
    with module_lock(inner.root, module):
        place = workplace_of(inner, store, session, KnownSecrets(inner.root, os.environ))
        clone = place.repository
        if place.person.branch_tip(session.branch) != parent:
            return
        own = clone.root.parent / GIT_FOLDER
        git(own, "fetch", "--quiet", str(inner.root), f"+{WORK}{module}:{WORK}{module}")
        after = clone.tree_of(work)
        paths = [change.path for change in clone.changes(clone.tree_of(parent), after)]
        clone.restore(after, paths)
