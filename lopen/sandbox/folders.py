"""What of the machine a command may see: where credentials lie, which folders are replaced, where tools live.

Homes and temporary folders disappear as a whole; the tool folders in them come back read-only, without the
credential files that some of them hold.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

CREDENTIALS: tuple[str, ...] = (
    ".anthropic", ".aws", ".azure", ".bash_history", ".boto", ".cargo/credentials", ".cargo/credentials.toml",
    ".claude", ".claude.json", ".composer/auth.json", ".config", ".databricks", ".docker", ".fly", ".gem/credentials",
    ".git-credentials", ".gitconfig", ".gnupg", ".hf", ".huggingface", ".kube", ".local/share/keyrings",
    ".local/share/uv/credentials", ".m2/settings.xml", ".mozilla", ".my.cnf", ".netrc", ".npmrc", ".oci",
    ".password-store", ".pgpass", ".pki", ".pypirc", ".python_history", ".s3cfg", ".ssh", ".terraform.d",
    ".thunderbird", ".vault-token", ".wget-hsts", ".yarnrc.yml", ".zsh_history",
)  # fmt: skip
"""Below a home; files and folders."""

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
_REPLACED = ("/home", "/root", "/run", "/var/run", "/tmp", "/var/tmp")  # noqa: S108 - hidden, not used
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


def homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The person's home folders, links resolved: by the environment and by the user database."""
    named = [environ.get("HOME", "")]
    try:
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without an entry, as in many containers
        named.append("")
    real = (Path(name).resolve() for name in named if name.startswith("/"))
    return tuple(dict.fromkeys(home for home in real if home != Path("/") and os.path.isdir(home)))


def replaced(homes: Iterable[Path]) -> tuple[Path, ...]:
    """Folders that are replaced by empty ones, outermost only."""
    wanted = [Path(folder).resolve() for folder in _REPLACED if os.path.isdir(folder)]
    return outermost([*wanted, *homes])


def tools(
    environ: Mapping[str, str], homes: Iterable[Path], hidden: Iterable[Path], project: Path
) -> tuple[Path, ...]:
    """What of the `hidden` folders is shown again, read-only: tools by their usual names, and those on PATH."""
    owners, hidden = tuple(homes), tuple(hidden)
    candidates = [home / tool for home in owners for tool in _TOOLS]
    candidates += [Path(sys.prefix), Path(sys.base_prefix)]
    for entry in environ.get("PATH", "").split(":"):
        if entry.startswith("/"):
            candidates += _tool_folders(Path(entry), owners) + _tool_folders(Path(entry).resolve(), owners)
    shown = {c.resolve() for c in candidates if os.path.exists(c)}
    secret = {(home / name).resolve() for home in owners for name in CREDENTIALS}
    return outermost(
        folder
        for folder in shown
        if any(inside(folder, h) and folder != h for h in hidden)
        and not any(inside(h, folder) for h in (*owners, *hidden))
        and folder not in secret
        and not inside(folder, project)
    )


def masked(
    homes: Iterable[Path], visible: Iterable[Path], hidden: Iterable[Path], named: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Credentials that can be seen, being in something `visible` or in nothing `hidden`, and the system's own.

    `named` are those that lie elsewhere than usual, links resolved.
    """
    shown, gone = tuple(visible), tuple(hidden)
    personal = (name for name in _personal(tuple(homes)) if os.path.exists(name))
    real = [*(Path(os.path.realpath(name)) for name in personal), *named]
    found = [p for p in real if any(inside(p, v) for v in shown) or not any(inside(p, h) for h in gone)]
    system = [Path(p) for p in SYSTEM_SECRETS if os.path.lexists(p) and not os.path.islink(p)]
    return tuple(p for p in outermost([*found, *system]) if not any(inside(v, p) for v in shown))


@lru_cache(maxsize=4)  # the same before every command of a session
def _personal(homes: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(os.path.join(home, name) for home in homes for name in CREDENTIALS)


def sockets(listing: str) -> list[Path]:
    """Sockets of the host by their names, from `/proc/net/unix` (unix(7)); read-only mounts do not close them."""
    names = {line.split(maxsplit=7)[7] for line in listing.splitlines()[1:] if line.count("/")}
    return sorted(Path(name) for name in names if name.startswith("/") and _is_socket(name))


def git_folder_elsewhere(root: Path) -> Path | None:
    """The repository of a linked worktree or submodule, where it lies outside `root` and names it back.

    Without the second half a repository's `.git` file could have any folder shown.
    """
    dot_git = root / ".git"
    try:
        if not stat.S_ISREG(dot_git.lstat().st_mode):
            return None
        target = dot_git.read_text("utf-8").removeprefix("gitdir:").strip()
        folder = (root / target).resolve()
        if (folder / "gitdir").is_file():  # a linked worktree
            back = Path((folder / "gitdir").read_text("utf-8").strip())
            common = (folder / (folder / "commondir").read_text("utf-8").strip()).resolve()
            honest = (folder / back).resolve() == dot_git and (common / "HEAD").is_file()
        else:  # a submodule
            found = _WORKTREE.search((folder / "config").read_text("utf-8"))
            common = folder
            honest = found is not None and (folder / found[1]).resolve() == root
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    return common if honest and not inside(common, root) else None


def inside(path: Path, folder: Path) -> bool:
    """Whether `path` is `folder` or lies below it."""
    name, top = str(path), str(folder)
    return name == top or name.startswith(f"{top.rstrip('/')}/")


def outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """`folders` without those inside another one, sorted."""
    kept: list[Path] = []
    for folder in sorted(set(folders)):
        if not any(inside(folder, k) for k in kept):
            kept.append(folder)
    return tuple(kept)


def _tool_folders(entry: Path, homes: tuple[Path, ...]) -> list[Path]:
    """What has to be shown for the programs in `entry` to work: their whole tool, where it has a folder."""
    home = next((h for h in homes if entry != h and h in entry.parents), None)
    parts = entry.relative_to(home).parts if home else ()
    own_folder = (
        len(parts) > 1 and parts[0].startswith(".") and parts[0] not in (*CREDENTIALS, ".local", ".cache")
    )
    if home and own_folder:
        return [home / parts[0]]
    roomy = len(parts) > 1 or (home is None and len(entry.parts) > 3)  # ~/bin has no tool around it
    return [entry, *(entry.parent / name for name in _SIBLINGS if roomy)]


def _is_socket(name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(name).st_mode)
    except OSError:
        return False
