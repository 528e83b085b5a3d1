"""Well-known caches that never enter a commit, even if no `.gitignore` lists them, and the lines to add there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from lopen.core.files import TEMPORARY
from lopen.git.command import GitCommand

# Names that are not used for sources. They are ignore patterns, so tracked files stay tracked.
CACHE_PATTERNS = (
    "__pycache__/",
    "*.py[co]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".venv/",
    ".eggs/",
    "*.egg-info/",
    "node_modules/",
    ".gradle/",
    ".next/",
    ".nuxt/",
    ".turbo/",
    ".parcel-cache/",
)

# An unfinished file that a killed lopen left beside its target (`lopen.core.files`).
HALF_WRITTEN = f"{TEMPORARY}*"

# `target` may be a folder of sources; it is a cache only beside the file of a build tool that creates it.
BUILD_FOLDER = "target"
_BUILD_FILES = ("Cargo.toml", "pom.xml", "build.sbt")

_LOPEN = ".lopen"
_LOPEN_SHARED = frozenset({".lopen/.gitignore", ".lopen/config.toml"})


# For `info/exclude`, so that the state is ignored also on a branch without `.lopen/.gitignore`.
STATE_PATTERNS = (f"/{_LOPEN}/*", *(f"!/{path}" for path in sorted(_LOPEN_SHARED)))


def is_internal(path: str) -> bool:
    """Return True if `path` is lopen's own state, which is never versioned."""
    return path.split("/", 1)[0] == _LOPEN and path not in _LOPEN_SHARED


def is_protected_path(path: str) -> bool:
    """Return True if only the person may write this path: nested settings, or anything in a `.git`."""
    *above, name = path.split("/")
    if ".git" in (*above, name) or ".lopen" in above[1:]:
        return True
    return len(above) > 1 and above[-1] == ".claude" and name.startswith("settings")


def is_cache(path: str) -> bool:
    """Return True if `path` is, or is in, a well-known cache by its name."""
    names = PurePosixPath(path).parts
    return any(PurePosixPath(name).match(line.rstrip("/")) for name in names for line in CACHE_PATTERNS)


def is_build_folder(folder: Path) -> bool:
    """Return True if cargo, Maven or sbt writes this folder called `target`."""
    return any((folder.parent / name).is_file() for name in _BUILD_FILES)


def in_build_folder(path: str, is_cache: Callable[[str], bool]) -> bool:
    """Return True if `path` is in a folder called `target` for which `is_cache(folder)` is true."""
    parents = (parent for parent in PurePosixPath(path).parents if parent.name == BUILD_FOLDER)
    return any(is_cache(str(parent)) for parent in parents)


def with_lines(text: str, lines: Iterable[str]) -> str:
    """Return `text` with the missing ones of `lines` appended, and with its own line ends."""
    present = {line.removesuffix("\r") for line in text.split("\n")}
    end = "\r\n" if "\r\n" in text else "\n"
    missing = "".join(f"{line}{end}" for line in lines if line not in present)
    return text + (end if missing and text and not text.endswith("\n") else "") + missing


def ignored_paths(content: GitCommand) -> list[str]:
    """Return the ignored paths of the work tree, without lopen's own state; a folder counts once and ends in `/`."""
    answer = content.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    return [path for path in answer.fields() if path.split("/", 1)[0] != _LOPEN]
