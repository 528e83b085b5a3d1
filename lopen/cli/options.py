"""The command-line spelling of each field of `ResumeOptions` and `RunOptions`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Only what needs attention, and the end.")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colours (also NO_COLOR).")]
SandboxOption = Annotated[
    str, typer.Option("--sandbox", metavar="MODE", help="auto, bwrap, landlock or none.")
]
NetworkOption = Annotated[bool, typer.Option("--allow-network", help="Let commands use the network.")]

# Field → its annotation; `lopen.cli.command` makes an option of each field of a dataclass parameter
OPTIONS: dict[str, Any] = {
    "prompt": Annotated[
        str, typer.Option("-p", "--prompt", metavar="TEXT", help="What you ask for, in your words.")
    ],
    "model": Annotated[
        str, typer.Option("--model", metavar="NAME", help="One model for every phase, or replay:FILE.")
    ],
    "unattended": Annotated[
        bool, typer.Option("--unattended", help="Answer the model's questions by their own default.")
    ],
    "max_iterations": Annotated[
        int | None,
        typer.Option("--max-iterations", min=1, metavar="N", help="Iterations granted to this session."),
    ],
    "max_cost": Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            min=0,
            metavar="USD",
            help="Most the session may cost, oracle included; 0: no limit.",
        ),
    ],
    "quiet": QuietOption,
    "no_color": NoColorOption,
    "sandbox": SandboxOption,
    "allow_network": NetworkOption,
    "record": Annotated[bool | None, typer.Option("--record/--no-record", help="Keep the model exchanges.")],
    "new": Annotated[
        bool, typer.Option("--new", help="Begin a new session; do not go on with an unfinished one.")
    ],
}
