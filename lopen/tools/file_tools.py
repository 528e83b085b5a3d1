"""The tools that read, write and run: thin over the workspace and the sandbox."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lopen.base.hashing import content_hash
from lopen.sandbox.command import Command
from lopen.storage.audit import Outcome
from lopen.tools import inputs
from lopen.tools.results import ToolResult, done
from lopen.tools.workbench import Workbench
from lopen.workflow.steps import Step
from lopen.workspace.protection import ToolRefused

IGNORED = (
    "git ignores {path}: it enters no commit, and nobody else will have it. If the work needs it, "
    "write it to another path or take it out of .gitignore."
)
COMMAND_TIMEOUT_S = 120
OUTPUT_CHARS = 30_000
LONGEST_COMMAND = 120_000  # bytes; the kernel takes no single argument of 128 KiB


def read_file(bench: Workbench, wanted: inputs.ReadFile) -> ToolResult:
    """A text file, or the asked-for lines of it."""
    read = bench.project.workspace.read(wanted.path, wanted.offset or 1, wanted.limit)
    fields = {"lines": read.lines, "truncated": read.truncated} | noted(read.note)
    return ToolResult(True, fields, read.content, content_hash=read.content_hash)


def list_files(bench: Workbench, wanted: inputs.ListFiles) -> ToolResult:
    """Files that git does not ignore."""
    found = bench.project.workspace.list_files(wanted.path or "", wanted.glob or "")
    fields = {"files": list(found.files), "truncated": found.truncated} | noted(found.note)
    return ToolResult(True, fields, content_hash=content_hash("\n".join(found.files)))


def search_files(bench: Workbench, wanted: inputs.SearchFiles) -> ToolResult:
    """Lines that match."""
    found = bench.project.workspace.search(wanted.pattern, wanted.path or "", wanted.glob or "")
    matches = [asdict(m) for m in found.matches]
    fields = {"matches": matches, "truncated": found.truncated} | noted(found.note)
    return ToolResult(True, fields, content_hash=content_hash(str(matches)))


def noted(note: str) -> dict[str, str]:
    """What was cut and how to get the rest, where something was."""
    return {"note": note} if note else {}


def write_file(bench: Workbench, wanted: inputs.WriteFile) -> ToolResult:
    """A whole file."""
    written = bench.project.workspace.write(wanted.path, wanted.content)
    return done(bytes=written.bytes, **_work(bench, written.path))


def edit_file(bench: Workbench, wanted: inputs.EditFile) -> ToolResult:
    """A replacement inside a file."""
    edited = bench.project.workspace.edit(
        wanted.path, wanted.old_text, wanted.new_text, replace_all=bool(wanted.replace_all)
    )
    return done(replacements=edited.replacements, **_work(bench, edited.path))


def _work(bench: Workbench, path: str) -> dict[str, str]:
    """The file at `path` is the model's work now; a note where that work would be in no commit."""
    bench.project.verifier.written(path)
    if not bench.project.commands.repository.ignored([path]):
        bench.evidence.ignored.discard(path)
        return {}
    bench.evidence.ignored.add(path)
    return noted(IGNORED.format(path=path))


def run_command(bench: Workbench, wanted: inputs.RunCommand) -> ToolResult:
    """A shell command; `ok` says that it could be run, `exit_code` how it ended."""
    _refuse_unrunnable(wanted.command)
    building = bench.session.step is Step.ITERATE_THROUGH_TASKS
    ran = bench.project.commands.run(
        Command(
            wanted.command,
            cwd=bench.project.root,
            timeout_s=wanted.timeout_s or COMMAND_TIMEOUT_S,
            writable=building,
            network=bench.settings.sandbox.network,
            output_limit=OUTPUT_CHARS,
        )
    )
    bench.project.verifier.touch()
    fields: dict[str, Any] = {
        "exit_code": ran.exit_code,
        "output": ran.output,
        "truncated": ran.truncated,
        "timed_out": ran.timed_out,
    }
    if ran.truncated:
        fields["note"] = "The middle is left out; redirect the output to a file and read that for the rest."
    if bench.project.commands.restored:
        fields["put_back"] = list(bench.project.commands.restored)
    outcome: Outcome = "timeout" if ran.timed_out else "ok"
    return ToolResult(
        True, fields, outcome=outcome, content_hash=content_hash(f"{ran.exit_code}\n{ran.output}")
    )


def _refuse_unrunnable(command: str) -> None:
    """What no shell can be given is the model's mistake, not the sandbox's failure."""
    if "\0" in command:
        raise ToolRefused("the command holds a NUL character", "write the data with write_file instead")
    if len(command.encode()) > LONGEST_COMMAND:
        raise ToolRefused(
            f"the command is too long: at most {LONGEST_COMMAND:,} bytes",
            "put it into a file with write_file and run that",
        )
