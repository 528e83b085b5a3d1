"""From what a command raised to what a person reads and the exit code. The only place that does so."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TextIO

import typer
from typer.exceptions import TyperException

from lopen.application.command_context import find_root, json_line
from lopen.base.errors import ExitCode, LopenError, PersonNeeded, Stopped
from lopen.base.escape import inert
from lopen.cli.command import Invocation
from lopen.cli.streams import CannotSay, give_up, prepare_streams

NUMBER = re.compile(r"-[\d.,]+")
ISSUES = "please report it with that file"


def guarded(arguments: Sequence[str]) -> int:
    """Run a command line to its exit code; nothing is raised but `SystemExit`."""
    prepare_streams()
    invocation = _glance(arguments)
    try:
        catch_signals()
        from lopen.cli.app import run

        code = run(arguments, invocation)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up(sys.stdout)
        return ExitCode.FAILED
    except (Exception, Stopped, KeyboardInterrupt) as error:  # noqa: BLE001 - the top: every failure ends here
        if isinstance(error, CannotSay):
            give_up(error.stream)
        with suppress(BrokenPipeError, CannotSay):
            return _told(error, invocation)
        give_up(sys.stdout)
        return ExitCode.FAILED
    return code


def _glance(arguments: Sequence[str]) -> Invocation:
    """`--json` and `-v` as they look before anything is parsed: wrong usage has to be told too."""
    options = list(arguments)
    if "--" in options:
        options = options[: options.index("--")]
    return Invocation(json="--json" in options, verbose="-v" in options or "--verbose" in options)


def _told(error: BaseException, invocation: Invocation) -> ExitCode:
    message, hint, code, command = _in_words(error, invocation)
    lines = [f"lopen: {inert(message, lines=True)}"] if message else []
    if hint:
        lines.append(f"  {inert(hint, lines=True)}")
    if invocation.verbose and _is_bug(error):
        lines.append(inert(_details(error, invocation), lines=True).rstrip("\n"))
    if command:
        lines.append(f"next: {inert(command)}")
    try:
        sys.stderr.writelines(f"{line}\n" for line in lines)
        sys.stderr.flush()
    except (BrokenPipeError, CannotSay):  # where no person reads it, a program may
        give_up(sys.stderr)
    if invocation.json:
        more = {"command": command} if command else {}
        line = json_line("error", message=message, hint=hint, exit_code=int(code), **more)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return code


def _in_words(error: BaseException, invocation: Invocation) -> tuple[str, str, ExitCode, str]:
    """(message, hint, exit code, command that goes on)."""
    match error:
        case PersonNeeded():
            return error.message, error.hint, error.exit_code, error.command
        case LopenError():
            return error.message, error.hint, error.exit_code, ""
        case TyperException():
            return _usage(error)
        case typer.Abort():
            return "nothing was decided", "", ExitCode.FAILED, ""
        case Stopped():
            word = "terminated" if error.exit_code is ExitCode.TERMINATED else "interrupted"
            return word, "", error.exit_code, ""
        case KeyboardInterrupt():
            return "interrupted", "", ExitCode.INTERRUPTED, ""
        case _:
            where = _keep_details(error, invocation)
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            return f"this is a bug in lopen: {what}", f"details: {where}; {ISSUES}", ExitCode.FAILED, ""


def _is_bug(error: BaseException) -> bool:
    """Whether nobody expected it: what is expected is told in words, and a traceback adds nothing to those."""
    told = (LopenError, TyperException, typer.Abort, Stopped, KeyboardInterrupt)
    return not isinstance(error, told)


def _usage(error: TyperException) -> tuple[str, str, ExitCode, str]:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "lopen"
    name = getattr(error, "option_name", "")
    if NUMBER.fullmatch(name):
        hint = f"a text that begins with '-' goes behind --, as in: {path} … -- {name}; see {path} --help"
        return f"{name} is no option of {path}, and no number below 0 counts here", hint, ExitCode.USAGE, ""
    return error.format_message(), f"see {path} --help", ExitCode.USAGE, ""


def _details(error: BaseException, invocation: Invocation) -> str:
    """The traceback, without known secrets."""
    from lopen.sandbox.known_secrets import KnownSecrets

    root = find_root(invocation.project or Path.cwd())
    return KnownSecrets(root, os.environ).redact("".join(traceback.format_exception(error)))


def _keep_details(error: BaseException, invocation: Invocation) -> Path:
    """Write the traceback down, readable by the person alone; where."""
    root = find_root(invocation.project or Path.cwd())
    text = _details(error, invocation)
    name = f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    try:
        state = root / ".lopen"
        if state.is_dir() and not state.is_symlink():
            (state / "logs").mkdir(exist_ok=True)
            path = state / "logs" / name
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        else:
            descriptor, temporary = tempfile.mkstemp(prefix="lopen-", suffix=f"-{name}")
            path = Path(temporary)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        sys.stderr.write(text)
        return Path("standard error")
    return path


def catch_signals() -> None:
    """Let SIGINT and SIGTERM raise `Stopped` once; the second one ends the process where it stands.

    A signal that the parent chose to ignore (`nohup`, a job in the background) stays ignored.
    """
    stopping = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        code = ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.TERMINATED
        if stopping:
            _show_cursor(sys.stdout)
            os._exit(code)
        stopping = True
        raise Stopped(code)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def _show_cursor(stream: TextIO) -> None:
    """The live view hides the cursor; leaving at once must not leave it hidden."""
    with suppress(OSError, ValueError):
        if stream.isatty():
            os.write(stream.fileno(), b"\x1b[?25h\n")
