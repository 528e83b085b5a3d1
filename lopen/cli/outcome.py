"""The outcome of a command line: its streams, and every failure as a message and an exit code, here and nowhere else."""

from __future__ import annotations

import errno
import io
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
from typing import Any, TextIO

import typer
from typer.exceptions import TyperException

from lopen.application.command_context import find_root, json_line, with_project
from lopen.cli.parameters import Invocation
from lopen.core.errors import ExitCode, LopenError, PersonNeeded, Stopped
from lopen.core.escape import inert
from lopen.core.wrapping import width_of, wrapped


def prepare_streams() -> None:
    """Have Python's standard streams escape characters that their encoding lacks.

    A closed descriptor (`>&-`) becomes the null device. A stream that a calling program has replaced is left alone.
    """
    # Also the names with underscores: `shutil` asks `sys.__stdout__` for the terminal's width.
    if sys.stdout is sys.__stdout__:
        sys.stdout = sys.__stdout__ = _prepared(sys.stdout)  # type: ignore[misc, assignment]
    if sys.stderr is sys.__stderr__:
        sys.stderr = sys.__stderr__ = _prepared(sys.stderr)  # type: ignore[misc, assignment]


def _prepared(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def discard(stream: TextIO) -> None:
    """Discard unwritten output, so that the interpreter does not fail at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


MISSING = re.compile(r"(?<=^Missing argument )'[^']+'")
NOT_A_NUMBER = re.compile(r"Input should be a valid (integer|number), unable to parse.*", re.DOTALL)
WANTED = {"integer": "it must be a whole number", "number": "it must be a number"}
SIGNALS = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HUNG_UP,
}
_STOPPED = {
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
    ExitCode.HUNG_UP: "the terminal was closed",
}
ISSUES = "please report it and attach that file"


def guarded(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; nothing is raised but `SystemExit`."""
    prepare_streams()
    invocation = _early_options(arguments)
    try:
        catch_signals()
        from lopen.cli.app import run

        code = run(arguments, invocation)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # click makes an exit of a closed pipe
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        discard(sys.stdout)
        return ExitCode.FAILED
    except (Exception, Stopped, KeyboardInterrupt) as error:  # noqa: BLE001 - the top: every failure ends here
        if _is_unwritable_stream(error):
            discard(sys.stdout)
        with suppress(OSError):
            return _report(error, invocation)
        discard(sys.stdout)
        return ExitCode.FAILED
    return code


def _early_options(arguments: Sequence[str]) -> Invocation:
    """Return `--json` and `-v` as given: wrong usage, which is not parsed, is reported with them too."""
    options = list(arguments)
    if "--" in options:
        options = options[: options.index("--")]
    return Invocation(json="--json" in options, verbose="-v" in options or "--verbose" in options)


def _report(error: BaseException, invocation: Invocation) -> ExitCode:
    message, hint, code, command = _message(error, invocation)
    lines = [f"lopen: {inert(message, lines=True)}"] if message else []
    given = str(invocation.project) if invocation.project else ""
    if hint:
        lines.append(with_project(f"  {inert(hint, lines=True)}", given))
    if invocation.verbose and _is_bug(error):
        lines.append(inert(_details(error, invocation), lines=True).rstrip("\n"))
    if command:
        lines.append(with_project(f"next: {inert(command)}", given))
    try:
        sys.stderr.writelines(f"{wrapped(line, width_of(sys.stderr))}\n" for line in lines)
        sys.stderr.flush()
    except OSError:  # a program may still read standard output
        discard(sys.stderr)
    if invocation.json:
        more = {"command": command} if command else {}
        line = json_line("error", message=message, hint=hint, exit_code=int(code), **more)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return code


def _message(error: BaseException, invocation: Invocation) -> tuple[str, str, ExitCode, str]:
    """Return the message, the hint, the exit code and the command to run next."""
    match error:
        case PersonNeeded():
            return error.message, error.hint, error.exit_code, error.command
        case LopenError():
            return error.message, error.hint, error.exit_code, ""
        case TyperException():
            return _usage(error)
        case typer.Abort():
            return "cancelled", "", ExitCode.FAILED, ""
        case Stopped():
            return _STOPPED[error.exit_code], "", error.exit_code, ""
        case KeyboardInterrupt():
            return _STOPPED[ExitCode.INTERRUPTED], "", ExitCode.INTERRUPTED, ""
        case OSError() if _is_unwritable_stream(error):
            hint = "free some disk space, or redirect the output"
            return f"cannot write the output: {error.strerror}", hint, ExitCode.FAILED, ""
        case _:
            where = _save_details(error, invocation)
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            return f"internal error in lopen: {what}", f"details: {where}; {ISSUES}", ExitCode.FAILED, ""


def _is_unwritable_stream(error: BaseException) -> bool:
    """Return True for a failure to write standard output or error; only files have a name."""
    return isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EIO)


