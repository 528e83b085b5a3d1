"""Run git with a fixed environment and a hardened configuration, waiting for locks. The only importer of GitPython.

GitPython's `Git` starts the process. It cannot drop inherited variables, so `env -u` does that if there are any.
"""

from __future__ import annotations

import os
import select
import shlex
import stat
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lopen.core.clock import Clock
from lopen.core.trusted_programs import find_program
from lopen.git.errors import GitError, GitTimedOut, lock_in, translate

TIMEOUT_S = 300.0
STALLED_S = 3.0  # after which lopen looks for a pipe that git may be reading
_READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})
_MOST_FOLDERS = 200_000
GRACE_S = 5.0
_GITPYTHON_VARIABLE = "GIT_PYTHON_GIT_EXECUTABLE"
# git does not report that a lock was released, so lopen retries with growing waits.
LOCK_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)

# The identity and the paths of the user's own configuration are inherited. Other GIT_ variables come from an outer
# git (a hook, an alias, `git rebase --exec`) and refer to another repository.
_INHERITED = frozenset(
    {f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")}
    | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
)

# Overrides every configuration that git reads. It also covers what lopen does not use, because a later git may do
# more by itself.
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
        _wait_by_descriptor(process.proc)
        try:
            try:
                stdout, stderr = process.communicate(stdin, timeout=min(STALLED_S, self.timeout_s))
            except subprocess.TimeoutExpired:
                if pipe := pipe_below(self.folder):
                    _end(process)
                    raise _stalled_by(pipe) from None
                stdout, stderr = process.communicate(timeout=max(0, self.timeout_s - STALLED_S))
        except subprocess.TimeoutExpired:
            _end(process)
            raise GitTimedOut(
                f"git {arguments[0]} did not end within {self.timeout_s:g} s",
                hint="look for a named pipe or a stalled network folder in the work tree",
            ) from None
        except BaseException:  # a signal: git removes its lock files and ends, before anything else is done
            _end(process)
            raise
        finally:
            del process.proc.wait  # a circle of references would keep the output
        return GitOutput(process.returncode, stdout, stderr.decode("utf-8", "replace"))

    def _variables(self) -> dict[str, str]:
        return {**_FIXED, **self.environment, **as_variables({**HARDENED, **self.config})}


def as_variables(config: Mapping[str, str]) -> dict[str, str]:
    """Return configuration that overrides git's files, as environment variables."""
    entries = {f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(config)}
    entries |= {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(config.values())}
    return entries | {"GIT_CONFIG_COUNT": str(len(config))}


def _wait_by_descriptor(process: Any) -> None:
    """Have a wait with a time limit end at the exit: subprocess looks for that in growing intervals, about 1 ms too late."""
    wait = process.wait

    def wait_for_exit(timeout: float | None = None) -> int:
        if process.returncode is None and timeout is not None:
            with suppress(AttributeError, OSError):  # other systems than Linux
                descriptor = os.pidfd_open(process.pid)
                try:
                    poll = select.poll()
                    poll.register(descriptor, select.POLLIN)
                    poll.poll(max(0.0, timeout) * 1_000)
                finally:
                    os.close(descriptor)
        return int(wait(timeout))

    process.wait = wait_for_exit


def pipe_below(root: Path) -> Path | None:
    """Return a named pipe, socket or terminal where git looks for a file of its own, which would hold it forever."""
    for count, (folder, folders, names) in enumerate(os.walk(root)):
        for name in _READ_BY_GIT.intersection(names):
            with suppress(OSError):
                if _holds_its_reader(Path(folder, name)):
                    return Path(folder, name)
        folders[:] = [name for name in folders if name != ".git"] if count < _MOST_FOLDERS else []
    return None


def _holds_its_reader(path: Path) -> bool:
    """Return True for a pipe, a socket and a terminal; `/dev/null`, by which rules are switched off, ends at once."""
    mode = path.stat().st_mode
    if not stat.S_ISCHR(mode):
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def _stalled_by(pipe: Path) -> GitTimedOut:
    return GitTimedOut(
        f"git cannot read {pipe}: it is a named pipe, a socket or a terminal",
        hint=f"remove it: rm {shlex.quote(str(pipe))}; then: lopen resume",
    )


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
