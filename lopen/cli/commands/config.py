"""`lopen config`: show settings with their sources, and set one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command, group

if TYPE_CHECKING:
    from lopen.settings.keys import Key

app = group("Show settings with their sources, and set them.", default="show")

VALUE_CHARACTERS = 200
WHO = {
    "anyone": "you or the project",
    "lower": "you; the project may lower it",
    "raise": "you; the project may switch it on",
    "confirm": "you; the project, once you confirm",
    "user_only": "you",
}


def _keys(incomplete: str) -> list[str]:
    from lopen.settings.keys import keys

    return [name for name in keys() if name.startswith(incomplete)]


def _values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the values of a setting that allows only a few."""
    from lopen.settings.keys import keys

    key = keys().get(ctx.params.get("key") or "")
    if key is None:
        return []
    schema = key.adapter.json_schema()
    few = ["true", "false"] if schema.get("type") == "boolean" else schema.get("enum", [])
    return [str(value) for value in few if str(value).startswith(incomplete)]


ValueArgument = Annotated[str, typer.Argument(help="Value; a list as JSON.", autocompletion=_values)]
KeyArgument = Annotated[str, typer.Argument(help="Key, such as budget.session_tokens.", autocompletion=_keys)]
Prefix = Annotated[str, typer.Argument(help="Only keys with this prefix.", autocompletion=_keys)]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Also show meaning, range and default.")]
ForUser = Annotated[bool, typer.Option("--user", help="Write to your own file, for all your projects.")]


def _require_key(key: str) -> None:
    """Raise `WrongUsage` for an unknown key, with the nearest known one."""
    from lopen.core.errors import WrongUsage
    from lopen.settings.keys import keys, nearest

    if key not in keys():
        near = nearest(key)
        raise WrongUsage(f"no setting {key!r}", hint=f"did you mean {near}?" if near else "lopen config show")


@app.command("show")
@command
def show(context: CommandContext, prefix: Prefix = "", explain: ExplainOption = False) -> None:
    """Show the files that are read and the effective values, grouped; those that differ from the default are marked with * and name their source."""
    from lopen.core.errors import WrongUsage
    from lopen.settings.keys import keys, nearest, shown, value_of
    from lopen.settings.sources import project_file, user_file

    loaded = context.load()
    wanted = {key: source for key, source in loaded.provenance.items() if key.startswith(prefix)}
    if not wanted:
        near = nearest(prefix)
        raise WrongUsage(
            f"no setting starts with {prefix!r}",
            hint=f"did you mean {near}?" if near else "lopen config show",
        )
    for scope, file in (("project", project_file(context.root)), ("user", user_file())):
        context.emit("config_file", scope=scope, path=str(file), exists=file.exists())
        context.say(f"{scope}: {file}{'' if file.exists() else ' (missing)'}")
    heading, changed = "", 0
    for key, source in wanted.items():
        value = shown(key, value_of(loaded.settings, key), limit=VALUE_CHARACTERS)
        place = f"  ({source.name}, {source.location})" if source.location else f"  ({source.name})"
        mark, place = (" ", "") if source.name == "default" else ("*", place)
        changed += mark == "*"
        if (section := key.partition(".")[0]) != heading:
            context.say(f"\n[{section}]")
            heading = section
        about = keys()[key]
        texts = {
            "meaning": about.meaning,
            "allowed": about.allowed(),
            "default": default_text(about).strip("`"),
            "set_by": WHO[about.trust.rule],
        }
        more = texts if explain else {}
        context.emit("setting", key=key, value=value, source=source.name, location=source.location, **more)
        context.say(f"{mark} {key} = {value}{place}")
        if explain:
            context.say(
                f"    {about.meaning}\n    {texts['allowed']}; default {texts['default']}; set by {texts['set_by']}"
            )
    default = "" if explain else "; meaning, range and default: --explain"
    context.say(f"\n* set by you or the project: {changed} of {len(wanted)}{default}")
    for model in loaded.unconfirmed:
        context.warn(f"{model.key} is set by the repository; lopen asks you once before it is used")


@app.command("unset")
@command
def unset(context: CommandContext, key: KeyArgument, user: ForUser = False) -> None:
    """Remove one value from the project's file, or from your own with --user."""
    from lopen.core.errors import LopenError
    from lopen.settings.sources import project_file, unset_value, user_file

    _require_key(key)
    file = unset_value("user" if user else "project", context.root, key)
    if file is None:
        where = user_file() if user else project_file(context.root)
        raise LopenError(
            f"{key} is not set in {where}", hint=f"to see where it is set: lopen config show {key}"
        )
    context.emit("config_unset", key=key, path=str(file))
    if not context.json:
        context.say(f"{key} is no longer set in {file}")


@app.command("set")
@command
def set_(context: CommandContext, key: KeyArgument, value: ValueArgument, user: ForUser = False) -> None:
    """Set one value in the project's file, or in your own with --user. Write lists as JSON."""
    from lopen.settings.sources import set_value
    from lopen.settings.trust import confirm

    file = set_value("user" if user else "project", context.root, key, value)
    if not user:  # who sets a model for this project need not confirm it again
        for model in context.load().unconfirmed:
            if model.key == key:
                confirm(context.root, key, model.value)
    context.emit("config_set", key=key, path=str(file))
    if not context.json:
        context.say(f"{key} is set in {file}")
    now = context.load().provenance[key]
    if not now.location.startswith(str(file)):
        context.warn(f"{now.location or now.name} overrides this value")


def default_text(key: Key) -> str:
    """Return the default as TOML writes it."""
    value = key.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "none"
    if isinstance(value, list):
        return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:,}`".replace(",", "_")
