"""The folders of a person that a command can see or not: credentials, hidden folders, tools.

Home and temporary folders are hidden as a whole. The tool folders in them are visible again, read-only and without
the credential files that some of them contain.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from lopen.git.clones import GIT_FOLDER

CREDENTIALS: tuple[str, ...] = (
    ".anthropic", ".aws", ".azure", ".bash_history", ".boto", ".cargo/credentials", ".cargo/credentials.toml",
    ".claude", ".claude.json", ".composer/auth.json", ".config", ".databricks", ".docker", ".fly", ".gem/credentials",
    ".git-credentials", ".gitconfig", ".gnupg", ".hf", ".huggingface", ".kube", ".local/share/keyrings",
    ".local/share/uv/credentials", ".m2/settings.xml", ".mozilla", ".my.cnf", ".netrc", ".npmrc", ".oci",
    ".password-store", ".pgpass", ".pki", ".pypirc", ".python_history", ".s3cfg", ".ssh", ".terraform.d",
    ".thunderbird", ".vault-token", ".wget-hsts", ".yarnrc.yml", ".zsh_history",
)  # fmt: skip
"""Files and folders below a home folder."""

SYSTEM_SECRETS: tuple[str, ...] = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssl/private", "/etc/kubernetes", "/etc/wireguard", "/etc/NetworkManager/system-connections",
    "/etc/krb5.keytab", "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key",
    "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/spool/cron",
)  # fmt: skip

_TOOLS: tuple[str, ...] = (
    ".asdf", ".bun", ".cargo", ".deno", ".dotnet", ".ghcup", ".juliaup", ".local/bin", ".local/lib", ".local/pipx",
    ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm", ".local/share/uv",
    ".nix-profile", ".nodenv", ".nvm", ".opam", ".pixi", ".pyenv", ".rbenv", ".rustup", ".rye", ".sdkman",
    ".volta", "anaconda3", "go/bin", "mambaforge", "miniconda3", "miniforge3",
)  # fmt: skip
_SIBLINGS = ("lib", "lib64", "libexec", "share", "include")
_HIDDEN = ("/home", "/root", "/run", "/var/run", "/tmp", "/var/tmp")  # noqa: S108 - hidden, not used
_TOOL_VARIABLES = (
    "ANDROID_HOME", "ANDROID_SDK_ROOT", "ASDF_DATA_DIR", "ASDF_DIR", "BUN_INSTALL", "CONDA_PREFIX", "CURL_CA_BUNDLE",
    "DOTNET_ROOT", "GOROOT", "GRAALVM_HOME", "JAVA_HOME", "MISE_DATA_DIR", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
    "NVM_BIN", "NVM_DIR", "PNPM_HOME", "PYENV_ROOT", "RBENV_ROOT", "REQUESTS_CA_BUNDLE", "RUSTUP_HOME", "SDKMAN_DIR",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "VIRTUAL_ENV", "VOLTA_HOME",
)  # fmt: skip


def home_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the user's home folders from the environment and the user database, with links resolved."""
    named = [environ.get("HOME", "")]
    try:
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without an entry, as in many containers
        named.append("")
    real = (Path(name).resolve() for name in named if name.startswith("/"))
    return tuple(dict.fromkeys(home for home in real if home != Path("/") and os.path.isdir(home)))


def hidden_folders(homes: Iterable[Path]) -> tuple[Path, ...]:
    """Return the outermost folders that the sandbox replaces by empty ones."""
    wanted = [Path(folder).resolve() for folder in _HIDDEN if os.path.isdir(folder)]
    return outermost([*wanted, *homes])


