"""A tool call as the habits see it, and the limits they are held to."""

from __future__ import annotations

from dataclasses import dataclass

READS = frozenset({"read_file", "read_spec"})
LOOKS = READS | {"list_files", "search_files"}
RUN = "run_command"


@dataclass(frozen=True, slots=True)
class Limits:
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
