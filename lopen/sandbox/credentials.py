"""Credentials that variables place elsewhere than their usual name in the home folder, and lopen's own key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from lopen.seal import data_folder

# Variable → what of the place it names is secret, "" for all of it
_NAMED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "ANTHROPIC_CONFIG_DIR", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AZURE_CONFIG_DIR", "AZURE_FEDERATED_TOKEN_FILE", "BOTO_CONFIG", "CLAUDE_CONFIG_DIR", "CLOUDSDK_CONFIG",
            "DOCKER_CONFIG", "GH_CONFIG_DIR", "GIT_CONFIG_GLOBAL", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS",
            "HF_TOKEN_PATH", "KUBECONFIG", "NETRC", "NPM_CONFIG_USERCONFIG", "PASSWORD_STORE_DIR", "PGPASSFILE",
            "PIP_CONFIG_FILE", "TF_CLI_CONFIG_FILE", "XDG_CONFIG_HOME", "npm_config_userconfig",
        ),
        ("",),
    ),
    "CARGO_HOME": ("credentials", "credentials.toml"),
    "COMPOSER_HOME": ("auth.json",),
    "HF_HOME": ("token", "stored_tokens"),
    "XDG_DATA_HOME": ("keyrings", "uv/credentials"),
}  # fmt: skip
_ROOMY = 3  # parts of a folder's path: a variable that names `/etc` hides no credential but the machine


def named_credentials(environ: Mapping[str, str], project: Path) -> tuple[Path, ...]:
    """What there is of it, links resolved; not what lies in the project, which commands are to work with."""
    found = {Path(os.path.realpath(name)) for name in _named(tuple(environ.items())) if name.startswith("/")}
    return tuple(
        sorted(
            path
            for path in found
            # Not `path.is_file`: what cannot be looked at, nobody's command can read either.
            if (os.path.isfile(path) or (os.path.isdir(path) and len(path.parts) >= _ROOMY))
            and path != project
            and project not in path.parents
        )
    )


@lru_cache(maxsize=4)  # the same before every command of a session
def _named(environ: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    given = dict(environ)
    return (data_folder(given), *_places(given))


def _places(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, parts in _NAMED.items():
        for place in environ.get(variable, "").split(os.pathsep):  # KUBECONFIG is a list
            if place:
                yield from (os.path.join(os.path.expanduser(place), part).rstrip("/") for part in parts)
