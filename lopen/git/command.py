"""Running git: one fixed environment, hardened configuration, locks waited for. The only importer of GitPython.

GitPython's `Git` starts the process; what it cannot do, dropping inherited variables, is left to `env -u`, and
only where there are any.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lopen.base.clock import Clock
from lopen.base.trusted_programs import find_program
from lopen.git.errors import GitError, GitTimedOut, lock_in, translate

TIMEOUT_S = 300.0  # a named pipe called .gitignore would otherwise hold git for ever
GRACE_S = 5.0
_GITPYTHONS = "GIT_PYTHON_GIT_EXECUTABLE"
# git tells of a lock that is held, and of none that is let go: it is tried again, ever later.
LOCK_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)

# Identity and the places of the person's own configuration are kept; whatever else begins with GIT_ comes from
# a surrounding git (a hook, an alias, `git rebase --exec`) and speaks of another repository.
_KEPT = frozenset(
    {f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")}
    | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
)

# Laid over every configuration git reads. What lopen never asks git to do is here too: a later git may do
# more by itself than today's.
HARDENED: Mapping[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.quotePath": "false",
    "core.commentChar": "#",  # a letter would make comments of lopen's trailers
    "core.commentString": "#",
    "core.fsyncMethod": "fsync",  # what is said to be durable is: no batch, no mere write-out
    "core.preferSymlinkRefs": "false",  # HEAD as a link reads as a commit
    "core.filesRefLockTimeout": "100",  # milliseconds; a negative one waits for ever
    "core.packedRefsTimeout": "1000",
    "credential.helper": "",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "advice.graftFileDeprecated": "false",
    "trailer.separators": ":",
    "i18n.commitEncoding": "utf-8",
    "i18n.logOutputEncoding": "utf-8",
    "user.useConfigOnly": "true",
}

_FIXED: Mapping[str, str] = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # beats protocol.<name>.allow of the repository: nothing is ever fetched
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ADVICE": "0",
}


@dataclass(frozen=True, slots=True)
class GitOutput:
    """How a git process ended."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Standard output as text, without the newline at its end; undecodable bytes survive as surrogates."""
        return os.fsdecode(self.stdout).removesuffix("\n")

    def fields(self) -> list[str]:
        """Standard output of a `-z` command, as its NUL-terminated fields."""
        return os.fsdecode(self.stdout).split("\0")[:-1]


@dataclass(frozen=True, slots=True)
class GitCommand:
    """git, run in `folder`, with `environment` and `config` over the fixed ones."""

    executable: str
    folder: Path
    clock: Clock
    environment: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)

    def having(
        self, environment: Mapping[str, str] | None = None, *, config: Mapping[str, str] | None = None
    ) -> GitCommand:
        """This command with more variables or more configuration."""
        return replace(
            self,
            environment={**self.environment, **(environment or {})},
            config={**self.config, **(config or {})},
        )

    def run(self, *arguments: str, stdin: bytes = b"", accept: Collection[int] = (0,)) -> GitOutput:
        """Run `git <arguments>`; a held lock is waited for, about five seconds in all.

        Raises:
            GitError: git ended with an exit code not in `accept`, or not at all.
        """
        waits = iter(LOCK_WAITS_S)
        while True:
            output = self._once(arguments, stdin)
            if output.exit_code in accept:
                return output
            wait = next(waits, None) if lock_in(output.stderr) else None
            if wait is None:
                raise translate(arguments[0], output.exit_code, output.stderr, folder=str(self.folder))
            self.clock.sleep(wait)

    def _once(self, arguments: Sequence[str], stdin: bytes) -> GitOutput:
        variables = self._variables()
        argv = [*_dropping(variables), self.executable, *arguments]
        process = _start(argv, self.executable, self.folder, variables)
        try:
            stdout, stderr = process.communicate(stdin, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _end(process)
            raise GitTimedOut(
                f"git {arguments[0]} did not end within {TIMEOUT_S:g} s",
                hint="look for a named pipe or a stalled network folder in the work tree",
            ) from None
        except BaseException:  # a signal that unwinds lopen: git removes its lock files and ends too
            process.terminate()
            raise
        return GitOutput(process.returncode, stdout, stderr.decode("utf-8", "replace"))

    def _variables(self) -> dict[str, str]:
        return {**_FIXED, **self.environment, **as_variables({**HARDENED, **self.config})}


def as_variables(config: Mapping[str, str]) -> dict[str, str]:
    """Configuration laid over every file that git reads, as the variables that say so."""
    entries = {f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(config)}
    entries |= {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(config.values())}
    return entries | {"GIT_CONFIG_COUNT": str(len(config))}


def _end(process: Any) -> None:
    """End a process that took too long, giving it the time to remove its lock files."""
    process.terminate()
    try:
        process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def find_git(project: Path) -> str:
    """The absolute path of git: never one in `project`, where whoever wrote the repository, or a command, put it."""
    found = find_program("git", os.environ.get("PATH", os.defpath).split(os.pathsep), project)
    if found is None:
        raise GitError("git was not found", hint="install git 2.36 or later and put it on PATH")
    return found


def _dropping(given: Mapping[str, str]) -> list[str]:
    """`env -u NAME …` for inherited variables that must not reach git; nothing where there are none."""
    strays = {name for name in os.environ if name.startswith("GIT_")} - _KEPT - given.keys()
    return ["/usr/bin/env", *(part for name in sorted(strays) for part in ("-u", name))] if strays else []


def _start(argv: list[str], git: str, folder: Path, variables: Mapping[str, str]) -> Any:
    """A started process. GitPython types its wrapper's attributes as `Any`; `run` is where that ends."""
    try:
        starter, not_found = _gitpython(git)
    except ImportError as error:  # GitPython runs git when it is imported
        raise GitError(f"git cannot be used: {error}", hint="install git 2.36 or later") from error
    if not folder.is_dir():
        raise GitError(f"{folder} is no folder")
    try:
        return starter(folder).execute(
            argv, istream=subprocess.PIPE, as_process=True, env={**variables}, shell=False
        )
    except (not_found, OSError, ValueError) as error:  # ValueError: a NUL or half a character
        raise GitError(f"git could not be started: {error}", hint="see: lopen doctor") from error


@cache
def _gitpython(git: str) -> tuple[Any, type[Exception]]:
    """GitPython (80 ms, so only where git is really used), told which git to try as it is imported."""
    before = os.environ.get(_GITPYTHONS)
    os.environ[_GITPYTHONS] = git
    try:
        from git import Git
        from git.exc import GitCommandNotFound
    finally:
        os.environ.pop(_GITPYTHONS)
        if before is not None:
            os.environ[_GITPYTHONS] = before
    return Git, GitCommandNotFound
