"""`lopen serve`: the REST API, the dashboard and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError
from lopen.cli.command import command

HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on (default: serve.host).")
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port", min=0, max=65_535, help="Port to listen on; 0 takes a free one (default: serve.port)."
    ),
]
CertOption = Annotated[Path | None, typer.Option("--cert", metavar="FILE", help="Certificate for TLS, PEM.")]
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Private key of the certificate.")
]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the dashboard in a browser.")]
NewTokenOption = Annotated[
    bool,
    typer.Option("--new-token", help="Make a new token: browsers and scripts with the old one are shut out."),
]


@command
def serve(
    context: CommandContext,
    host: HostOption = None,
    port: PortOption = None,
    cert: CertOption = None,
    key: KeyOption = None,
    open_browser: OpenOption = False,
    new_token: NewTokenOption = False,
) -> ExitCode:
    """Serve the REST API, the dashboard and metrics until Ctrl-C."""
    from lopen.application.person_only import require_person

    require_person("serve", context.root)
    settings = context.load().settings.serve
    try:
        from lopen.server.running import ServerOptions
        from lopen.server.running import serve as run
    except ImportError as error:
        raise LopenError(
            f"the server is not installed ({error.name} is missing)", hint="pip install 'lopen[serve]'"
        ) from error
    options = ServerOptions(
        settings.host if host is None else host,
        settings.port if port is None else port,
        cert,
        key,
        new_token=new_token,
    )

    def tell(url: str, link: str) -> None:
        context.say(f"serving {context.root} at {url}")
        context.say(f"open this link once: {link}")
        context.emit("serving", url=url, link=link)
        if open_browser:
            typer.launch(link)

    run([context.root], options, tell)
    return ExitCode.OK
