"""The checks of `lopen doctor`, in one ordered table. Each check tries the thing that it reports."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lopen.core.errors import LopenError
from lopen.models.messages import Model, ModelError, NoCredentials, Request, unheard
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report; `mend` says how to fix a problem."""

    check: str
    status: Status
    detail: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """The examined project. `loaded` is None if the configuration cannot be read."""

    root: Path
    loaded: Loaded | None
    environ: Mapping[str, str]
    online: bool = False

    @property
    def settings(self) -> Settings:
        """Return the effective settings, or the defaults."""
        return self.loaded.settings if self.loaded else Settings()


Check = Callable[[Examined], Iterator[CheckResult]]


LOW_SPACE = 200 * 1024 * 1024
PROBE_TOKENS = 16


def examine(examined: Examined) -> Iterator[CheckResult]:
    """Run every check in order; an exception in a check is reported as its result."""
    for name, check in CHECKS:
        try:
            yield from check(examined)
        except LopenError as error:
            yield CheckResult(name, "fail", error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - see the docstring
            yield CheckResult(
                name, "fail", f"the check failed: {type(error).__name__}: {error}", "please report this"
            )


def git(examined: Examined) -> Iterator[CheckResult]:
    """Check git, the project's repository with its first commit, and the identity for commits, as a run does."""
    from lopen.core.clock import SystemClock
    from lopen.git.command import find_git
    from lopen.git.errors import NoIdentity, NotARepository
    from lopen.git.refs import require_commit
    from lopen.git.repository import Repository

    program = find_git(examined.root)
    try:
        repository = Repository.open(examined.root, clock=SystemClock())
    except NotARepository as error:
        yield CheckResult("git", "ok", program)
        yield CheckResult("repository", "fail", error.message, error.hint)
        return
    yield CheckResult("git", "ok", program)
    try:
        require_commit(repository.head())
        yield CheckResult("repository", "ok", str(examined.root))
    except LopenError as error:  # `lopen check` and others work without
        yield CheckResult("repository", "warn", error.message, error.hint)
    try:
        yield CheckResult("identity", "ok", repository.identity())
    except NoIdentity as error:
        yield CheckResult("identity", "fail", error.message, error.hint)


def models(examined: Examined) -> Iterator[CheckResult]:
    """Report the configured models and who configured them."""
    names = ", ".join(_model_names(examined.settings))
    unconfirmed = examined.loaded.unconfirmed if examined.loaded else ()
    if unconfirmed:
        keys = ", ".join(u.key for u in unconfirmed)
        yield CheckResult(
            "models", "warn", f"{names}; the repository chose {keys}", "confirm them when lopen run asks"
        )
    else:
        yield CheckResult("models", "ok", names)


def _model_names(settings: Settings) -> list[str]:
    m, oracle = settings.models, settings.oracle
    named = (m.requirement_gathering, m.planning, m.building, m.research, *m.fallback, oracle.model)
    return list(dict.fromkeys(named))


def endpoint(examined: Examined) -> Iterator[CheckResult]:
    """Check the client and the API key; with `--online`, send each model a one-word request."""
    from lopen.core.clock import SystemClock
    from lopen.models.anthropic_model import AnthropicModel

    model = AnthropicModel(examined.settings.model, examined.environ, SystemClock())
    with closing(model):
        yield _key(examined, model)
        if not examined.online:
            yield CheckResult(
                "endpoint", "skip", "not tried; lopen doctor --online sends each model a one-word request"
            )
            return
        for name in _model_names(examined.settings):
            yield _answers(model, name)


def _key(examined: Examined, model: Model) -> CheckResult:
    """Check for credentials. The SDK also finds some outside of environment variables."""
    provider = examined.settings.model.provider
    try:
        model.connect()
    except NoCredentials:
        return CheckResult(
            "key",
            "warn",
            "ANTHROPIC_API_KEY is not set",
            "to set one: export ANTHROPIC_API_KEY=sk-ant-... (lopen demo works without)",
        )
    if provider != "anthropic":
        return CheckResult(
            "key", "warn", f"{provider} has its own credentials", "to try them: lopen doctor --online"
        )
    from lopen.application.session_model import KEY_VARIABLES

    variable = next((name for name in KEY_VARIABLES if examined.environ.get(name, "").strip()), "")
    return CheckResult("key", "ok", f"{variable} is set" if variable else "the SDK found credentials")


def _answers(model: Model, name: str) -> CheckResult:
    content = [{"type": "text", "text": "Answer with the word ok."}]
    request = Request(name, (), [{"role": "user", "content": content}], max_tokens=PROBE_TOKENS)
    try:
        model.send(request, unheard)
    except (LopenError, ModelError) as error:
        return CheckResult(f"model {name}", "fail", error.message, getattr(error, "hint", ""))
    return CheckResult(f"model {name}", "ok", "answers")


def sandbox(examined: Examined) -> Iterator[CheckResult]:
    """Run a command in each sandbox, and in the one of the settings."""
    from lopen.application.workplaces import sandbox_for
    from lopen.sandbox.choice import probe

    for mode in ("bwrap", "landlock"):
        found = probe(mode)
        yield CheckResult(f"sandbox {mode}", "ok" if found.works else "warn", found.detail)
    wanted = examined.settings.sandbox.mode
    found = probe(wanted)
    if not found.works:
        mend = "install bubblewrap, or run without a sandbox: lopen config set --user sandbox.mode none"
        yield CheckResult(f"sandbox.mode = {wanted}", "fail", found.detail, mend)
    else:
        with tempfile.TemporaryDirectory() as place:  # choosing and trying one makes the HOME of commands
            chosen = sandbox_for(examined.settings, Path(place), "")
        status: Status = "warn" if chosen.warning else "ok"
        yield CheckResult(f"sandbox.mode = {wanted}", status, chosen.warning or found.detail)


def disk(examined: Examined) -> Iterator[CheckResult]:
    """Check that the project and the folder of lopen's clones are writable, and have free disk space."""
    from lopen.application.workplaces import clones_folder

    clones = clones_folder(examined.root)
    places = {
        "disk": _state_folder(examined),
        "clones": next(f for f in (clones, *clones.parents) if f.exists()),
    }
    for name, folder in places.items():
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"x")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            yield CheckResult(name, "fail", f"{folder}: {error.strerror}", "make the folder writable")
            continue
        free = shutil.disk_usage(folder).free
        status: Status = "warn" if free < LOW_SPACE else "ok"
        yield CheckResult(name, status, f"{folder} is writable, {free // 1024**2:,} MB free")