def _is_bug(error: BaseException) -> bool:
    """True for an error that lopen does not foresee: only there a traceback helps."""
    expected = (LopenError, TyperException, typer.Abort, Stopped, KeyboardInterrupt)
    return not isinstance(error, expected) and not _is_unwritable_stream(error)


def _usage(error: TyperException) -> tuple[str, str, ExitCode, str]:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "lopen"
    text = MISSING.sub(lambda found: found[0].upper(), error.format_message())  # as the help spells it
    text = NOT_A_NUMBER.sub(lambda found: WANTED[found[1]], text)
    text = text.replace("Input should be", "it must be").rstrip(".")
    return text, f"see {path} --help", ExitCode.USAGE, ""


def _details(error: BaseException, invocation: Invocation) -> str:
    """Return the traceback without known secrets."""
    from lopen.sandbox.known_secrets import KnownSecrets

    root = find_root(invocation.project or Path.cwd())
    return KnownSecrets(root, os.environ).redact("".join(traceback.format_exception(error)))


def _save_details(error: BaseException, invocation: Invocation) -> Path:
    """Write the traceback to a file that only its owner reads; return its path."""
    root = find_root(invocation.project or Path.cwd())
    text = _details(error, invocation)
    state = root / ".lopen"
    folder = state / "logs" if state.is_dir() and not state.is_symlink() else None
    prefix = f"{'' if folder else 'lopen-'}crash-{datetime.now(UTC):%Y%m%dT%H%M%S}-"
    try:
        if folder is not None:
            folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, path = tempfile.mkstemp(prefix=prefix, suffix=".txt", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        sys.stderr.write(text)
        return Path("standard error")
    return Path(path)


def catch_signals() -> None:
    """Make SIGINT, SIGTERM and SIGHUP raise `Stopped`; a second one ends the process at once.

    A signal that the parent process ignores (a background job, nohup) stays ignored. Nothing is written to a
    terminal that was closed.
    """
    stopping = False
    modes = _terminal_modes()

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        code = SIGNALS[signal.Signals(number)]
        if code is ExitCode.HUNG_UP:
            discard(sys.stdout)
            discard(sys.stderr)
        if stopping:
            _restore_terminal(modes)
            with suppress(OSError, ValueError):
                os.write(
                    sys.stderr.fileno(), b"lopen: stopped at once; a session goes on with: lopen resume\n"
                )
            os._exit(code)
        stopping = True
        raise Stopped(code)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def _terminal_modes() -> list[Any] | None:
    """Return the modes of the terminal on standard output, None if it is not one."""
    import termios

    try:
        return termios.tcgetattr(sys.stdout.fileno())
    except (OSError, ValueError, termios.error):
        return None


def _restore_terminal(modes: list[Any] | None) -> None:
    """Erase the live view's picture, show the cursor, and restore the modes that it changed."""
    import termios

    if modes is not None:
        with suppress(OSError, ValueError, termios.error):
            os.write(sys.stdout.fileno(), b"\r\x1b[J\x1b[?7h\x1b[?25h")
            termios.tcsetattr(sys.stdout.fileno(), termios.TCSANOW, modes)
