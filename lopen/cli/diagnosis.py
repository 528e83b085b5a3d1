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

from lopen.cli.patient import Check, Finding, Patient, Status
from lopen.errors import LopenError
from lopen.llm.messages import Model, ModelError, NoCredentials, Request
from lopen.settings.schema import Settings

OLDEST_GIT = (2, 36)
LITTLE_SPACE = 200 * 1024 * 1024
PROBE_TOKENS = 16
GIT_TIMEOUT_S = 10.0
KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def examine(patient: Patient) -> Iterator[Finding]:
    """Every check in order. One that breaks is a finding too: a doctor that falls over helps nobody."""
    for name, check in CHECKS:
        try:
            yield from check(patient)
        except LopenError as error:
            yield Finding(name, "fail", error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - see the docstring
            yield Finding(
                name, "fail", f"could not be checked: {type(error).__name__}: {error}", "report this"
            )


def _git(patient: Patient, *arguments: str) -> subprocess.CompletedProcess[str]:
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


def git(patient: Patient) -> Iterator[Finding]:
    """git is there, young enough, and this is a repository of its."""
    from lopen.git.errors import GitError

    try:
        said = _git(patient, "--version").stdout
    except GitError as error:
        yield Finding("git", "fail", error.message, error.hint)
        return
    found = re.search(r"(\d+)\.(\d+)\S*", said)
    young = found is not None and (int(found[1]), int(found[2])) >= OLDEST_GIT
    mend = "" if young else "install git 2.36 or newer"
    yield Finding("git", "ok" if young else "fail", said.strip(), mend)
    if not patient.settings.git.enabled:
        yield Finding("repository", "skip", "git.enabled is false")
    elif _git(patient, "rev-parse", "--is-inside-work-tree").stdout.strip() == "true":
        yield _begun(patient)
    else:
        yield Finding("repository", "fail", f"{patient.root} is no git work tree", "git init")


def _begun(patient: Patient) -> Finding:
    """A module's branch begins at a commit, and at a work tree without other work."""
    if _git(patient, "rev-parse", "--verify", "--quiet", "HEAD").returncode == 0:
        return Finding("repository", "ok", str(patient.root))
    return Finding(
        "repository",
        "warn",
        f"{patient.root} has no commit yet; lopen run begins a module's branch at one",
        "git add -A && git commit -m 'Begin'",
    )


def identity(patient: Patient) -> Iterator[Finding]:
    """git knows whom a commit is by."""
    asked = _git(patient, "var", "GIT_COMMITTER_IDENT")
    if asked.returncode == 0:
        yield Finding("identity", "ok", asked.stdout.rsplit(">", 1)[0] + ">")
        return
    mend = 'git config --global user.name "Your Name"; git config --global user.email you@example.org'
    yield Finding("identity", "fail", "git does not know who you are", mend)


def models(patient: Patient) -> Iterator[Finding]:
    """Which models are named, and by whom."""
    names = ", ".join(_model_names(patient.settings))
    unconfirmed = patient.loaded.unconfirmed if patient.loaded else ()
    if unconfirmed:
        keys = ", ".join(u.key for u in unconfirmed)
        yield Finding(
            "models", "warn", f"{names}; the repository chose {keys}", "lopen run asks you to confirm them"
        )
    else:
        yield Finding("models", "ok", names)


def _model_names(settings: Settings) -> list[str]:
    m = settings.models
    named = (m.requirement_gathering, m.planning, m.building, m.research, *m.fallback, settings.oracle.model)
    return list(dict.fromkeys(named))


def endpoint(patient: Patient) -> Iterator[Finding]:
    """The client opens and a key is there; with `--online`, every model answers a tiny request."""
    from lopen.clock import SystemClock
    from lopen.llm.anthropic_model import AnthropicModel

    model = AnthropicModel(patient.settings.model, patient.environ, SystemClock())
    with closing(model):
        yield _key(patient, model)
        if not patient.online:
            yield Finding("endpoint", "skip", "not asked; lopen doctor --online asks every model for a word")
            return
        for name in _model_names(patient.settings):
            yield _answers(model, name)


def _key(patient: Patient, model: Model) -> Finding:
    """Whether something is there to authenticate with. The SDK has more sources than variables."""
    provider = patient.settings.model.provider
    try:
        model.connect()
    except NoCredentials:
        return Finding("key", "warn", "ANTHROPIC_API_KEY is not set", "set it; lopen demo needs none")
    if provider != "anthropic":
        return Finding(
            "key", "warn", f"{provider} has its own credentials", "lopen doctor --online proves them"
        )
    variable = next((name for name in KEY_VARIABLES if patient.environ.get(name, "").strip()), "")
    return Finding("key", "ok", f"{variable} is set" if variable else "the SDK found credentials of its own")


def _answers(model: Model, name: str) -> Finding:
    content = [{"type": "text", "text": "Answer with the word ok."}]
    request = Request(name, (), [{"role": "user", "content": content}], max_tokens=PROBE_TOKENS)
    try:
        model.send(request, lambda _text: None)
    except (LopenError, ModelError) as error:
        return Finding(f"model {name}", "fail", error.message, getattr(error, "hint", ""))
    return Finding(f"model {name}", "ok", "answers")


def sandbox(patient: Patient) -> Iterator[Finding]:
    """The sandbox that the settings ask for runs a command."""
    from lopen.sandbox.choice import probe

    for mode in ("bwrap", "landlock"):
        found = probe(mode)
        yield Finding(f"sandbox {mode}", "ok" if found.works else "warn", found.detail)
    wanted = patient.settings.sandbox.mode
    found = probe(wanted)
    if not found.works:
        mend = "install bubblewrap, or accept none: lopen config set --user sandbox.mode none"
        yield Finding(f"sandbox.mode = {wanted}", "fail", found.detail, mend)
    else:
        status: Status = "warn" if wanted == "none" else "ok"
        yield Finding(f"sandbox.mode = {wanted}", status, found.detail)


def verify_commands(patient: Patient) -> Iterator[Finding]:
    """The programs that the specifications' verify commands start are here; without one, those detected."""
    from lopen.documents.spec import find_modules, load, spec_path

    modules = find_modules(patient.root)
    if not modules:
        yield from _detected_commands(patient)
    for module in modules:
        paper = f"specs/{module}/SPECIFICATION.md"
        try:
            commands = load(spec_path(patient.root, module), module=module).commands
        except LopenError as error:
            yield Finding(f"{module}: verify commands", "warn", error.message, f"lopen check {module}")
            continue
        named = [(c.name, c.command) for c in commands if c.command is not None]
        if not named:
            yield Finding(
                f"{module}: verify commands", "warn", "none", f"name one under Skills & Hooks in {paper}"
            )
        for name, command in named:
            yield _found(patient, f"{module}: {name}", command, f", or correct the command in {paper}")


def _detected_commands(patient: Patient) -> Iterator[Finding]:
    from lopen.cli.detect import detect
    from lopen.cli.init import listing

    detected = detect(listing(patient.root))
    for name, command in detected.commands.items():
        if command is not None:
            yield _found(patient, name, command)
    for what in detected.missing:
        yield Finding("verify commands", "warn", f"no {what} found", "name one under Skills & Hooks")


def _found(patient: Patient, name: str, command: str, otherwise: str = "") -> Finding:
    from lopen.cli.programs import missing

    lacks = missing(command, patient.root, patient.environ.get("PATH"))
    if not lacks:
        return Finding(name, "ok", command)
    wanted = ", ".join(lacks)
    return Finding(name, "warn", f"{command}: {wanted} not found", f"install {wanted}{otherwise}")


def disk(patient: Patient) -> Iterator[Finding]:
    """The project can be written, and there is room."""
    folder = _state(patient)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield Finding("disk", "fail", f"{folder}: {error.strerror}", "make the folder writable")
        return
    free = shutil.disk_usage(folder).free
    status: Status = "warn" if free < LITTLE_SPACE else "ok"
    yield Finding("disk", status, f"{folder} is writable, {free // 1024**2:,} MB free")


def database(patient: Patient) -> Iterator[Finding]:
    """SQLite keeps lopen's state here, in WAL mode, and what is there can be read."""
    from lopen.storage.database import Database

    state = patient.root / ".lopen" / "state.db"
    if not os.access(_state(patient), os.W_OK | os.X_OK):
        yield Finding("database", "skip", "not tried: nothing can be written here")
        return
    with tempfile.TemporaryDirectory(dir=_state(patient), prefix="doctor-") as scratch:
        tried = state if state.exists() else Path(scratch) / "state.db"
        with closing(Database(tried)) as opened:
            mode = opened.connection.execute("PRAGMA journal_mode").fetchone()[0]
            sound = opened.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if mode != "wal":
        yield Finding(
            "database", "fail", f"no WAL on this file system ({mode})", "keep the project on a local disk"
        )
    elif sound != "ok":
        yield Finding("database", "fail", f"{state}: {sound}", "restore it from a copy, or move it aside")
    else:
        yield Finding("database", "ok", f"SQLite {sqlite3.sqlite_version}, WAL")


def _state(patient: Patient) -> Path:
    from lopen.storage.folder import require_plain

    folder = patient.root / ".lopen"
    require_plain(folder)
    return folder if folder.is_dir() else patient.root


def work_trees(patient: Patient) -> Iterator[Finding]:
    """Where sessions are to work beside the checkout, if they are: the folder can be written."""
    from lopen.cli.workplaces import apart, trees_folder

    if not apart(patient.settings):
        return
    folder = trees_folder(patient.root)
    there = next(f for f in (folder, *folder.parents) if f.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        yield Finding("work trees", "fail", f"{there} cannot be written", "make the folder writable")
        return
    modules = ", ".join(sorted(path.name for path in folder.glob("[!.]*"))) or "none now"
    yield Finding("work trees", "ok", f"in {folder}: {modules}")


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
