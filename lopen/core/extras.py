"""How to install an extra of lopen: the command differs where lopen came from a checkout or a wheel (PEP 610)."""

from __future__ import annotations

import json
import shlex
import sys
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the lopen that runs."""
    from importlib import metadata  # only where an extra is missing

    told = (found.read_text("direct_url.json") for found in metadata.distributions(name="lopen"))
    source = json.loads(next(filter(None, told), "{}"))
    address = urlsplit(str(source.get("url", "")))
    origin = unquote(address.path) if address.scheme == "file" else "lopen"
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    return f"{shlex.quote(sys.executable)} -m pip install {editable}{shlex.quote(f'{origin}[{extra}]')}"
