"""Confinement of a session's commands: the sandbox, and the files that are watched around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.errors import LopenError
from lopen.core.files import plain_name
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.files.work_trees import WorkTree
from lopen.git.checkout import Checkout
from lopen.git.commits import completion_message
from lopen.sandbox.ancestry import end_orphans
from lopen.sandbox.choice import choose
from lopen.sandbox.command import Command, Sandbox
from lopen.sandbox.command import CommandLimits as SandboxLimits
from lopen.sandbox.environment import project_cache_folder
from lopen.sandbox.protected import ProtectedPaths
from lopen.settings.schema import Settings
from lopen.store.folder import state_folder
from lopen.store.journal import Journal
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Commands
from lopen.tools.installed import remove_unused

MOST_COMPARED_BYTES = 64_000_000
HOOKS = "hooks"  # folder below .lopen/cache that commit hooks may write to


def recording_path(root: Path, session: str) -> Path:
    """Return the path of a session's recording; raise `StorageError` for an id that leads out of its folder."""
    return root / ".lopen" / "recordings" / plain_name(f"{session}.jsonl.gz")


def sandbox_for(settings: Settings, root: Path, session: str) -> Sandbox:
    """Return the sandbox of the settings; `auto` means the best that works."""
    limits = SandboxLimits(
        processes=settings.sandbox.max_processes,
        memory_mb=settings.sandbox.max_memory_mb,
        file_mb=settings.sandbox.max_file_mb,
        written_mb=settings.sandbox.max_written_mb,
    )
    readable = [Path(name).expanduser() for name in settings.sandbox.readable]
    indexes = settings.sandbox.package_indexes
    return choose(
        settings.sandbox.mode, root, limits=limits, session=session, readable=readable, indexes=indexes
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


def sandbox_of(context: CommandContext, settings: Settings, root: Path, session: str) -> Sandbox:
    """End the processes that an earlier run left behind; return the sandbox."""
    if ended := end_orphans(root, rooms_folder(root)):
        context.warn(f"ended {ended} processes that a killed run had left running")
    return sandbox_for(settings, root, session)


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
    stack: ExitStack, settings: Settings, sandbox: Sandbox, place: WorkTree, journal: Journal
) -> CleanRoom:
    """Return the session's clean room; `stack` removes it."""
    room = CleanRoom(
        rooms_folder(place.root),
        place.repository,
        place.home,
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


def commands_of(
    stack: ExitStack,
    context: CommandContext,
    sandbox: Sandbox,
    repository: Checkout,
    journal: Journal,
    settings: Settings,
) -> Commands:
    """Return the session's commands; `stack` closes what they open."""
    session = journal.session
    locks = state_folder(context.root) / "locks"
    watched = (locks / f"module-{session.module}.lock", recording_path(context.root, session.id))
    kept, compared = _carried(context.root, repository.root, settings.verify.carry, sandbox)
    protected = ProtectedPaths(repository.root, lambda: (*repository.nested_settings(), *compared()))
    unchecked = rooms_folder(repository.root).with_suffix(".unchecked")
    commands = Commands(
        sandbox, repository, protected, journal, watched=watched, carried=kept, unchecked=unchecked
    )
    stack.callback(commands.close)
    return commands


def _carried(
    home: Path, root: Path, carry: Sequence[str], sandbox: Sandbox
) -> tuple[tuple[Path, ...], Callable[[], Iterable[str]]]:
    """Return the carried paths that no command may change, and the files among them to compare after each command.

    bubblewrap shows what exists read-only; what does not exist yet, and everything elsewhere, is compared. A work tree
    of its own holds no carried file.
    """
    if home != root:
        return (), tuple
    kept = tuple(root / path for path in carry)
    compared = tuple(p for p in kept if sandbox.name != "bwrap" or not p.exists())
    if sum(p.stat().st_size for p in _files(compared)) > MOST_COMPARED_BYTES:
        raise LopenError(
            f"verify.carry names more than {MOST_COMPARED_BYTES:,} bytes, which only bubblewrap protects from commands",
            hint="install bubblewrap, or name fewer files",
        )
    return kept, lambda: [str(path.relative_to(root)) for path in _files(compared)]


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at and below the paths; links to folders are not followed."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            yield from (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        elif path.is_file():
            yield path


def hook_runner(commands: Commands, root: Path) -> Callable[..., tuple[int, str]]:
    """Return a function that runs a repository hook as a command with a folder that it may write to."""

    def run(argv: tuple[str, ...], variables: Mapping[str, str]) -> tuple[int, str]:
        scratch = project_cache_folder(root, HOOKS)
        command = Command(tuple(argv), root, timeout_s=600, env=variables, scratch=scratch, trusted=True)
        ran = commands.run(command)
        return ran.exit_code, ran.output

    return run
