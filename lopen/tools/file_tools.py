"""The tools that read, list, search, write, edit and run, on top of the workspace and the sandbox."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lopen.core.hashing import content_hash
from lopen.files.protection import ToolRefused
from lopen.git.errors import GitError
from lopen.models import tool_calls
from lopen.sandbox.command import Command
from lopen.store.audit import Outcome
from lopen.tools import calls
from lopen.tools.calls import ToolResult, done
from lopen.tools.workbench import Workbench
from lopen.workflow.steps import Step

IGNORED = (
    "git ignores {path}: it enters no commit, and nobody else will have it. If the work needs it, "
    "write it to another path or take it out of .gitignore."
)
COMMAND_TIMEOUT_S = 120
OUTPUT_CHARS = 30_000
LONGEST_COMMAND = 120_000  # bytes; the kernel's limit for one argument is 128 KiB


def read_file(bench: Workbench, wanted: tool_calls.ReadFile) -> ToolResult:
    """Read a text file; at most 100,000 characters a call, `offset` and `limit` give the rest."""
    read = bench.project.workspace.read(wanted.path, wanted.offset or 1, wanted.limit)
    fields = {"lines": read.lines, "truncated": read.truncated} | noted(read.note)
    return ToolResult(True, fields, read.content, content_hash=read.content_hash)


def list_files(bench: Workbench, wanted: tool_calls.ListFiles) -> ToolResult:
    """List files below `path`, those matching `glob`, at most 2,000. Ignored files are left out."""
    found = bench.project.workspace.list_files(wanted.path or "", wanted.glob or "")
    fields = {"files": list(found.files), "truncated": found.truncated} | noted(found.note)
    return ToolResult(True, fields, content_hash=content_hash("\n".join(found.files)))


def search_files(bench: Workbench, wanted: tool_calls.SearchFiles) -> ToolResult:
    """Search file contents with a Python regular expression; at most 200 matches."""
    found = bench.project.workspace.search(wanted.pattern, wanted.path or "", wanted.glob or "")
    fields = {"matches": len(found.matches), "truncated": found.truncated} | noted(found.note)
    return ToolResult(True, fields, found.text, content_hash=content_hash(found.text))


def noted(note: str) -> dict[str, str]:
    """Return the note field for a truncated result, nothing for an empty note."""
    return {"note": note} if note else {}


def write_file(bench: Workbench, wanted: calls.WriteFile) -> ToolResult:
    """Write a whole file, creating folders as needed. At most 10 MB."""
    _refuse_submodule(bench, wanted.path)
    written = bench.project.workspace.write(wanted.path, wanted.content)
    note = _work(bench, written.path)
    return done(content_hash=content_hash(wanted.content), bytes=written.bytes, **note)


def edit_file(bench: Workbench, wanted: calls.EditFile) -> ToolResult:
    """Replace `old_text` by `new_text` in a file. `old_text` must occur exactly once, unless `replace_all`."""
    _refuse_submodule(bench, wanted.path)
    edited = bench.project.workspace.edit(
        wanted.path, wanted.old_text, wanted.new_text, replace_all=bool(wanted.replace_all)
    )
    note = _work(bench, edited.path)
    return done(content_hash=content_hash(edited.text), replacements=edited.replacements, **note)


def _refuse_submodule(bench: Workbench, path: str) -> None:
    """Refuse to write into a submodule: no commit of the project would contain it."""
    if (bench.project.root / ".gitmodules").is_file():
        with suppress(OSError, RuntimeError, ValueError):  # a loop of links, a NUL: the workspace refuses it
            real = (bench.project.root / path).resolve().relative_to(bench.project.root.resolve())
            _ignored(bench, str(real))


def _ignored(bench: Workbench, path: str) -> bool:
    """Return True if git ignores the file; raise `ToolRefused` if it lies in a submodule."""
    try:
        return bool(bench.project.repository.ignored([path]))
    except GitError as error:
        if "is in submodule" not in str(error):
            raise
        reason = f"{path} is in a submodule: submodules are not part of the work, and no commit of it holds their files"
        raise ToolRefused(reason, "write a file of the project itself") from error


def _work(bench: Workbench, path: str) -> dict[str, str]:
    """Record the file as the model's work; return a note if git ignores it, so that no commit would contain it."""
    ignored = _ignored(bench, path)
    bench.evidence.note_written(path, ignored=ignored)
    if not ignored:
        return {}
    return noted(IGNORED.format(path=path))


def run_command(bench: Workbench, wanted: calls.RunCommand) -> ToolResult:
    """Run a shell command in the project (timeout 120 s, at most 600; of more than 30,000 characters of output the
    middle is left out: redirect it to a file and read that).
    """
    _refuse_unrunnable(wanted.command)
    building = bench.session.step is Step.ITERATE_THROUGH_TASKS
    if building:
        bench.project.verifier.set_up()  # a failure is told by the verifications
    room = bench.project.verifier.room
    ran, restored = bench.run_command(
        Command(
            wanted.command,
            cwd=bench.project.root,
            timeout_s=wanted.timeout_s or COMMAND_TIMEOUT_S,
            writable=building,
            network=bench.settings.sandbox.network,
            env=room.variables(),
            output_limit=OUTPUT_CHARS,
            shown=room.shown(),
        )
    )
    bench.evidence.note_command(wanted.command, ran.exit_code, ran.output)
    fields: dict[str, Any] = {
        "exit_code": ran.exit_code,
        "truncated": ran.truncated,
        "timed_out": ran.timed_out,
    }
    if ran.truncated:
        fields["note"] = "The middle is left out; redirect the output to a file and read that for the rest."
    if restored:
        fields["put_back"] = list(restored)
    outcome: Outcome = "timeout" if ran.timed_out else "ok"
    seen = content_hash(f"{ran.exit_code}\n{ran.output}")
    return ToolResult(True, fields, ran.output, outcome=outcome, content_hash=seen)


def _refuse_unrunnable(command: str) -> None:
    """Refuse a command that no shell accepts: that is an error of the model, not of the sandbox."""
    if "\0" in command:
        raise ToolRefused("the command contains a NUL character", "write the data with write_file instead")
    if len(command.encode()) > LONGEST_COMMAND:
        raise ToolRefused(
            f"the command is too long: at most {LONGEST_COMMAND:,} bytes",
            "put it into a file with write_file and run that",
        )
