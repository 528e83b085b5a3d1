"""What `lopen doctor` tries: each check a function of what it is given, in one ordered table.

Everything is proved by doing it, with one exception: a repository's verify commands are looked up, not run,
for none of them runs before a person approved it.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lopen.application.doctor_report import Check, CheckResult, Examined, Status
from lopen.base.errors import LopenError
from lopen.llm.messages import Model, ModelError, NoCredentials, Request
from lopen.settings.schema import Settings

OLDEST_GIT = (2, 36)
LITTLE_SPACE = 200 * 1024 * 1024
PROBE_TOKENS = 16
GIT_TIMEOUT_S = 10.0
KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def examine(patient: Examined) -> Iterator[CheckResult]:
    """Every check in order. One that breaks is a finding too: a doctor that falls over helps nobody."""
    for name, check in CHECKS:
        try:
            yield from check(patient)
        except LopenError as error:
            yield CheckResult(name, "fail", error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - see the docstring
            yield CheckResult(
                name, "fail", f"could not be checked: {type(error).__name__}: {error}", "report this"
            )


def _git(patient: Examined, *arguments: str) -> subprocess.CompletedProcess[str]:
    from lopen.git.command import HARDENED, as_variables, find_git

    hardened = as_variables(HARDENED)
    return subprocess.run(
        [find_git(patient.root), "-C", str(patient.root), *arguments],
        capture_output=True,
        text=True,
        timeout=GIT_TIMEOUT_S,
        env={**patient.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **hardened},
        check=False,
    )


def git(patient: Examined) -> Iterator[CheckResult]:
    """git is there, young enough, and this is a repository of its."""
    from lopen.git.errors import GitError

    try:
        said = _git(patient, "--version").stdout
    except GitError as error:
        yield CheckResult("git", "fail", error.message, error.hint)
        return
    found = re.search(r"(\d+)\.(\d+)\S*", said)
    young = found is not None and (int(found[1]), int(found[2])) >= OLDEST_GIT
    mend = "" if young else "install git 2.36 or newer"
    yield CheckResult("git", "ok" if young else "fail", said.strip(), mend)
    if not patient.settings.git.enabled:
        yield CheckResult("repository", "skip", "git.enabled is false")
    elif _git(patient, "rev-parse", "--is-inside-work-tree").stdout.strip() == "true":
        yield _begun(patient)
    else:
        yield CheckResult("repository", "fail", f"{patient.root} is no git work tree", "git init")


def _begun(patient: Examined) -> CheckResult:
    """A module's branch begins at a commit, and at a work tree without other work."""
    if _git(patient, "rev-parse", "--verify", "--quiet", "HEAD").returncode == 0:
        return CheckResult("repository", "ok", str(patient.root))
    return CheckResult(
        "repository",
        "warn",
        f"{patient.root} has no commit yet; lopen run begins a module's branch at one",
        "git add -A && git commit -m 'Begin'",
    )


def identity(patient: Examined) -> Iterator[CheckResult]:
    """git knows whom a commit is by."""
    asked = _git(patient, "var", "GIT_COMMITTER_IDENT")
    if asked.returncode == 0:
        yield CheckResult("identity", "ok", asked.stdout.rsplit(">", 1)[0] + ">")
        return
    mend = 'git config --global user.name "Your Name"; git config --global user.email you@example.org'
    yield CheckResult("identity", "fail", "git does not know who you are", mend)


def models(patient: Examined) -> Iterator[CheckResult]:
    """Which models are named, and by whom."""
    names = ", ".join(_model_names(patient.settings))
    unconfirmed = patient.loaded.unconfirmed if patient.loaded else ()
    if unconfirmed:
        keys = ", ".join(u.key for u in unconfirmed)
        yield CheckResult(
            "models", "warn", f"{names}; the repository chose {keys}", "lopen run asks you to confirm them"
        )
    else:
        yield CheckResult("models", "ok", names)


def _model_names(settings: Settings) -> list[str]:
    m = settings.models
    named = (m.requirement_gathering, m.planning, m.building, m.research, *m.fallback, settings.oracle.model)
    return list(dict.fromkeys(named))


def endpoint(patient: Examined) -> Iterator[CheckResult]:
    """The client opens and a key is there; with `--online`, every model answers a tiny request."""
    from lopen.base.clock import SystemClock
    from lopen.llm.anthropic_model import AnthropicModel

    model = AnthropicModel(patient.settings.model, patient.environ, SystemClock())
    with closing(model):
        yield _key(patient, model)
        if not patient.online:
            yield CheckResult(
                "endpoint", "skip", "not asked; lopen doctor --online asks every model for a word"
            )
            return
        for name in _model_names(patient.settings):
            yield _answers(model, name)


def _key(patient: Examined, model: Model) -> CheckResult:
    """Whether something is there to authenticate with. The SDK has more sources than variables."""
    provider = patient.settings.model.provider
    try:
        model.connect()
    except NoCredentials:
        return CheckResult("key", "warn", "ANTHROPIC_API_KEY is not set", "set it; lopen demo needs none")
    if provider != "anthropic":
        return CheckResult(
            "key", "warn", f"{provider} has its own credentials", "lopen doctor --online proves them"
        )
    variable = next((name for name in KEY_VARIABLES if patient.environ.get(name, "").strip()), "")
    return CheckResult(
        "key", "ok", f"{variable} is set" if variable else "the SDK found credentials of its own"
    )


