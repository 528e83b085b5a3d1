"""The judge's read-only tools, over exactly the git tree that is judged: nothing of the work tree is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, ValidationError

from lopen.files.listing import MAX_LISTED, glob_matcher
from lopen.files.protection import ToolRefused
from lopen.files.search import search_texts
from lopen.files.text_files import excerpt, line_count
from lopen.git.repository import Repository
from lopen.judge.change import SEARCHED_BYTES
from lopen.judge.diff_files import decoded, numbered_source, visible
from lopen.models.messages import Json, ToolSpec, ToolUse
from lopen.models.request_body import plain_schema
from lopen.models.tool_calls import (
    Input,
    ListFiles,
    ReadFile,
    SearchFiles,
    Text,
    explained,
    result_block,
    result_text,
)

READ_CHARACTERS = 60_000
MAX_FILE_BYTES = 32_000_000
LONGEST_LINE = 10_000
BROKEN = f"Lines are broken after {LONGEST_LINE:,} characters, and each piece counts as a line."
_LONG_LINE = re.compile(f"[^\\n]{{{LONGEST_LINE}}}(?!\\n|\\Z)")


class ReadOutput(Input):
    tool: Annotated[Text, Field(description="name of the verify tool")]
    offset: Annotated[int, Field(ge=1, description="first line to read, 1-based")] | None = None
    limit: Annotated[int, Field(ge=1, description="number of lines")] | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to a call: its fields, and text that the judge reads as it is."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None


_TOOLS: Mapping[str, tuple[type[Input], str]] = {
    "read_file": (
        ReadFile,
        f"A file of the tree under judgement, with line numbers; at most {READ_CHARACTERS:,} characters, `offset` "
        "(a line) gives the rest.",
    ),
    "list_files": (
        ListFiles,
        f"The files of the tree under judgement with their sizes, below `path` and matching `glob`; at most "
        f"{MAX_LISTED:,}.",
    ),
    "search_files": (
        SearchFiles,
        "Lines of the tree under judgement that match a Python regular expression; at most 200.",
    ),
    "read_output": (
        ReadOutput,
        "The whole output of a verify command, by its tool's name (verify_tests, for example).",
    ),
}


@dataclass(frozen=True)
class JudgedTree:
    """Answers the judge's calls. `outputs` holds the whole output of each verify tool."""

    repository: Repository
    tree: str
    outputs: Mapping[str, str]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as offered to the judge."""
        return tuple(
            ToolSpec(name, description, plain_schema(given.model_json_schema()))
            for name, (given, description) in _TOOLS.items()
        )

    def answer(self, use: ToolUse) -> Json:
        """Return the result block of a call; a call that cannot be answered is an error result."""
        try:
            answer = self._run(self._parsed(use))
        except ToolRefused as refused:
            told = {"ok": False, "error": refused.error, **({"hint": refused.hint} if refused.hint else {})}
            return result_block(use, result_text(told, None), ok=False)
        return result_block(use, result_text({"ok": True, **answer.fields}, answer.raw), ok=True)

    def _parsed(self, use: ToolUse) -> Input:
        if use.name not in _TOOLS:
            raise ToolRefused(f"there is no tool {use.name[:80]!r}", f"offered: {', '.join(_TOOLS)}")
        if use.input is None:
            raise ToolRefused(use.error or "the input could not be read", "send the call again, whole")
        try:
            return _TOOLS[use.name][0].model_validate(dict(use.input))
        except ValidationError as error:
            raise ToolRefused(*explained(error)) from error

    def _run(self, wanted: Input) -> _Answer:
        match wanted:
            case ReadFile():
                return self._read_file(wanted)
            case ListFiles():
                return self._list_files(wanted)
            case SearchFiles():
                return self._search_files(wanted)
            case ReadOutput():
                return self._read_output(wanted)
        raise TypeError(f"no tool takes {type(wanted).__name__}")

    @cached_property
    def _blobs(self) -> dict[str, str]:
        """path → blob id of the tree's files; submodules have none."""
        entries = self.repository.entries(self.tree)
        return {path: entry.blob for path, entry in sorted(entries.items()) if not entry.is_submodule}

    def _read_file(self, wanted: ReadFile) -> _Answer:
        path = wanted.path.removeprefix("./")
        blob = self._blobs.get(path)
        if blob is None:
            raise ToolRefused(f"{path} is not a file of this tree", "list_files shows its files")
        if self.repository.blob_sizes([blob]).get(blob, 0) > MAX_FILE_BYTES:
            raise ToolRefused(
                f"{path} is larger than {MAX_FILE_BYTES:,} bytes", "search_files finds lines in it"
            )
        text = decoded(self.repository.blob_contents([blob])[blob])
        return _excerpt(text, wanted.offset or 1, wanted.limit)

    def _list_files(self, wanted: ListFiles) -> _Answer:
        paths = self._below(wanted.path, wanted.glob)
        listed = paths[:MAX_LISTED]
        sizes = self.repository.blob_sizes(self._blobs[path] for path in listed)
        files = [{"path": path, "bytes": sizes.get(self._blobs[path], 0)} for path in listed]
        return _Answer({"files": files, "truncated": len(paths) > len(listed)})

    def _search_files(self, wanted: SearchFiles) -> _Answer:
        paths = self._below(wanted.path, wanted.glob)
        sizes = self.repository.blob_sizes(self._blobs[path] for path in paths)
        if sum(sizes.values()) > SEARCHED_BYTES:
            raise ToolRefused(
                f"these files are larger than {SEARCHED_BYTES:,} bytes together", "narrow with path or glob"
            )
        contents = self.repository.blob_contents(self._blobs[path] for path in paths)
        texts = {path: decoded(contents.get(self._blobs[path], b"")) for path in paths}
        found = search_texts(texts, wanted.pattern)
        lines = "\n".join(map(visible, found.text.split("\n")))
        return _Answer({"matches": len(found.matches), "truncated": found.truncated}, lines)

    def _read_output(self, wanted: ReadOutput) -> _Answer:
        output = self.outputs.get(wanted.tool.replace("-", "_"))
        if output is None:
            raise ToolRefused(
                f"no output of {wanted.tool[:80]!r}", f"there is: {', '.join(self.outputs) or 'none'}"
            )
        return _excerpt(output, wanted.offset or 1, wanted.limit)

    def _below(self, path: str | None, glob: str | None) -> list[str]:
        folder = tuple(part for part in (path or "").split("/") if part not in ("", "."))
        matches = glob_matcher(glob or "")
        below = ((name, tuple(name.split("/"))) for name in self._blobs)
        return [
            name
            for name, parts in below
            if parts[: len(folder)] == folder and matches(parts[len(folder) :] or parts[-1:])
        ]


def _wrapped(text: str) -> str:
    """Return `text` with very long lines broken, so that all of them can be read by line."""
    if len(text) <= LONGEST_LINE:
        return text
    return _LONG_LINE.sub(r"\g<0>\n", text)


def _excerpt(whole: str, offset: int, limit: int | None) -> _Answer:
    """Return lines of `whole` with their numbers, and how to get the rest."""
    text = _wrapped(whole)
    piece, truncated, note = excerpt(text, offset, limit)
    if len(piece) > READ_CHARACTERS:
        end = piece.rfind("\n", 0, READ_CHARACTERS) + 1 or READ_CHARACTERS
        piece, truncated = piece[:end], True
        note = f"Continue with offset={offset + line_count(piece)}."
    if text != whole:
        note = f"{BROKEN} {note}".strip()
    fields = {"lines": line_count(text), "truncated": truncated} | ({"note": note} if note else {})
    return _Answer(fields, numbered_source(piece, offset))