def database(examined: Examined) -> Iterator[CheckResult]:
    """Check that SQLite works here in WAL mode and that the state is readable."""
    from lopen.store.database import OLDEST_SQLITE, Database

    if tuple(sqlite3.sqlite_version_info) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise LopenError(
            f"Python has SQLite {sqlite3.sqlite_version}; lopen needs {oldest} or newer",
            hint="use a Python with a newer SQLite",
        )
    with tempfile.TemporaryDirectory(dir=_state_folder(examined), prefix="doctor-") as scratch:
        state = examined.root / ".lopen" / "state.db"
        with closing(Database(state if state.exists() else Path(scratch) / "state.db")) as opened:
            mode = opened.connection.execute("PRAGMA journal_mode").fetchone()[0]
            opened.check_integrity()
    if mode != "wal":
        mend = "keep the project on a local disk"
        yield CheckResult("database", "fail", f"this file system does not support WAL ({mode})", mend)
    else:
        yield CheckResult("database", "ok", f"SQLite {sqlite3.sqlite_version}, WAL")


def _state_folder(examined: Examined) -> Path:
    from lopen.store.folder import require_plain

    folder = examined.root / ".lopen"
    require_plain(folder)
    return folder if folder.is_dir() else examined.root


CHECKS: tuple[tuple[str, Check], ...] = (
    ("git", git),
    ("models", models),
    ("key", endpoint),
    ("sandbox", sandbox),
    ("disk", disk),
    ("database", database),
)
