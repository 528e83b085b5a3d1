"""Run git with a fixed environment and a hardened configuration, waiting for locks. The only importer of GitPython.

GitPython's `Git` starts the process. It cannot drop inherited variables, so `env -u` does that if there are any.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lopen.core.clock import Clock
from lopen.core.trusted_programs import find_program
from lopen.git.errors import GitError, GitTimedOut, lock_in, translate

TIMEOUT_S = 300.0
GRACE_S = 5.0
_GITPYTHON_VARIABLE = "GIT_PYTHON_GIT_EXECUTABLE"
# git does not report that a lock was released, so lopen retries with growing waits.
LOCK_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)

# The identity, the certificates and the paths of the user's own configuration are inherited. Other GIT_ variables come
# from an outer git (a hook, an alias, `git rebase --exec`) and refer to another repository.
_INHERITED = frozenset(
    {f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")}
    | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}
)

# Overrides every configuration that git reads. It also covers features that lopen does not use, because a later git
# may do more by itself.
HARDENED: Mapping[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "",
    "core.alternateRefsCommand": "true",
    "core.sshCommand": "false",
    "core.quotePath": "false",
    "core.commentChar": "#",  # a letter could turn lopen's trailers into comments
    "core.commentString": "#",
    "core.fsyncMethod": "fsync",  # really durable: no batch, no mere write-out
    "core.preferSymlinkRefs": "false",  # lopen would read a HEAD that is a link as a commit
    "core.filesRefLockTimeout": "100",  # milliseconds; a negative value waits forever
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
    "GIT_ALLOW_PROTOCOL": "none",  # overrides protocol.<name>.allow of the repository: git never fetches
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ADVICE": "0",
}


@dataclass(frozen=True, slots=True)
class GitOutput:
    """The result of a git process."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Standard output as text, without its final newline; undecodable bytes become surrogates."""
        return os.fsdecode(self.stdout).removesuffix("\n")

    def fields(self) -> list[str]:
        """Return the NUL-terminated fields in the standard output of a `-z` command."""
        return os.fsdecode(self.stdout).split("\0")[:-1]


@dataclass(frozen=True, slots=True)
class GitCommand:
    """git in `folder`, with `environment` and `config` in addition to the fixed ones."""

    executable: str
    folder: Path
    clock: Clock
    environment: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S

    def with_options(
        self, environment: Mapping[str, str] | None = None, *, config: Mapping[str, str] | None = None
    ) -> GitCommand:
        """Return this command with additional variables or configuration."""
        return replace(
            self,
            environment={**self.environment, **(environment or {})},
            config={**self.config, **(config or {})},
        )

    def run(self, *arguments: str, stdin: bytes = b"", accept: Collection[int] = (0,)) -> GitOutput:
        """Run `git <arguments>`, waiting about five seconds in total for locks.

        Raises:
            GitError: the exit code is not in `accept`, or git did not end in time.
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
        argv = [*_env_command(variables), self.executable, *arguments]
        process = _start(argv, self.executable, self.folder, variables)
        ended_by_time = threading.Event()
        timer = threading.Timer(self.timeout_s, _terminate, (process, ended_by_time))
        timer.daemon = True
        timer.start()  # a wait with a time limit would look for the exit in growing intervals
        try:
            stdout, stderr = process.communicate(stdin)
        except BaseException:  # a signal: git removes its lock files and ends, before anything else is done
            _end(process)
            raise
        finally:
            timer.cancel()
        if ended_by_time.is_set():
            raise GitTimedOut(
                f"git {arguments[0]} did not end within {self.timeout_s:g} s",
                hint="look for a named pipe or a stalled network folder in the work tree",
            )
        return GitOutput(process.returncode, stdout, stderr.decode("utf-8", "replace"))

    def _variables(self) -> dict[str, str]:
        return {**_FIXED, **self.environment, **as_variables({**HARDENED, **self.config})}


def as_variables(config: Mapping[str, str]) -> dict[str, str]:
    """Return configuration that overrides git's files, as environment variables."""
    entries = {f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(config)}
    entries |= {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(config.values())}
    return entries | {"GIT_CONFIG_COUNT": str(len(config))}


def _terminate(process: Any, ended_by_time: threading.Event) -> None:
    ended_by_time.set()
    process.terminate()


def _end(process: Any) -> None:
    """Terminate a process and wait for its end, with time to remove its lock files."""
    process.terminate()
    try:
        process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def find_git(project: Path) -> str:
    """Return the absolute path of git, never one inside `project`, which the repository or a command may contain."""
    found = find_program("git", os.environ.get("PATH", os.defpath).split(os.pathsep), project)
    if found is None:
        raise GitError("git was not found", hint="install git 2.36 or later and put it on PATH")
    return found


def _env_command(given: Mapping[str, str]) -> list[str]:
    """Return `env -u NAME …` for inherited variables that must not reach git; empty if there are none."""
    unwanted = {name for name in os.environ if name.startswith("GIT_")} - _INHERITED - given.keys()
    return ["/usr/bin/env", *(part for name in sorted(unwanted) for part in ("-u", name))] if unwanted else []


def _start(argv: list[str], git: str, folder: Path, variables: Mapping[str, str]) -> Any:
    """Start a process. The result is `Any` because GitPython does not type its wrapper's attributes."""
    try:
        starter, not_found = _gitpython(git)
    except ImportError as error:  # GitPython runs git when it is imported
        raise GitError(f"cannot use git: {error}", hint="install git 2.36 or later") from error
    if not folder.is_dir():
        raise GitError(f"{folder} is not a folder")
    try:
        return starter(folder).execute(
            argv, istream=subprocess.PIPE, as_process=True, env={**variables}, shell=False
        )
    except (not_found, OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in an argument
        raise GitError(f"cannot start git: {error}", hint="next: lopen doctor") from error


@cache
def _gitpython(git: str) -> tuple[Any, type[Exception]]:
    """Import GitPython with `git` as its executable. The import takes 80 ms, so it waits for the first use."""
    before = os.environ.get(_GITPYTHON_VARIABLE)
    os.environ[_GITPYTHON_VARIABLE] = git
    try:
        from git import Git
        from git.exc import GitCommandNotFound
    finally:
        os.environ.pop(_GITPYTHON_VARIABLE)
        if before is not None:
            os.environ[_GITPYTHON_VARIABLE] = before
    return Git, GitCommandNotFound
