"""Confinement of a session's commands: the sandbox, and the files that are watched around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.files import plain_name
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.files.workplace import Workplace
from lopen.git.commits import completion_message
from lopen.sandbox.ancestry import end_orphans
from lopen.sandbox.choice import choose
from lopen.sandbox.command import Command, Sandbox
from lopen.sandbox.command import CommandLimits as SandboxLimits
from lopen.settings.schema import Settings
from lopen.store.journal import Journal
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Commands
from lopen.tools.installed import remove_unused

HOOKS = "hooks"  # folder below .lopen/cache that commit hooks may write to


def recording_path(root: Path, session: str) -> Path:
    """Return the path of a session's recording; raise `StorageError` for an id that leads out of its folder."""
    return root / ".lopen" / "recordings" / plain_name(f"{session}.jsonl.gz")


def sandbox_for(settings: Settings, root: Path, session: str, at: Path | None = None) -> Sandbox:
    """Return the sandbox of the settings; `auto` means the best that works. `at`: the place that `root` stands for."""
    limits = SandboxLimits(memory_mb=settings.sandbox.max_memory_mb)
    readable = [Path(name).expanduser() for name in settings.sandbox.readable]
    return choose(
        settings.sandbox.mode,
        root,
        limits=limits,
        session=session,
        readable=readable,
        at=at,
    )


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


def remove_installed(root: Path) -> int:
    """Remove what verify-setup installed for the project and no session uses; return the bytes."""
    return remove_unused(all_rooms(), project=root)


def clean_room_of(
    stack: ExitStack, settings: Settings, sandbox: Sandbox, place: Workplace, journal: Journal
) -> CleanRoom:
    """Return the session's clean room; `stack` removes it."""
    room = CleanRoom(
        rooms_folder(place.root),
        place,
        carry=settings.verify.carry,
        mounted=sandbox.name == "bwrap",
        exposed=sandbox.name == "none",
    )
    stack.callback(remove_unused, all_rooms())
    stack.callback(room.close)
    room.message = partial(_message, journal, settings)
    return room


def _message(journal: Journal, settings: Settings) -> str:
    """Return the message of the commit that completes the task at hand."""
    session = journal.session
    task = session.task
    owner = session.tree.owner(task.id) if task else None
    return completion_message(
        module=session.module,
        task=task.name if task else session.module,
        component=owner.name if owner else session.module,
        session=session.id,
        task_id=task.id if task else session.module,
        verdict="passed (high)",
        convention=settings.git.convention,
    )


def hook_runner(commands: Commands, root: Path) -> Callable[..., tuple[int, str]]:
    """Return a function that runs a repository hook as a command with a folder that it may write to."""

    def run(argv: tuple[str, ...], variables: Mapping[str, str]) -> tuple[int, str]:
        ran = commands.run(Command(tuple(argv), root, timeout_s=600, env=variables))
        return ran.exit_code, ran.output

    return run
