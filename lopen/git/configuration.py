"""git's configuration: a repository's content filters, and the settings that a clone takes over."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.refs import HEADS

_PORTABLE = frozenset(
    f"core.{key}"
    for key in (
        "autocrlf",
        "eol",
        "filemode",
        "ignorecase",
        "symlinks",
        "precomposeunicode",
        "excludesfile",
        "attributesfile",
    )
) | {"user.signingkey"}
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
_TRUSTED_SCOPES = frozenset({"system", "global"})
_TRUSTED_SECTIONS = re.compile(r"(filter\..+|gpg(\..+)?)\.[^.]+", re.DOTALL)


Setting = tuple[bool, str, str]
"""A setting of git's: whether it is the person's own, its key, its value."""


def read_settings(git: GitCommand) -> list[Setting]:
    """Return git's settings without lopen's own; it starts no program."""
    fields = git.run("config", "--list", "-z", "--show-scope").fields()
    found = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=True):
        key, given, value = entry.partition("\n")
        if scope != "command":
            found.append((scope in _TRUSTED_SCOPES, key, value if given else "true"))  # a key without a value
    return found


def foreign_filters(settings: Sequence[Setting]) -> tuple[str, ...]:
    """Return the content filters that only the repository configures; they never run."""
    drivers: dict[bool, set[str]] = {True: set(), False: set()}
    for own, key, _ in settings:
        if key.startswith("filter."):
            drivers[own].add(key.split(".", 1)[1].rsplit(".", 1)[0])
    return tuple(sorted(drivers[False] - drivers[True]))


def switched_off(filters: tuple[str, ...]) -> Mapping[str, str]:
    """Return the configuration with which git runs none of these filters."""
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"filter.{name}.{key}": value for name in filters for key, value in off.items()}


def clone_configuration(settings: Sequence[Setting], object_format: str, root: Path) -> bytes:
    """Return the configuration file of a clone: how the repository in `root` stores content, and nothing that runs.

    The person's own filters, such as git-lfs, are copied where they hold only for this folder. The clone's origin is
    the repository's, without a password, or the repository.
    """
    copied = {
        key: value
        for own, key, value in settings
        if key in _PORTABLE or (own and _TRUSTED_SECTIONS.fullmatch(key))
    }
    origins = [value for _, key, value in settings if key == "remote.origin.url"]
    origin = _CREDENTIALS.sub("", origins[-1].strip().partition("\n")[0]) if origins else ""
    sha256 = object_format == "sha256"
    lines = [
        "[core]",
        f"\trepositoryformatversion = {int(sha256)}",
        "\tbare = false",
        "\tlogallrefupdates = true",
    ]
    if sha256:
        lines += ["[extensions]", "\tobjectFormat = sha256"]
    lines += [
        '[remote "origin"]',
        f'\turl = "{_escaped(origin or str(root))}"',
        f"\tfetch = +{HEADS}*:refs/remotes/origin/*",
    ]
    for key, value in sorted(copied.items()):
        section, name = key.split(".", 1)
        subsection, _, variable = name.rpartition(".")
        title = f'{section} "{_escaped(subsection)}"' if subsection else section
        lines += [f"[{title}]", f'\t{variable} = "{_escaped(value)}"']
    return os.fsencode("\n".join(lines) + "\n")


def _escaped(value: str) -> str:
    """Escape a value for the double quotes of a git configuration file."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\n", "\\n").replace("\t", "\\t")
