"""The modules of a project and their files below `specs/`: names, specifications as text, research notes.

Every reason for which a specification cannot be read has its message here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.core.errors import LopenError, WrongUsage, did_you_mean

FILE_NAME = "SPECIFICATION.md"
MAX_MODULE_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


def module_name(name: str) -> str:
    """Return a valid module name; it becomes a folder, a part of ids and of a branch name.

    Raises:
        WrongUsage: the name is not valid.
    """
    if not name:
        raise WrongUsage("the module's name is empty", hint="name a module; lopen status lists them")
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
        hint = did_you_mean(module, known, f"to create it: lopen init {module}")
        raise LopenError(f"no module named {module}", hint=hint)


def _specified(root: Path) -> list[str]:
    specs = root / "specs"
    try:
        if not specs.resolve().is_relative_to(root.resolve()):
            return []
        return sorted(f.name for f in specs.iterdir() if (f / FILE_NAME).is_file())
    except NotADirectoryError as error:
        raise file_instead_of_folder(specs) from error
    except OSError:  # no specs folder, or no permission to list it: no modules
        return []


SPECS = "specs"
MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of a specification in bytes."""


class UnreadableSource(LopenError):
    """The file is missing, too large, not text, or not readable.

    `problem` describes the error in `line`, 0 if it concerns the whole file. The message contains the path too.
    """

    def __init__(self, path: Path, problem: str, *, hint: str, line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path} {problem}", hint=hint)
        self.problem = problem
        self.line = line


class MissingSource(UnreadableSource):
    """The file does not exist."""


def read_source(path: Path) -> str:
    """Return the text of a specification with its byte order mark and line ends.

    Raises:
        UnreadableSource: the file is missing, too large, not text, or not readable.
    """
    content = _bytes(path)
    if b"\0" in content:
        line = _line(content, content.index(b"\0"))
        raise UnreadableSource(
            path, "NUL byte: the file is not text", hint="save it as a UTF-8 text file", line=line
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = _line(content, error.start)
        raise UnreadableSource(
            path,
            f"not UTF-8 at byte {error.start} ({error.reason})",
            hint="save it as UTF-8",
            line=line,
        ) from error


def file_instead_of_folder(folder: Path) -> UnreadableSource:
    """Return the error for a file in the place of `folder` or of one of its parents."""
    file = next((f for f in (folder, *folder.parents) if f.exists()), folder)
    return UnreadableSource(file, "is not a folder", hint="rename or remove it; then: lopen init MODULE")


def _require_inside(path: Path) -> None:
    """Refuse `specs/<module>/SPECIFICATION.md` if links lead it out of its project."""
    if path.parent.parent.name == SPECS and not path.resolve().is_relative_to(path.parents[2].resolve()):
        raise UnreadableSource(
            path, "leads out of the project through a link", hint="replace the link by the file itself"
        )


def _module(path: Path) -> str:
    """Return the name of the module whose specification is at `path`, quoted for a shell."""
    return shlex.quote(path.parent.name)


def _line(content: bytes, offset: int) -> int:
    return len((content[:offset] + b"x").splitlines())


def _bytes(path: Path) -> bytes:
    try:
        _require_inside(path)
        if path.exists() and not path.is_file():  # a named pipe would block forever
            raise UnreadableSource(path, "is not a regular file", hint="put a markdown file there")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        draft = f"write it, or let lopen draft it: lopen spec {_module(path)} -p 'what it should do'"
        others = find_modules(path.absolute().parents[2]) if path.name == FILE_NAME else []
        hint = did_you_mean(path.parent.name, others, draft)
        raise MissingSource(path, "does not exist", hint=hint) from error
    except NotADirectoryError as error:
        raise file_instead_of_folder(path.parent) from error
    except OSError as error:
        raise UnreadableSource(
            path, f"is not readable: {error.strerror or error}", hint="check the file and its permissions"
        ) from error
    if len(content) > MAX_BYTES:
        raise UnreadableSource(
            path,
            f"is larger than {MAX_BYTES // 1024 // 1024} MB",
            hint="split the module, or move material into research files beside the specification",
        )
    return content


EXCERPT_CHARS = 240


@dataclass(frozen=True, slots=True)
class Topic:
    """A research note: its name in the file name, and the start of its summary."""

    name: str
    path: Path
    excerpt: str


def slug(topic: str) -> str:
    """Return the topic for a file name: at most 60 lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", topic.casefold()).strip("-")[:60].strip("-") or "topic"


def render_note(topic: str, summary: str, findings: str, sources: Sequence[str], relevance: str) -> str:
    """Return the note as markdown."""
    parts = [f"# {topic}", "", summary.strip(), "", "## Findings", "", findings.strip(), ""]
    if relevance:
        parts += ["## Relevance", "", relevance.strip(), ""]
    if sources:
        parts += ["## Sources", "", *(f"- {' '.join(s.split())}" for s in sources), ""]
    return "\n".join(parts)


def topics(folder: Path) -> tuple[Topic, ...]:
    """Return every note in the folder `specs/<module>` that can be read, sorted by name. No link leads out of the project."""
    found: list[Topic] = []
    if not folder.resolve().is_relative_to(folder.parents[1].resolve()):
        return ()
    for path in sorted(folder.glob("RESEARCH-*.md")):
        text = None if path.is_symlink() or not path.is_file() else _beginning(path, 4_000)
        if text is None:
            continue
        body = [line for line in text.splitlines()[1:] if line.strip()]
        excerpt = (body[0] if body else "")[:EXCERPT_CHARS]
        found.append(Topic(path.stem.removeprefix("RESEARCH-"), path, excerpt))
    return tuple(found)


def read_topic(folder: Path, topic: str) -> str | None:
    """Return the note on a topic, found by its name or by the slug of its name; None if there is none."""
    wanted = {topic, slug(topic)}
    found = next((t for t in topics(folder) if t.name in wanted), None)
    return _beginning(found.path, MAX_BYTES) if found else None


def _beginning(path: Path, characters: int) -> str | None:
    """Return the beginning of a file; None if it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(characters)
    except OSError:
        return None
