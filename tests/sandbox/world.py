"""What stands around a sandboxed project in these tests, and what is looked at after an attempt.

A project with everything that is protected; a folder outside that stays visible, one in the temporary
folder; a home full of credentials; listeners that count who connects; a bystander process.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lopen.sandbox.bubblewrap import Bubblewrap
from lopen.sandbox.choice import Mode, Unconfined
from lopen.sandbox.command import Command, CommandLimits, CommandResult, Sandbox
from lopen.sandbox.environment import SandboxOptions
from lopen.sandbox.landlock import Landlock
from tests.needs import require_sandbox
from tests.sandbox.kernel_things import KernelThings, kernel_things

SESSION = "world-20260101-1"
TOKEN = "86399.{pid}"
REPOSITORY = Path(__file__).parents[2]
CREDENTIALS = (
    ".ssh/id_rsa", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".config/lopen/token", ".docker/config.json",
    ".kube/config", ".npmrc", ".pypirc", ".git-credentials", ".gnupg/secring", ".cargo/credentials.toml",
    ".claude.json", ".claude/.credentials.json", ".local/share/lopen/seal.key", ".local/share/lopen/token", ".bash_history", "private.txt",
)  # fmt: skip
SECRET_VARIABLES = {
    "ANTHROPIC_API_KEY": "CANARY-1",
    "GITHUB_TOKEN": "CANARY-2",
    "AWS_SECRET_ACCESS_KEY": "CANARY-3",
    "DATABASE_URL": "postgres://app:CANARY-4@db/x",
    "PLAIN_NAME": "CANARY-5",
    "HTTPS_PROXY": "http://me:CANARY-6@proxy:3128",
    "LD_PRELOAD": "",
    "LD_LIBRARY_PATH": "CANARY-7",
    "PYTHONPATH": "CANARY-8",
    "NODE_OPTIONS": "CANARY-9",
    "GIT_DIR": "CANARY-10",
    "SSH_AUTH_SOCK": "CANARY-11",
    "DBUS_SESSION_BUS_ADDRESS": "CANARY-12",
    "LC_ALL": "sk-ant-CANARY-" + "a1" * 20,
    "BASH_ENV": "CANARY-13",
}
PROJECT_FILES = {
    "src/app.py": "print('hello')\n",
    "specs/auth/SPECIFICATION.md": "# Auth\n",
    "specs/auth/RESEARCH-x.md": "# x\n",
    "specs/pay/SPECIFICATION.md": "# Pay\n",
    ".lopen/config.toml": "[workflow]\n",
    ".lopen/state.db": "state",
    ".claude/settings.json": "{}\n",
    ".gitignore": ".lopen/\n",
    **{name: (Path(__file__).parent / name).read_text("utf-8") for name in ("reach.py",)},
}


class Listener:
    """Accepts on a socket, counts, and hangs up."""

    def __init__(self, family: int, address: str | tuple[str, int]) -> None:
        self.count = 0
        self._socket = socket.socket(family)
        self._socket.bind(address)
        self._socket.listen()
        self.name = self._socket.getsockname()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            connection.close()

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@dataclass
class World:
    """One project and its surroundings. `renew` gives the project a fresh start."""

    base: Path
    beside: Path
    bystander: subprocess.Popen[bytes]
    listeners: Mapping[str, Listener]
    environ: Mapping[str, str]
    kernel: KernelThings
    token: str = TOKEN.format(pid=os.getpid())
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.base / "project"

    def renew(self) -> None:
        """The project as it was made; only what differs is made again."""
        template = self.base / "template"
        wanted = {os.path.relpath(k, template): v for k, v in tree(template).items()}
        found = {os.path.relpath(k, self.root): v for k, v in tree(self.root).items()}
        for name in {Path(name).parts[0] for name in differing(wanted, found) if name != "."}:
            _delete(self.root / name)
            if (template / name).is_dir():
                shutil.copytree(template / name, self.root / name, symlinks=True)
            elif (template / name).exists():
                shutil.copy2(template / name, self.root / name)

    def sandbox(self, mode: Mode) -> Sandbox:
        """The adapter of that name for the project."""
        if mode not in self.sandboxes:
            require_sandbox(mode)
            kinds = {"bwrap": Bubblewrap, "landlock": Landlock, "none": Unconfined}
            limits = CommandLimits(memory_mb=400)
            self.sandboxes[mode] = kinds[mode](self.root, SandboxOptions(limits, SESSION, self.environ))
        return self.sandboxes[mode]

    def run(self, mode: Mode, line: str, *, timeout_s: float = 10.0, writable: bool = True) -> CommandResult:
        """Run a line of the shell in the project."""
        return self.sandbox(mode).run(Command(line, self.root, timeout_s=timeout_s, writable=writable))

    def words(self) -> dict[str, object]:
        """What the words in braces stand for."""
        return {
            "root": self.root,
            "beside": self.beside,
            "outside": self.base / "outside",
            "home": self.base / "home",
            "python": f"{shlex.quote(os.path.realpath(sys.executable))} -I -S -c",
            "token": self.token,
            "bystander": self.bystander.pid,
            "lopen": os.getpid(),
            "reach": f"{shlex.quote(os.path.realpath(sys.executable))} -I -S reach.py",
            **self.kernel.words,
            "renamed": self.listeners["renamed"].name + "-now",
            "port": self.listeners["tcp"].name[1],
            "socket": self.listeners["tmp"].name,
            "beside_socket": self.listeners["beside"].name,
            "abstract": self.listeners["abstract"].name[1:].decode(),
        }

    def outside(self) -> dict[str, object]:
        """Everything that no command may change, as it is now."""
        return tree(self.beside) | tree(self.base / "outside") | tree(self.base / "home")

    def guarded(self, mode: str) -> dict[str, object]:
        """What of the project no command may change: git's folder, where the sandbox shows it read-only."""
        return tree(self.root / ".git") if mode == "bwrap" else {}

    def attempt(self, mode: Mode, line: str) -> list[str]:
        """Run an attempt; what it achieved, in words."""
        outside, guarded = self.outside(), self.guarded(mode)
        calls = {name: listener.count for name, listener in self.listeners.items()}
        result = self.run(mode, line.format(**self.words()))
        left = processes_with(self.token)
        achieved = [f"left running: {line}" for line in left]
        achieved += [f"changed outside: {name}" for name in differing(outside, self.outside())]
        achieved += [f"changed: {name}" for name in differing(guarded, self.guarded(mode))]
        achieved += [
            f"connected: {n}" for n, listener in self.listeners.items() if listener.count != calls[n]
        ]
        if "CANARY" in result.output:
            achieved.append(f"came out: {result.output[:500]}")
        if self.bystander.poll() is not None or _state(self.bystander.pid) == "T":
            achieved.append("the bystander was ended or stopped")
        if result.timed_out:
            achieved.append("went on until its time was up")
        return achieved


