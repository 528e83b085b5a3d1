"""`lopen serve`: the REST API, the dashboard and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext, find_root, is_root
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError, WrongUsage, install_command
from lopen.core.trusted_programs import distrust

ProjectsArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="DIR", help="Projects to serve (default: this one).")
]


USUAL_PORT = 8_750


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The server's address, and its actions at the start."""

    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = (
        USUAL_PORT
    )
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Host name that the server also answers to; may be repeated."),
    ] = None
    open: Annotated[bool, typer.Option("--open", help="Open the dashboard in a browser.")] = False
    link: Annotated[
        bool, typer.Option("--link", help="Print a new link of the server that runs, and end.")
    ] = False
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a new token; the old one opens nothing any more.")
    ] = False


@command
def serve(
    context: CommandContext, options: ServeOptions, projects: ProjectsArgument = None
) -> ExitCode | None:
    """Serve the REST API, the dashboard and metrics until Ctrl-C. Only a person may run this."""
    roots = [_root(folder) for folder in projects or [context.root]]
    if options.link:
        return _link(context, options.open)
    if options.port == USUAL_PORT and not options.new_token and (url := _served_at(roots)):
        context.say(f"{', '.join(map(str, roots))}: a server runs already, at {url}")
        context.say("to open it: lopen serve --link --open; for another server: lopen serve --port 0")
        context.emit("already_serving", url=url, projects=[str(root) for root in roots])
        return ExitCode.OK
    try:
        from lopen.server.listening import is_loopback
        from lopen.server.listening import serve as run
    except ImportError as error:
        raise LopenError(
            f"the server is not installed ({error.name} is missing)", hint=install_command("serve")
        ) from error
    if not is_loopback(options.host):
        context.warn(
            f"the server listens on {options.host} without TLS: everybody who reaches this address or is on the way can"
            " read the token and approve in your name; use an SSH tunnel or a proxy to a server on 127.0.0.1"
        )

    def tell(url: str, opening: str) -> None:
        for root in roots:
            context.say(f"serving {root} at {url}")
        context.say(f"open this link, it works once: {opening}")
        context.emit("serving", url=url, link=opening, projects=[str(root) for root in roots])
        if options.open:
            typer.launch(opening)

    run(roots, options.host, options.port, tell, names=options.name or (), new_token=options.new_token)
    return ExitCode.OK


def _root(folder: Path) -> Path:
    if not folder.is_dir():
        raise WrongUsage(f"{folder}: no such folder", hint="name an existing folder")
    root = find_root(folder)
    if is_root(root):
        distrust(root)
    return root


def _served_at(roots: list[Path]) -> str:
    """Return the address of a server of all these projects; "" if none runs."""
    from lopen.application.servers import running_servers

    return next((s.url for s in running_servers() if {str(root) for root in roots} <= set(s.roots)), "")


def _link(context: CommandContext, open_browser: bool) -> ExitCode:
    """Print a new link of the project's server."""
    from lopen.application.servers import new_link, running_servers, server_token

    found = running_servers(context.root)
    if not found:
        raise LopenError(f"no server of {context.root} runs", hint="to start one: lopen serve")
    link = new_link(found[-1].url, server_token())
    context.say(link)
    context.emit("link", url=found[-1].url, link=link)
    if open_browser:
        typer.launch(link)
    return ExitCode.OK
