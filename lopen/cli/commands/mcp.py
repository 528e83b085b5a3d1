"""`lopen mcp`: serve lopen to other agents over the Model Context Protocol. No person's command is among the tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lopen import __version__
from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError, install_command

TIMEOUT_S = 120.0
MOST_CHARS = 100_000
INSTRUCTIONS = (
    "lopen builds a module from its specification in specs/MODULE/SPECIFICATION.md. Start with check, then run; follow"
    " a run with status. A person approves specifications and answers pauses at a terminal: no tool does that here, and"
    " the last line of a result names the command that they have to give."
)


@command
def mcp(context: CommandContext) -> ExitCode:
    """Serve status, check, run and show over MCP on standard input and output, until the client closes them.

    Every answer is that of the command with --json. Commands that only a person may give are not served.
    """
    try:
        from lopen.mcp.sdk import ServedTool, serve
    except ImportError as error:
        raise LopenError("the MCP SDK is not installed", hint=install_command("mcp")) from error
    commands = ServedCommands(context.root)
    reading = (commands.status, commands.check, commands.show)
    tools = [ServedTool(each, read_only=True) for each in reading]
    serve("lopen", __version__, INSTRUCTIONS, [*tools, ServedTool(commands.run, read_only=False)])
    return ExitCode.OK


class ServedCommands:
    """The commands that a client may give. Each runs as a process, so that nothing else is printed to the client."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def status(self, module: str = "") -> str:
        """Show the task tree, the step, the budget and what waits for a person, of a module or of all unfinished ones."""
        return self._answer("status", [module] if module else [])

    def check(self, module: str = "") -> str:
        """Validate a module's specification, or all of them: problems and warnings with their lines."""
        if not (self._root / module).resolve().is_relative_to(self._root.resolve()):
            return f"exit code {ExitCode.USAGE:d}\n{module} is outside the project"
        return self._answer("check", [module] if module else [])

    def show(self, name: str) -> str:
        """Show a task, a verdict, a call or a verification by its name: criteria, diff, output, verdict, cost."""
        return self._answer("show", [name])

    def run(self, module: str) -> str:
        """Build a module in the background: up to the person's approval, and from there to the end. It costs money.

        Questions of the model get their defaults. Follow it with `status`. The person's limits hold.
        """
        return self._answer("run", [module], "--detach", "--unattended")

    def _answer(self, name: str, operands: Sequence[str], *options: str) -> str:
        """Return the command's output, with its exit code on the first line. Operands are not options."""
        argv = [
            sys.executable,
            "-P",  # not a `lopen` in the current folder
            "-m",
            "lopen",
            name,
            "-C",
            str(self._root),
            "--json",
            *options,
            "--",
            *operands,
        ]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"lopen {name} took longer than {TIMEOUT_S:g} s and was ended"
        text = "\n".join(part.rstrip() for part in (done.stdout, done.stderr) if part.strip())
        if len(text) > MOST_CHARS:
            text = f"{text[:MOST_CHARS]}\n[{len(text) - MOST_CHARS} characters left out]"
        return f"exit code {done.returncode}\n{text}"
