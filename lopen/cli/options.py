"""The options that `run`, `resume`, `plan`, `build` and `spec` share (contract §3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lopen.errors import WrongUsage

QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Only what needs attention, and the end.")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colours (also NO_COLOR).")]
SandboxOption = Annotated[
    str, typer.Option("--sandbox", metavar="MODE", help="auto, bwrap, landlock or none.")
]
NetworkOption = Annotated[bool, typer.Option("--allow-network", help="Let commands use the network.")]


@dataclass(frozen=True)
class ResumeOptions:
    """What was asked for on the command line. `command` makes an option of every field."""

    prompt: Annotated[
        str, typer.Option("-p", "--prompt", metavar="TEXT", help="What you ask for, in your words.")
    ] = ""
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="One model for every phase, or replay:FILE.")
    ] = ""
    unattended: Annotated[
        bool, typer.Option("--unattended", help="Answer the model's questions by their own default.")
    ] = False
    max_iterations: Annotated[
        int | None,
        typer.Option("--max-iterations", min=1, metavar="N", help="Iterations granted to this session."),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            min=0,
            metavar="USD",
            help="Most the session may cost, oracle included; 0: no limit.",
        ),
    ] = None
    quiet: QuietOption = False
    no_color: NoColorOption = False
    sandbox: SandboxOption = ""
    allow_network: NetworkOption = False
    record: Annotated[bool | None, typer.Option("--record/--no-record", help="Keep the model exchanges.")] = (
        None
    )

    def flags(self) -> dict[str, Any]:
        """As settings: the flags that were given."""
        if self.sandbox and self.sandbox not in ("auto", "bwrap", "landlock", "none"):
            raise WrongUsage(f"--sandbox {self.sandbox}: choose auto, bwrap, landlock or none")
        given: dict[str, Any] = {
            "workflow.unattended": True if self.unattended else None,
            "workflow.max_iterations": self.max_iterations,
            "budget.max_cost_usd": self.max_cost,
            "sandbox.mode": self.sandbox or None,
            "sandbox.network": True if self.allow_network else None,
            "recording.enabled": self.record,
        }
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class RunOptions(ResumeOptions):
    """As above, for a command that may begin a session."""

    new: Annotated[
        bool, typer.Option("--new", help="Begin a new session; do not go on with an unfinished one.")
    ] = False
