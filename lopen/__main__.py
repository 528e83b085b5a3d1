"""The entry point: fast paths, signals, and the one place where a failure becomes words and an exit code."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it is gone, and what lay there with it
        here = ""
    # `python -m` would import from the project it is run in: a `json.py` there is not ours
    if sys.path[:1] == [here]:
        del sys.path[0]

from collections.abc import Sequence
from importlib import import_module


def main(arguments: Sequence[str] | None = None) -> int:
    """Run lopen; the exit code. `hook` and `--version` load nothing but what they need."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if (
        "PATH" in os.environ
    ):  # whatever is looked up from here on: never in the folder lopen happens to run in
        os.environ["PATH"] = _absolute(os.environ["PATH"])
    if arguments[:1] == ["hook"]:
        import_module("lopen.claude_hooks.entry").run(arguments[1:])
    if arguments == ["--version"] and _version_said():
        return 0
    try:
        from lopen.cli.outcome import guarded
    except KeyboardInterrupt:  # before anything had begun
        return 130
    return guarded(arguments)


def _version_said() -> bool:
    """Write the version; False where that fails: `guarded` tries again and says so."""
    from lopen import __version__

    try:
        os.write(sys.stdout.fileno(), f"lopen {__version__}\n".encode())
    except (OSError, AttributeError):  # there is no stream where its descriptor was closed
        return False
    return True


def _absolute(path: str) -> str:
    """A search path without its empty, `.` and other relative entries."""
    return os.pathsep.join(e for e in path.split(os.pathsep) if os.path.isabs(e)) or os.defpath


if __name__ == "__main__":
    sys.exit(main())
