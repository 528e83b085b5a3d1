"""`lopen serve`: the REST API, the dashboard and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext, find_root, is_root
from lopen.cli.command import open_context, with_options
from lopen.cli.parameters import JsonOption, VerboseOption
from lopen.core.errors import ExitCode, LopenError, WrongUsage
from lopen.core.extras import install_command
from lopen.core.trusted_programs import distrust

ProjectsOption = Annotated[
    list[Path] | None,
    typer.Option("-C", "--project", metavar="DIR", help="Serve the project in DIR; may be repeated."),
]
HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on (default: serve.host).")
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port", min=0, max=65_535, help="Port to listen on; 0 takes a free one (default: serve.port)."
    ),
]
NameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--name", metavar="HOST", help="Host name that the server also answers to; may be repeated."
    ),
]
CertOption = Annotated[Path | None, typer.Option("--cert", metavar="FILE", help="Certificate for TLS, PEM.")]
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Private key of the certificate, PEM.")
]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the dashboard in a browser.")]
LinkOption = Annotated[
    bool, typer.Option("--link", help="Print a new link of the server that runs, and end.")
]
NewTokenOption = Annotated[
    bool, typer.Option("--new-token", help="Make a new token; the old one opens nothing any more.")
]


def serve(
    ctx: typer.Context,
    project: ProjectsOption = None,
    host: HostOption = None,
    port: PortOption = None,
    name: NameOption = None,
    cert: CertOption = None,
    key: KeyOption = None,
    open_browser: OpenOption = False,
    link: LinkOption = False,
    new_token: NewTokenOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> ExitCode:
    """Serve the REST API, the dashboard and metrics until Ctrl-C. Only a person may run this."""
    from lopen.application.person_only import require_person

    invocation = with_options(ctx, next(iter(project or ()), None), json=json, verbose=verbose)
    context = open_context(invocation)
    require_person("serve", context.root)
    if link:
        return _link(context, open_browser)
    try:
        from lopen.server.running import ServerOptions, is_loopback
        from lopen.server.running import serve as run
    except ImportError as error:
        raise LopenError(
            f"the server is not installed ({error.name} is missing)", hint=install_command("serve")
        ) from error
    if (cert is None) != (key is None):
        raise WrongUsage("--cert and --key belong together", hint="name both files")
    settings = context.load().settings.serve
    options = ServerOptions(
        settings.host if host is None else host,
        settings.port if port is None else port,
        cert,
        key,
        tuple(name or ()),
        new_token,
    )
    if not is_loopback(options.host):
        _warn(context, options.host, secure=options.secure)

    def tell(url: str, opening: str) -> None:
        for root in roots:
            context.say(f"serving {root} at {url}")
        context.say(f"open this link, it works once: {opening}")
        context.emit("serving", url=url, link=opening, projects=[str(root) for root in roots])
        if open_browser:
            typer.launch(opening)

    roots = [_root(folder) for folder in project or [context.root]]
    run(roots, options, tell)
    return ExitCode.OK


def _root(folder: Path) -> Path:
    if not folder.is_dir():
        raise WrongUsage(f"-C {folder}: no such folder", hint="name an existing folder")
    root = find_root(folder)
    if is_root(root):
        distrust(root)
    return root


def _warn(context: CommandContext, host: str, *, secure: bool) -> None:
    """Warn of an address that other machines reach."""
    context.warn(f"the server listens on {host}: every machine that reaches this address can try to use it")
    if not secure:
        context.warn(
            "without TLS, everybody on the way can read the token and approve in your name;"
            " use --cert FILE --key FILE, or an SSH tunnel to a server on 127.0.0.1"
        )


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
