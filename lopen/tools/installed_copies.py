"""Copies of the project that verify-setup installed, and that are not what would be committed.

Tests that import an installed package run its copy. A build that changes the code on its way there, or that puts a `.pth`
file with code beside it, has them test what is in no commit. docs/reference/completion.md
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from lopen.files.plain_files import LINK, blob_id
from lopen.git.repository import Repository
from lopen.git.trees import TreeEntry
from lopen.verification.findings import Finding, Severity

_PLACES = (
    "lib/python*/site-packages",
    "python*/site-packages",
)  # in a virtual environment; in `~/.local/lib`
_OF_TOOLS = {
    "_virtualenv.pth",
    "easy-install.pth",
}  # virtualenv, uv and setuptools write them beside the packages
_MOST_FILES = 5_000
_MOST_BYTES = 2 * 2**20  # of one file
DIFFERS = (
    "verify-setup installed another text of this file than the one that would be committed, and tests that import the "
    "installed package run that: let the build copy files as they are"
)
STARTS_CODE = (
    "verify-setup put {name} into the installed packages, which runs code in each Python that starts and belongs to none "
    "of them: leave it out"
)


def installed_copy_findings(
    repository: Repository, set_up_on: str, installed: Iterable[Path], *, rebuilt: bool
) -> Iterator[Finding]:
    """Yield a finding for each file of the project whose installed copy differs, and for each `.pth` file of no package.

    `set_up_on` is the tree on which verify-setup ran. They are errors where the work changes what it is `rebuilt` by;
    else it was so before, as where a build writes a version number into the copy.
    """
    packages = [place for path in installed for pattern in _PLACES for place in path.glob(pattern)]
    if not packages or not set_up_on:
        return
    severity: Severity = "error" if rebuilt else "warning"
    entries = repository.entries(set_up_on)
    for place in packages:
        known = set(_OF_TOOLS)
        for info in sorted(place.glob("*.dist-info")):
            listed = _listed(info)
            known.update(listed)
            if _is_own(info):
                for path in _differing(repository.layout.object_format, entries, place, listed):
                    yield Finding(severity, DIFFERS, path)
        for file in sorted(place.glob("*.pth")):
            if file.name not in known and _starts_code(file):
                yield Finding(severity, STARTS_CODE.format(name=file.name))


def _listed(info: Path) -> list[str]:
    """Return the files that a package's RECORD lists (PyPA: recording installed projects)."""
    with suppress(OSError):
        lines = (info / "RECORD").read_text("utf-8", "replace").splitlines()[:_MOST_FILES]
        return [line.rsplit(",", 2)[0].strip('"') for line in lines]
    return []


def _is_own(info: Path) -> bool:
    """Return True if a package was built from a folder and copied (PyPA: direct URL data structure)."""
    with suppress(OSError, ValueError, AttributeError):
        told = json.loads((info / "direct_url.json").read_bytes())
        folder = told.get("dir_info")
        return isinstance(folder, dict) and not folder.get("editable")
    return False


def _differing(
    object_format: str, entries: Mapping[str, TreeEntry], place: Path, listed: Iterable[str]
) -> Iterator[str]:
    """Yield the files of a tree whose copies have another content; a copy may have other line ends."""
    by_name: dict[str, list[str]] = {}
    for path, entry in entries.items():
        if entry.mode != LINK and path.endswith(".py"):
            by_name.setdefault(PurePosixPath(path).name, []).append(path)
    for name in listed:
        copy = place / name
        sources = [p for p in by_name.get(copy.name, ()) if f"/{p}".endswith(f"/{name}")]
        if not sources or not copy.is_file() or copy.stat().st_size > _MOST_BYTES:
            continue
        content = copy.read_bytes()
        ids = {blob_id(each, object_format) for each in (content, content.replace(b"\r\n", b"\n"))}
        if not ids.intersection(entries[p].blob for p in sources):
            yield min(sources, key=len)


def _starts_code(file: Path) -> bool:
    """Return True if a line of a `.pth` file is run; the other lines are folders."""
    with suppress(OSError):
        return any(
            line.startswith(("import ", "import\t"))
            for line in file.read_text("utf-8", "replace").splitlines()
        )
    return False
