"""The options that `run`, `resume`, `plan`, `build` and `spec` share (contract §3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lopen.errors import WrongUsage

PromptOption = Annotated[
    str | None, typer.Option("-p", "--prompt", metavar="TEXT", help="What you ask for, in your words.")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="One model for every phase, or replay:FILE.")
]
UnattendedOption = Annotated[
    bool, typer.Option("--unattended", help="Answer the model's questions by their own default.")
]
NewOption = Annotated[
    bool, typer.Option("--new", help="Begin a new session; do not go on with an unfinished one.")
]
IterationsOption = Annotated[
    int | None,
    typer.Option("--max-iterations", min=1, metavar="N", help="Iterations granted to this session."),
]
CostOption = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, metavar="USD", help="Most the session may cost, oracle included."),
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Only what needs attention, and the end.")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colours (also NO_COLOR).")]
SandboxOption = Annotated[
    str | None, typer.Option("--sandbox", metavar="MODE", help="auto, bwrap, landlock or none.")
]
NetworkOption = Annotated[bool, typer.Option("--allow-network", help="Let commands use the network.")]
RecordOption = Annotated[bool | None, typer.Option("--record/--no-record", help="Keep the model exchanges.")]


@dataclass(frozen=True)
class RunOptions:
    """What was asked for on the command line."""

    prompt: str = ""
    model: str = ""
    unattended: bool = False
    new: bool = False
    max_iterations: int | None = None
    max_cost: float | None = None
    quiet: bool = False
    no_color: bool = False
    sandbox: str = ""
    allow_network: bool = False
    record: bool | None = None

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
