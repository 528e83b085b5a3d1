"""The entry point: fast paths for `hook` and `--version`, and the guarded command line."""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    try:
        here = os.getcwd()
    except FileNotFoundError:  # the current folder does not exist any more
        here = ""
    # `python -m` would import from the project, where a `json.py` may exist
    if sys.path[:1] == [here]:
        del sys.path[0]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run lopen; the exit code. `hook` and `--version` load nothing but what they need."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "PATH" in os.environ:  # no program is ever looked up in the current folder
        os.environ["PATH"] = _absolute(os.environ["PATH"])
    if arguments[:1] == ["hook"]:
        gc.disable()  # the process ends before there is anything to collect
        from lopen.claude_hooks.entry import run

        run(arguments[1:])
    if arguments == ["--version"] and _print_version():
        return 0
    try:
        from lopen.cli.outcome import guarded
    except KeyboardInterrupt:  # before the signal handlers are set
        return 130
    return guarded(arguments)


def _print_version() -> bool:
    """Print the version; return False if that fails, so that `guarded` tries again and reports it."""
    from lopen import __version__

    try:
        os.write(sys.stdout.fileno(), f"lopen {__version__}\n".encode())
    except (OSError, AttributeError):  # the descriptor is closed
        return False
    return True


def _absolute(path: str) -> str:
    """Return a search path without empty and relative entries."""
    return os.pathsep.join(e for e in path.split(os.pathsep) if os.path.isabs(e)) or os.defpath


if __name__ == "__main__":
    sys.exit(main())
