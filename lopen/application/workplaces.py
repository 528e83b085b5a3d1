"""The places where sessions work, and the confinement of their commands: lopen's clone of the project, the sandbox, the clean room."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.clock import Clock, SystemClock
from lopen.core.files import plain_name
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.files.workplace import Workplace, open_workplace, start_commit, unsaved_files
from lopen.git import clones
from lopen.git.errors import GitError
from lopen.git.refs import BRANCH_PREFIX, require_commit
from lopen.git.repository import CheckoutOptions, Repository
from lopen.sandbox.ancestry import end_orphans
from lopen.sandbox.choice import choose
from lopen.sandbox.command import CommandLimits, Sandbox
from lopen.sandbox.environment import SandboxOptions
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.store.folder import Locked, exclusive_lock, state_folder
from lopen.store.sessions import SessionStore
from lopen.store.temporary import TemporaryFolder, remove_abandoned
from lopen.verification.clean_room import CleanRoom
from lopen.workflow.session import Session


def clones_folder(root: Path) -> Path:
    """Return the folder with lopen's clones of the project at `root`, one per module."""
    return required(cache_folder()) / "clones" / content_hash(str(root))[:12]


def clone_of(root: Path, module: str) -> Path | None:
    """Return the folder of the files of the module's clone, None where there is none."""
    files = clones_folder(root) / module / root.name
    return files if files.is_dir() else None


def require_repository(root: Path, module: str) -> None:
    """Raise `LopenError` without a git repository, or without a first commit."""
    require_commit(Repository.open(root, clock=SystemClock()).head(), module)


def person_repository(root: Path, settings: Settings, clock: Clock, secrets: KnownSecrets) -> Repository:
    """Return the person's own repository."""
    return Repository.open(root, clock=clock, sign=settings.git.sign, known=secrets.current)


def workplace_of(
    context: CommandContext,
    store: SessionStore,
    session: Session,
    secrets: KnownSecrets,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> Workplace:
    """Return the session's place of work, made if needed. The caller holds the module's lock.

    Also remove clones of finished sessions that have no uncommitted work; the place's notices name them.
    """
    settings = settings or context.load().settings
    person = person_repository(context.root, settings, clock or SystemClock(), secrets)
    folder = clones_folder(context.root)
    options = CheckoutOptions(settings.git.sign, secrets.current)
    removed = tuple(_remove_finished(context, store, person, options, session.module))
    branch = session.branch or BRANCH_PREFIX + session.module
    start = start_commit(person, branch) if session.branch else require_commit(person.head(), session.module)
    links = settings.sandbox.mode != "none"
    place = open_workplace(person, folder / session.module, start, options, links=links)
    return replace(place, notices=(*removed, *place.notices))


@contextmanager
def temporary_workplace(
    root: Path, settings: Settings, secrets: KnownSecrets, commit: str = ""
) -> Iterator[Workplace]:
    """Yield a clone for something that is only looked at or tried, at `commit` or the person's HEAD; remove it."""
    person = person_repository(root, settings, SystemClock(), secrets)
    held = TemporaryFolder()
    try:
        options = CheckoutOptions(settings.git.sign, secrets.current)
        commit = commit or require_commit(person.head())
        links = settings.sandbox.mode != "none"
        yield Workplace(person, clones.make_clone(person, held.path / "clone", commit, options, links=links))
    finally:
        held.remove()


def opened(person: Repository, folder: Path, options: CheckoutOptions) -> Repository | None:
    """Return the clone in `folder` to be looked at while a run may work in it, None where there is none."""
    try:
        return clones.open_clone(person, folder, options, alone=False)
    except GitError:
        return None


def _remove_finished(
    context: CommandContext, store: SessionStore, person: Repository, options: CheckoutOptions, but: str
) -> Iterator[str]:
    """Remove the clones of modules without an unfinished session; yield a line on each, warn of each that remains."""
    root = context.root
    locks = state_folder(root) / "locks"
    for path in sorted(clones_folder(root).glob("[!.]*")):
        if path.name == but or store.latest(module=path.name, unfinished=True) is not None:
            continue
        with suppress(Locked), exclusive_lock(locks, f"module-{path.name}", f"module {path.name}"):
            if store.latest(module=path.name, unfinished=True) is not None:
                continue
            try:
                lost = unsaved_files(root, clones.open_clone(person, path, options))
            except GitError as error:
                lost = (error.message,)
            if lost:
                work = ", ".join(lost[:5])
                context.warn(
                    f"the clone {path} of a finished session remains: it has uncommitted work ({work})"
                )
            else:
                shutil.rmtree(path, ignore_errors=True)
                yield f"removed {path}, the clone of a finished session"


def recording_path(root: Path, session: str) -> Path:
    """Return the path of a session's recording; raise `StorageError` for an id that leads out of its folder."""
    return root / ".lopen" / "recordings" / plain_name(f"{session}.jsonl.gz")


def sandbox_for(settings: Settings, root: Path, session: str, at: Path | None = None) -> Sandbox:
    """Return the sandbox of the settings; `auto` means the best that works. `at`: the place that `root` stands for."""
    limits = CommandLimits(memory_mb=settings.sandbox.max_memory_mb)
    readable = tuple(Path(name).expanduser() for name in settings.sandbox.readable)
    return choose(settings.sandbox.mode, root, SandboxOptions(limits, session, readable=readable, at=at))


def sandbox_rules(sandbox: Sandbox, settings: Settings) -> str:
    """Describe the sandbox for the model's prompt."""
    network = "network reachable" if settings.sandbox.network or sandbox.name == "none" else "no network"
    where = {
        "bwrap": "the project is writable in step 6, everything else read-only or hidden",
        "landlock": "only the project is writable, and that in step 6",
        "none": "no sandbox; stay inside the project all the same",
    }
    installed = (
        "stands in its place, read-only" if sandbox.name == "bwrap" else "is found through PATH and NODE_PATH"
    )
    return (
        f"Commands run under {sandbox.name}: {where.get(sandbox.name, sandbox.name)}; {network}; "
        f"what verify-setup installed {installed}."
    )


def sandbox_of(context: CommandContext, settings: Settings, place: Workplace, session: str) -> Sandbox:
    """End the processes that an earlier run left behind; return the sandbox."""
    root = place.root
    if ended := end_orphans(root, rooms_folder(root)):
        context.warn(f"ended {ended} processes that a killed run had left running")
    return sandbox_for(settings, root, session, place.home)


def all_rooms() -> Path:
    """Return the folder of the clean rooms of every project."""
    return required(cache_folder()) / "rooms"


def rooms_folder(root: Path) -> Path:
    """Return the folder of the clean rooms of the project at `root`."""
    return all_rooms() / content_hash(str(root))[:12]


def clean_room_of(stack: ExitStack, settings: Settings, sandbox: Sandbox, place: Workplace) -> CleanRoom:
    """Return the session's clean room; `stack` removes it. Rooms that killed processes left are removed now."""
    for folder in all_rooms().glob("*"):
        remove_abandoned(folder)
    room = CleanRoom(
        rooms_folder(place.root),
        place,
        carry=settings.verify.carry,
        mounted=sandbox.name == "bwrap",
        exposed=sandbox.name == "none",
    )
    stack.callback(room.close)
    return room
