"""Versioned templates: a missing or outdated one fails fast, by name (docs/reference/model.md)."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

from lopen.core.errors import LopenError

VERSIONS: dict[str, int] = {
    "role": 2,
    "constraints": 2,
    "history": 1,
    "draft_specification": 3,
    "planning": 4,
    "iterate_through_tasks": 4,
    "research": 1,
    "judge": 4,
}
_HEADER = re.compile(r"\A<!-- lopen-template (?P<name>[a-z_]+) v(?P<version>\d+) -->\n")


class TemplateError(LopenError):
    """A prompt template is missing, malformed or of another version than this lopen wants."""


@cache
def template(name: str, folder: str = "") -> str:
    """The text of the template, without its header. `folder` replaces the bundled ones; "" is the bundle."""
    source = Path(folder) / f"{name}.md" if folder else None
    try:
        text = (
            source.read_text("utf-8")
            if source
            else (resources.files("lopen.models.prompts") / "templates" / f"{name}.md").read_text("utf-8")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            f"prompt template {name} cannot be read: {error}",
            hint="reinstall lopen, or fix workflow.templates in your own configuration",
        ) from error
    header = _HEADER.match(text)
    if header is None or header["name"] != name:
        raise TemplateError(f"prompt template {name} has no header `<!-- lopen-template {name} vN -->`")
    if int(header["version"]) != VERSIONS[name]:
        raise TemplateError(
            f"prompt template {name} is version {header['version']}, this lopen wants {VERSIONS[name]}",
            hint="update the template, or remove workflow.templates to use the bundled ones",
        )
    body = text[header.end() :].strip()
    if not body:
        raise TemplateError(
            f"prompt template {name} is empty",
            hint="reinstall lopen, or fix workflow.templates in your own configuration",
        )
    return body


def check_templates(folder: str = "") -> None:
    """Read them all now, so that a broken one is found before any work is done."""
    for name in VERSIONS:
        template(name, folder)