@contextlib.contextmanager
def a_world() -> Iterator[World]:
    """Build one, and take it down."""
    base = Path(tempfile.mkdtemp(prefix="lopen-world-")).resolve()
    near = REPOSITORY / "build"
    if shlex.quote(str(near)) != str(near):  # the table's lines do not quote it
        near = base.parent
    near.mkdir(exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix="beside-", dir=near)).resolve()
    with contextlib.ExitStack() as stack:
        stack.callback(_delete, base)
        stack.callback(_delete, beside)
        _furnish(base, beside)
        bystander = _bystander(base)
        stack.callback(_end, bystander)
        listeners = {
            "tcp": Listener(socket.AF_INET, ("127.0.0.1", 0)),
            "tmp": Listener(socket.AF_UNIX, str(base / "s")),
            "renamed": Listener(socket.AF_UNIX, str(beside / "r")),
            "beside": Listener(socket.AF_UNIX, str(beside / "s")),
            "abstract": Listener(socket.AF_UNIX, f"\0lopen-test-{os.getpid()}"),
        }
        os.rename(beside / "r", beside / "r-now")
        for listener in listeners.values():
            stack.callback(listener.close)
        path = f"{base}/home/.cargo/bin:{os.environ['PATH']}"
        environ = {"PATH": path, "HOME": str(base / "home"), "LANG": "C.UTF-8"} | SECRET_VARIABLES
        with kernel_things(beside) as kernel:
            yield World(base, beside, bystander, listeners, environ, kernel)


def tree(top: Path) -> dict[str, object]:
    """Every entry below `top` with what it is: content, target, permissions, owner and time."""
    found: dict[str, object] = {str(top): stat.S_IMODE(os.lstat(top).st_mode)}
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            kind: object = stat.S_IFMT(status.st_mode)
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    kind = (file.read(), status.st_mtime if "beside-" in path else 0)
            elif stat.S_ISLNK(status.st_mode):
                kind = os.readlink(path)
            found[path] = (kind, stat.S_IMODE(status.st_mode), status.st_uid)
    return found


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Keys whose values differ, or that only one of the two has."""
    return sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))


def processes_with(word: str) -> list[str]:
    """Command lines of running processes that hold `word`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                line = (
                    Path("/proc", name, "cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode("utf-8", "replace")
                )
                if word in line and int(name) != os.getpid():
                    found.append(line)
    return found


def _is_file(name: str) -> bool:
    return not os.path.isdir(name) or os.path.islink(name)


def _furnish(base: Path, beside: Path) -> None:
    _write(base / "outside/secret.txt", "CANARY-OUTSIDE\n")
    _write(beside / "file", "as it was\n")
    _write(base / "home/.cargo/bin/tool", "#!/bin/sh\necho tool\n")
    (base / "home/.cargo/bin/tool").chmod(0o755)
    _write(base / "home/.bashrc", "# empty\n")
    for name in CREDENTIALS:
        _write(base / "home" / name, "CANARY-HOME\n")
    for name, content in PROJECT_FILES.items():
        _write(base / "template" / name, content)
    (base / "template/.lopen/cache/home").mkdir(parents=True)
    (base / "project").mkdir()
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(base / "template")]
    subprocess.run([*git, "init", "-q", "-b", "main", "--template="], check=True)
    (base / "template/.git/hooks").mkdir()
    (base / "template/.git/info").mkdir()
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], check=True)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def _bystander(base: Path) -> subprocess.Popen[bytes]:
    """A process of the same user: secrets in its environment, its folder outside, a file open as number 3."""
    line = "exec 3< secret.txt; exec sleep 3600"
    return subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=base / "outside",
        env={"PATH": os.environ["PATH"], "KEY": "CANARY-BYSTANDER"},
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _delete(top: Path) -> None:
    """Delete a tree, whatever permissions an attempt has left in it."""
    if top.is_symlink() or top.is_file():
        top.unlink()
    elif top.exists():
        for folder, _, _ in os.walk(top):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(top)
