"""Modules of a project: their names, and the folders of `specs/` that hold their specifications."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from lopen.base.errors import LopenError, WrongUsage
from lopen.documents.source import file_instead_of_folder

FILE_NAME = "SPECIFICATION.md"
MAX_MODULE_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


def module_name(name: str) -> str:
    """Return a valid module name; it becomes a folder, a part of ids and of a branch name.

    Raises:
        WrongUsage: the name is not valid.
    """
    if error := _name_error(name):
        raise WrongUsage(
            f"invalid module name {name!r}: {error}",
            hint="use at most 64 letters, digits, '-', '_' and single '.'; start with a letter, a digit or '_'",
        )
    return name


def is_module_name(name: str) -> bool:
    """Return True if a module can have this name."""
    return not _name_error(name)


def _name_error(name: str) -> str:
    """Return the error in a module name, which becomes a branch name too; "" for a valid name."""
    if not name:
        return "it is empty"
    if len(name) > MAX_MODULE_NAME:
        return f"it has {len(name)} characters"
    if (forbidden := _NOT_IN_NAMES.search(name)) is not None:
        return f"it contains {forbidden[0]!r}"
    if name[0] in "-.":
        return f"it begins with {name[0]!r}"
    if ".." in name:
        return "it contains '..'"
    return next(
        (f"it ends with {end!r}, which git refuses" for end in (".", ".lock") if name.endswith(end)), ""
    )


def spec_path(root: Path, module: str) -> Path:
    """Return the path of a module's specification. Raise `WrongUsage` for an invalid name."""
    return root / "specs" / module_name(module) / FILE_NAME


def find_modules(root: Path) -> list[str]:
    """Return the modules of a project by name: the folders of `specs/` with a specification.

    A project whose `specs` is a link out of the project has none. Raise `UnreadableSource` if `specs` is a file.
    """
    return [name for name in _specified(root) if is_module_name(name)]


def misnamed_specifications(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the path and the problem of each specification that is not found because of its name or its folder's."""
    for name in _specified(root):
        if error := _name_error(name):
            path = root / "specs" / name / FILE_NAME
            yield path, f"invalid module name {name!r}: {error}; rename the folder"
    for path in sorted((root / "specs").glob("*/*.[mM][dD]")):
        if path.name != FILE_NAME and path.name.casefold() == FILE_NAME.casefold():
            yield path, f"the file must be named {FILE_NAME}; rename it"


def require_known(module: str, known: Sequence[str]) -> None:
    """Raise `LopenError` for a module without a specification; suggest a similar name."""
    if module_name(module) not in known:
        near = get_close_matches(module, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"to create it: lopen init {module}"
        raise LopenError(f"no module named {module}", hint=hint)


def _specified(root: Path) -> list[str]:
    specs = root / "specs"
    try:
        if not specs.resolve().is_relative_to(root.resolve()):
            return []
        return sorted(f.name for f in specs.iterdir() if (f / FILE_NAME).is_file())
    except NotADirectoryError as error:
        raise file_instead_of_folder(specs) from error
    except OSError:  # no specs folder, or one that cannot be listed: no modules
        return []
