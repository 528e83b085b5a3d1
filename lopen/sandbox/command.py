"""The port: a command in, a result out. `FakeSandbox` ships beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from lopen.base.errors import LopenError

OUTPUT_CHARACTERS = 30_000
TIMEOUT_S = 120.0

KilledBy = Literal["", "timeout", "output", "processes"]


class SandboxFailed(LopenError):
    """The sandbox itself could not be set up; the command never ran."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """What one command may use. `processes` counts threads too; memory and file size are a process's."""

    processes: int = 512
    memory_mb: int = 4_096
    file_mb: int = 1_024
    output_mb: int = 64


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: a line for `/bin/sh -c`, or an argument list. Standard input is empty.

    `cwd` lies in the project. Without `writable` the project is read-only, as the planning steps want it.
    `env` is lopen's own addition to the cleaned environment. `output_limit` is in characters. `scratch` is a
    folder below `.lopen/cache` that this command may write to besides; `guarded` are files and folders of the
    project that it may only read, where the sandbox can see to that. `trusted`: what it says decides over the
    model's work (verify commands, hooks), so it loads nothing that the model's commands left beside the project.
    """

    line: str | tuple[str, ...]
    cwd: Path
    timeout_s: float = TIMEOUT_S
    writable: bool = True
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    output_limit: int = OUTPUT_CHARACTERS
    scratch: Path | None = None
    guarded: tuple[str, ...] = ()
    trusted: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """What is executed."""
        return ("/bin/sh", "-c", self.line) if isinstance(self.line, str) else self.line


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What came of it. `output` is both streams as they came, undecodable bytes replaced, its middle cut
    where `truncated`; escape sequences in it are data. A death by signal n is exit code 128 + n.
    """

    exit_code: int
    output: str
    truncated: bool = False
    timed_out: bool = False
    seconds: float = 0.0
    killed_by: KilledBy = ""


class Sandbox(Protocol):
    """Runs commands of one project. When `run` returns, nothing the command started is left running."""

    @property
    def name(self) -> str:
        """`bwrap`, `landlock` or `none`."""
        ...

    @property
    def warning(self) -> str:
        """What it does not promise, for a person; "" where it keeps all of docs/reference/sandbox.md."""
        ...

    def run(self, command: Command) -> CommandResult:
        """Run to the end, the timeout or a limit. Raises SandboxFailed where it cannot be run at all."""
        ...


@dataclass
class FakeSandbox:
    """The port's fake: answers from a list (success when it is used up), and keeps the commands it was given."""

    results: list[CommandResult] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    name: str = "fake"
    warning: str = ""

    def run(self, command: Command) -> CommandResult:
        self.commands.append(command)
        return self.results.pop(0) if self.results else CommandResult(exit_code=0, output="")