def _answers(model: Model, name: str) -> CheckResult:
    content = [{"type": "text", "text": "Answer with the word ok."}]
    request = Request(name, (), [{"role": "user", "content": content}], max_tokens=PROBE_TOKENS)
    try:
        model.send(request, lambda _text: None)
    except (LopenError, ModelError) as error:
        return CheckResult(f"model {name}", "fail", error.message, getattr(error, "hint", ""))
    return CheckResult(f"model {name}", "ok", "answers")


def sandbox(patient: Examined) -> Iterator[CheckResult]:
    """The sandbox that the settings ask for runs a command."""
    from lopen.sandbox.choice import probe

    for mode in ("bwrap", "landlock"):
        found = probe(mode)
        yield CheckResult(f"sandbox {mode}", "ok" if found.works else "warn", found.detail)
    wanted = patient.settings.sandbox.mode
    found = probe(wanted)
    if not found.works:
        mend = "install bubblewrap, or accept none: lopen config set --user sandbox.mode none"
        yield CheckResult(f"sandbox.mode = {wanted}", "fail", found.detail, mend)
    else:
        status: Status = "warn" if wanted == "none" else "ok"
        yield CheckResult(f"sandbox.mode = {wanted}", status, found.detail)


def verify_commands(patient: Examined) -> Iterator[CheckResult]:
    """The programs that the specifications' verify commands start are here; without one, those detected."""
    from lopen.documents.spec import find_modules, load_specification, spec_path

    modules = find_modules(patient.root)
    if not modules:
        yield from _detected_commands(patient)
    for module in modules:
        paper = f"specs/{module}/SPECIFICATION.md"
        try:
            commands = load_specification(spec_path(patient.root, module), module=module).commands
        except LopenError as error:
            yield CheckResult(f"{module}: verify commands", "warn", error.message, f"lopen check {module}")
            continue
        named = [(c.name, c.command) for c in commands if c.command is not None]
        if not named:
            yield CheckResult(
                f"{module}: verify commands", "warn", "none", f"name one under Skills & Hooks in {paper}"
            )
        for name, command in named:
            yield _found(patient, f"{module}: {name}", command, f", or correct the command in {paper}")


def _detected_commands(patient: Examined) -> Iterator[CheckResult]:
    from lopen.application.verify_detection import detect, listing

    detected = detect(listing(patient.root))
    for name, command in detected.commands.items():
        if command is not None:
            yield _found(patient, name, command)
    for what in detected.missing:
        yield CheckResult("verify commands", "warn", f"no {what} found", "name one under Skills & Hooks")


def _found(patient: Examined, name: str, command: str, otherwise: str = "") -> CheckResult:
    from lopen.application.verify_programs import missing

    lacks = missing(command, patient.root, patient.environ.get("PATH"))
    if not lacks:
        return CheckResult(name, "ok", command)
    wanted = ", ".join(lacks)
    return CheckResult(name, "warn", f"{command}: {wanted} not found", f"install {wanted}{otherwise}")


def disk(patient: Examined) -> Iterator[CheckResult]:
    """The project can be written, and there is room."""
    folder = _state(patient)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield CheckResult("disk", "fail", f"{folder}: {error.strerror}", "make the folder writable")
        return
    free = shutil.disk_usage(folder).free
    status: Status = "warn" if free < LITTLE_SPACE else "ok"
    yield CheckResult("disk", status, f"{folder} is writable, {free // 1024**2:,} MB free")


def database(patient: Examined) -> Iterator[CheckResult]:
    """SQLite keeps lopen's state here, in WAL mode, and what is there can be read."""
    from lopen.storage.database import Database

    state = patient.root / ".lopen" / "state.db"
    if not os.access(_state(patient), os.W_OK | os.X_OK):
        yield CheckResult("database", "skip", "not tried: nothing can be written here")
        return
    with tempfile.TemporaryDirectory(dir=_state(patient), prefix="doctor-") as scratch:
        tried = state if state.exists() else Path(scratch) / "state.db"
        with closing(Database(tried)) as opened:
            mode = opened.connection.execute("PRAGMA journal_mode").fetchone()[0]
            sound = opened.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if mode != "wal":
        yield CheckResult(
            "database", "fail", f"no WAL on this file system ({mode})", "keep the project on a local disk"
        )
    elif sound != "ok":
        yield CheckResult("database", "fail", f"{state}: {sound}", "restore it from a copy, or move it aside")
    else:
        yield CheckResult("database", "ok", f"SQLite {sqlite3.sqlite_version}, WAL")


def _state(patient: Examined) -> Path:
    from lopen.storage.folder import require_plain

    folder = patient.root / ".lopen"
    require_plain(folder)
    return folder if folder.is_dir() else patient.root


def work_trees(patient: Examined) -> Iterator[CheckResult]:
    """Where sessions are to work beside the checkout, if they are: the folder can be written."""
    from lopen.application.work_trees import apart, trees_folder

    if not apart(patient.settings):
        return
    folder = trees_folder(patient.root)
    there = next(f for f in (folder, *folder.parents) if f.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        yield CheckResult("work trees", "fail", f"{there} cannot be written", "make the folder writable")
        return
    modules = ", ".join(sorted(path.name for path in folder.glob("[!.]*"))) or "none now"
    yield CheckResult("work trees", "ok", f"in {folder}: {modules}")


CHECKS: tuple[tuple[str, Check], ...] = (
    ("git", git),
    ("identity", identity),
    ("models", models),
    ("key", endpoint),
    ("sandbox", sandbox),
    ("verify commands", verify_commands),
    ("disk", disk),
    ("work trees", work_trees),
    ("database", database),
)
