"""The sandbox port: commands, their results and limits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Literal, Protocol

from lopen.core.errors import LopenError

OUTPUT_CHARACTERS = 30_000
TIMEOUT_S = 120.0

# Folders of tools' caches inside installed packages: by the folder's name, their names in it
CACHES_INSIDE = {"node_modules": (".cache", ".tmp", ".vite", ".vite-temp")}

KilledBy = Literal["", "timeout", "output", "processes", "memory", "cancelled"]


def make_caches(folder: Path) -> None:
    """Make the folders of `CACHES_INSIDE` in `folder` where they lack: bubblewrap shows writable ones there."""
    for name in CACHES_INSIDE.get(folder.name, ()):
        with suppress(OSError):  # `folder` is not a folder, or belongs to somebody else
            (folder / name).mkdir(exist_ok=True)


class SandboxFailed(LopenError):
    """The sandbox cannot be set up; the command did not run."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """The resources of one command with everything that it starts.

    `processes` counts threads too; `file_mb` is the size of one file.
    """

    processes: int = 512
    memory_mb: int = 4_096
    file_mb: int = 1_024
    output_mb: int = 64


@dataclass(frozen=True, slots=True)
class Room:
    """The folders that a verify command gets in place of the project: a clean checkout and a HOME of its own.

    `fixed` are (source, place below `files` or `home`) that the command cannot change, where the sandbox supports it;
    `carried` are (source, path relative to `files`), read-only too. bubblewrap shows `files` at the project's own
    path, and `carried` in it; elsewhere the command runs in `files`, where the caller has linked `carried`. `git` is the
    git folder of the room, `repository` the one whose objects it shares, both read-only.
    """

    files: Path
    home: Path
    fixed: tuple[tuple[Path, Path], ...] = ()
    carried: tuple[tuple[Path, str], ...] = ()
    git: Path | None = None
    repository: Path | None = None

    def mounts(self, root: Path, home: Path) -> tuple[tuple[str, Path, Path], ...]:
        """Return the mounts (bubblewrap's option, source, place) that show the room at `root` and `home`.

        `git` is there too, read-only.
        """
        shown = [("--bind", self.files, root), ("--bind", self.home, home)]
        for source, path in self.fixed:
            base, place = (self.files, root) if path.is_relative_to(self.files) else (self.home, home)
            shown.append(("--ro-bind", source, place / path.relative_to(base)))
        shown += [("--ro-bind", source, root / path) for source, path in self.carried]
        if self.git is not None:
            shown.append(("--ro-bind", self.git, root / ".git"))
        if self.repository is not None:
            shown.append(("--ro-bind", self.repository, self.repository))
        return tuple(shown)


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run: a line for `/bin/sh -c`, or an argument list. Standard input is empty.

    `cwd` is a folder of the project. Without `writable` the project is read-only, as in the planning steps. `env`
    extends the cleaned environment. `output_limit` is in characters.
    `network`: the machine's network, its own services included.
    In a `room` the command sees neither the project nor lopen's marks.
    `shown` are (source, place): files and folders outside the project to be read, under bubblewrap at a place in the
    project or in HOME. The command is ended as soon as `cancelled` is set.
    """

    line: str | tuple[str, ...]
    cwd: Path
    timeout_s: float = TIMEOUT_S
    writable: bool = True
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    output_limit: int = OUTPUT_CHARACTERS
    room: Room | None = None
    shown: tuple[tuple[Path, Path], ...] = ()
    cancelled: Event | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """The argument list to execute."""
        return ("/bin/sh", "-c", self.line) if isinstance(self.line, str) else self.line


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. `output` has both streams in order, with undecodable bytes replaced; without its
    middle if `truncated`. Escape sequences in it are data. A command that signal n ends has exit code 128 + n.
    """

    exit_code: int
    output: str
    truncated: bool = False
    timed_out: bool = False
    seconds: float = 0.0
    killed_by: KilledBy = ""


class Sandbox(Protocol):
    """Runs commands of one project. When `run` returns, no process of the command is running."""

    @property
    def name(self) -> str:
        """`bwrap`, `landlock` or `none`."""
        ...

    @property
    def warning(self) -> str:
        """The limits of its confinement in words for the user; "" for full confinement."""
        ...

    def run(self, command: Command) -> CommandResult:
        """Run until the command ends, times out or exceeds a limit. Raise SandboxFailed if it cannot start."""
        ...
