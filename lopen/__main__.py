"""The entry point: fast paths for `hook` and `--version`, and the guarded command line."""

from __future__ import annotations

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

from lopen.core.person import use_absolute_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run lopen; the exit code. `hook` and `--version` load only the modules that they need."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["hook"]:
        from lopen.claude_hooks.entry import main as answer_hook

        return answer_hook(arguments[1:], sys.stdin.buffer, sys.stdout, sys.stderr)
    use_absolute_path(os.environ)
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


if __name__ == "__main__":
    sys.exit(main())