def tool_folders(
    environ: Mapping[str, str], homes: Iterable[Path], hidden: Iterable[Path], project: Path
) -> tuple[Path, ...]:
    """Return the tools in `hidden` folders that are visible again, read-only. They are found by their usual names, by
    variables, and on PATH with the targets of its links. An entry of PATH in the project shows nothing, because a
    command can replace it.
    """
    owners, hidden = tuple(homes), tuple(hidden)
    candidates = [home / tool for home in owners for tool in _TOOLS]
    candidates += [Path(sys.prefix), Path(sys.base_prefix)]
    candidates += [Path(environ[name]) for name in _TOOL_VARIABLES if environ.get(name, "").startswith("/")]
    for entry in dict.fromkeys(environ.get("PATH", "").split(":")):
        if entry.startswith("/") and not inside(Path(entry), project):
            places = {entry, os.path.realpath(entry)}
            places |= {p for p in _linked_programs(entry) if not any(inside(Path(p), h) for h in owners)}
            for place in places:
                candidates += _folders_of_tool(Path(place), owners)
    shown = {c.resolve() for c in candidates if os.path.exists(c) and not inside(c, project)}
    secret = {(home / name).resolve() for home in owners for name in CREDENTIALS}
    return outermost(
        folder
        for folder in shown
        if any(inside(folder, h) and folder != h for h in hidden)
        and not any(inside(h, folder) for h in (*owners, *hidden, *map(Path, _HIDDEN)))
        and folder not in secret
        and not inside(folder, project)
    )


def _linked_programs(folder: str) -> Iterator[str]:
    """Yield the folders, outside of `/usr`, of the programs that links in `folder` lead to."""
    try:
        links = [entry.path for entry in os.scandir(folder) if entry.is_symlink()]
    except OSError:
        return
    for link in links:
        target = os.path.realpath(link)
        if not target.startswith("/usr/") and os.path.isfile(target):
            yield os.path.dirname(target)


def visible_credentials(
    homes: Iterable[Path], visible: Iterable[Path], hidden: Iterable[Path], named: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Return the credentials that are in a `visible` folder or in no `hidden` one, and the system's credentials.

    `named` are credentials in unusual places, with links resolved.
    """
    shown, gone = tuple(visible), tuple(hidden)
    personal = (name for name in _home_credentials(tuple(homes)) if os.path.exists(name))
    real = [*(Path(os.path.realpath(name)) for name in personal), *named]
    found = [p for p in real if any(inside(p, v) for v in shown) or not any(inside(p, h) for h in gone)]
    system = [Path(p) for p in SYSTEM_SECRETS if os.path.lexists(p) and not os.path.islink(p)]
    if Path("/") in gone:
        system = [p for p in system if any(inside(p, v) for v in shown)]
    return tuple(p for p in outermost([*found, *system]) if not any(inside(v, p) for v in shown))


@lru_cache(maxsize=4)  # the same before every command of a session
def _home_credentials(homes: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(os.path.join(home, name) for home in homes for name in CREDENTIALS)


def git_folder(root: Path) -> Path | None:
    """Return the git folder beside the files of lopen's clone; None for a project with its own inside."""
    folder = root.parent / GIT_FOLDER
    return folder if (folder / "HEAD").is_file() else None


def inside(path: Path, folder: Path) -> bool:
    """Return True if `path` is `folder` or is below it."""
    name, top = str(path), str(folder)
    return name == top or name.startswith(f"{top.rstrip('/')}/")


def outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return `folders` without those inside another one, sorted."""
    kept: list[Path] = []
    for folder in sorted(set(folders)):
        if not any(inside(folder, k) for k in kept):
            kept.append(folder)
    return tuple(kept)


def _folders_of_tool(entry: Path, homes: tuple[Path, ...]) -> list[Path]:
    """Return the folders that the programs in `entry` need: the whole tool if it has a folder of its own."""
    if (
        entry.parent / "pyvenv.cfg"
    ).is_file():  # a virtual environment, which this file beside its programs makes one
        return [entry.parent]
    home = next((h for h in homes if entry != h and h in entry.parents), None)
    parts = entry.relative_to(home).parts if home else ()
    own_folder = (
        len(parts) > 1 and parts[0].startswith(".") and parts[0] not in (*CREDENTIALS, ".local", ".cache")
    )
    if home and own_folder:
        return [home / parts[0]]
    roomy = len(parts) > 1 or (home is None and len(entry.parts) > 3)  # ~/bin has no tool around it
    return [entry, *(entry.parent / name for name in _SIBLINGS if roomy)]
