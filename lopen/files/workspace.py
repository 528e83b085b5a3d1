"""Read, list, search, write and edit the files of one project without leaving its root.

Every refusal is a `ToolRefused` with a message for the model. Paths are relative to the root.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from lopen.core.hashing import content_hash
from lopen.files.listing import MAX_LISTED, Listing, ListTracked, glob_matcher, readable_below
from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.files.search import SearchResult, check_pattern, run_search
from lopen.files.text_files import (
    MAX_READ_BYTES,
    MAX_WRITE_BYTES,
    Edited,
    FileText,
    Written,
    decode,
    excerpt,
    line_count,
    replace_passage,
)


class Workspace:
    """A project's files. `list_tracked` returns the files that .gitignore allows.

    `before_read` gets the absolute path of every file before its text is returned.
    """

    def __init__(
        self,
        root: Path,
        list_tracked: ListTracked,
        before_read: Callable[[str], None] = lambda path: None,
    ) -> None:
        self._root = Root(root)
        self._before_read = before_read
        self._list_tracked = list_tracked

    @property
    def root(self) -> Path:
        """The project root with links resolved."""
        return self._root.path

    def read(self, path: str, offset: int = 1, limit: int | None = None) -> FileText:
        """Return `limit` lines of a text file from line `offset` (1-based), at most 100,000 characters."""
        raw, real = self._bytes(path)
        self._before_read(os.path.join(self.root, real))
        text, encoding = decode(raw, path)
        content, truncated, note = excerpt(text, offset, limit)
        return FileText(
            path=real,
            content=content,
            first_line=offset,
            lines=line_count(text),
            truncated=truncated,
            note=f"{encoding} {note}".strip(),
            content_hash=content_hash(raw),
        )

    def text(self, path: str) -> str:
        """Return the whole text of a file."""
        raw, real = self._bytes(path)
        self._before_read(os.path.join(self.root, real))
        return decode(raw, path)[0]

    def list_files(self, path: str = "", glob: str = "") -> Listing:
        """Return at most 2,000 files below `path` that match `glob`; name links without following them."""
        matches = glob_matcher(glob)
        kind, folder = self._root.kind(path)
        if kind == "file":
            raise ToolRefused(f"{path} is a file", "read it with read_file")
        files: list[str] = []
        for name in readable_below(self._list_tracked(), folder, matches):
            if not os.path.lexists(self.root / name):
                continue  # git still lists a deleted file
            if len(files) == MAX_LISTED:
                note = f"Only the first {MAX_LISTED} files; narrow the list with path or glob."
                return Listing(tuple(files), truncated=True, note=note)
            files.append(name)
        return Listing(tuple(files), truncated=False)

    def search(self, pattern: str, path: str = "", glob: str = "") -> SearchResult:
        """Return at most 200 lines that match a Python regular expression in one file or below a folder."""
        check_pattern(pattern)
        matches = glob_matcher(glob)
        kind, parts = self._root.kind(path)
        if kind == "file":
            return run_search(self.root, ["/".join(parts)], pattern)
        return run_search(self.root, list(readable_below(self._list_tracked(), parts, matches)), pattern)

    def write(self, path: str, content: str) -> Written:
        """Create or replace a whole file of at most 10 MB; keep its permissions."""
        return self._store(path, encoded(content))

    def edit(self, path: str, old_text: str, new_text: str, *, replace_all: bool = False) -> Edited:
        """Replace a passage that occurs once in a file, or every occurrence with `replace_all`."""
        raw, _ = self._bytes(path)
        if b"\0" in raw:
            raise ToolRefused(f"{path} is a binary file", "only text can be edited")
        # Bytes that are not UTF-8 survive the edit.
        text = raw.decode("utf-8", "surrogateescape")
        text, count = replace_passage(text, old_text, new_text, everywhere=replace_all, path=path)
        return Edited(self._store(path, encoded(text)).path, count, text)

    def _store(self, path: str, content: bytes) -> Written:
        if len(content) > MAX_WRITE_BYTES:
            raise ToolRefused(f"the content is {len(content)} bytes; the limit is {MAX_WRITE_BYTES} bytes")
        parts, created = self._root.replace_file(path, content)
        return Written("/".join(parts), len(content), created)

    def _bytes(self, path: str) -> tuple[bytes, str]:
        with self._root.open_file(path) as (descriptor, parts):
            size = os.fstat(descriptor).st_size
            if size > MAX_READ_BYTES:
                raise ToolRefused(
                    f"{path} is {size} bytes; the limit is {MAX_READ_BYTES} bytes",
                    "read parts of it with run_command (head, tail, sed -n)",
                )
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_READ_BYTES), "/".join(parts)


def encoded(text: str) -> bytes:
    """Return a file's text as bytes, as it was read; raises `ToolRefused` for text that UTF-8 cannot encode."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolRefused("the content contains lone surrogates, which UTF-8 cannot encode") from None
