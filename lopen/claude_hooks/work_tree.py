"""A mark of the work tree's state, by which a command that fails again is told from one that fails anew."""

from __future__ import annotations

import os

from lopen.core.hashing import blake2b

MOST_FILES = 2_000


def tree_mark(root: str, within_s: float) -> str:
    """A digest of the commit and of the tracked files that differ from it; "" where git does not tell within the time.

    Files that git does not track are left out: a test run writes some.
    """
    head = git_lines(root, "rev-parse", "--verify", "-q", "HEAD", within_s=within_s)
    changed = git_lines(root, "ls-files", "-m", "-z", within_s=within_s)
    if changed is None:
        return ""
    told = [*(head or ["none"])]
    for name in "".join(changed).split("\0")[:MOST_FILES]:
        try:
            status = os.lstat(os.path.join(root, name))
        except OSError:
            told.append(f"{name} gone")
        else:
            told.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return blake2b("\n".join(told).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def git_lines(folder: str, *arguments: str, within_s: float) -> list[str] | None:
    """The lines that git gives; None where it fails."""
    import subprocess

    argv = ["git", "-C", folder, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *arguments]
    environ = os.environ | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(argv, capture_output=True, env=environ, timeout=within_s, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    return [line for line in done.stdout.decode("utf-8", "replace").split("\n") if line]
