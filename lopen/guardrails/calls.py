"""A tool call as the habits see it, and the limits they are held to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

READS = frozenset({"read_file", "read_spec"})
LOOKS = READS | {"list_files", "search_files"}
RUN = "run_command"


@dataclass(frozen=True, slots=True)
class HabitLimits:
    """How often is too often. All at least 1; the last three are the `tool_discipline.*` settings."""

    looks: int = 3
    file_reads: int = 3
    command_retries: int = 3
    files_edited: int = 5


@dataclass(frozen=True, slots=True)
class ToolFact:
    """One finished tool call.

    `resource` is the path, section, pattern or command line; `part` what tells different views of it apart
    (offset and limit, glob), so that paging through a file is no rereading. `content_hash` is of what was
    read or printed, None where that is not known. `exit_code` is None where no command ended. `edited` are
    the paths the call is known to have changed; `tree_changed` says that it changed the work tree at all.
    """

    tool: str
    resource: str = ""
    part: str = ""
    ok: bool = True
    exit_code: int | None = None
    content_hash: str | None = None
    edited: tuple[str, ...] = ()
    tree_changed: bool = False
    is_test_run: bool = False

    @property
    def is_run(self) -> bool:
        """A command was to be run: the model's own, or one of the specification's."""
        return self.tool == RUN or (self.tool.startswith("verify_") and not self.tool.endswith("_completion"))

    @property
    def failed(self) -> bool:
        """It could not be done, or its command ended with a failure."""
        return not self.ok or self.exit_code not in (None, 0)

    @property
    def changed_tree(self) -> bool:
        """The work tree is another than before."""
        return self.tree_changed or bool(self.edited)

    @property
    def tested(self) -> bool:
        """The tests were run, whatever they said; a run that never started tested nothing."""
        ran = self.ok or self.exit_code is not None
        return ran and (self.is_test_run or self.tool == "verify_tests")


def due(count: int, limit: int) -> bool:
    """Whether a count is to be reported now: on reaching the limit, and again at each multiple."""
    return count > 0 and count % limit == 0


LIMIT = 50  # the tool history that patterns are found in
KEY_LENGTH = 200


def short_key(*parts: str) -> str:
    """One key from several parts; a long one is cut and told apart by a digest of the whole."""
    key = "\0".join(parts)
    if len(key) <= KEY_LENGTH:
        return key
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{key[: KEY_LENGTH - len(digest) - 1]}\0{digest}"


@dataclass(frozen=True, slots=True)
class Streaks:
    """Key → (mark, how often in a row), the key seen last at the end."""

    marks: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def seen(self, key: str, mark: str, then: str | None = None) -> tuple[Streaks, int]:
        """These streaks after `mark` was seen on `key`, and how often in a row that now is.

        `then` is the mark that the next one must equal, where seeing changed it; by default the same.
        """
        marks = dict(self.marks)
        before, count = marks.pop(key, ("", 0))
        count = count + 1 if before == mark else 1
        marks[key] = (mark if then is None else then, count)
        if len(marks) > LIMIT:
            del marks[next(iter(marks))]
        return Streaks(marks), count

    def without(self, key: str) -> Streaks:
        """These streaks with the key's row broken."""
        if key not in self.marks:
            return self
        return Streaks({k: v for k, v in self.marks.items() if k != key})
