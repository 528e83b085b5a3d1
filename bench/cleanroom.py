"""The cost of a verification in the clean room, over the same command in the project's own tree."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from bench.rows import Row
from bench.sandbox import median_ms
from lopen.core.clock import SystemClock
from lopen.files.workplace import Workplace
from lopen.git.repository import Repository
from lopen.sandbox.choice import choose, probe
from lopen.sandbox.command import Command
from lopen.store.audit import AuditTrail
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.verification.clean_room import CleanRoom
from lopen.verification.verifier import VerificationLog, Verifier
from lopen.workflow.session import Session

RUNS = 15
CHANGED = 5
LINE = "true"


def rows() -> Iterator[Row]:
    """Repositories of 100 and of 20,000 files, with files that changed since the verification before."""
    for files, target in ((100, 40), (20_000, 150)):
        with tempfile.TemporaryDirectory() as folder:
            here, room = measured(Path(folder), files)
        detail = f"{room:.0f} ms against {here:.0f} ms in the project's tree"
        what = f"verification in the room, {files:,} files, {CHANGED} changed"
        yield Row(what, room - here, target, unit="ms", detail=detail)


def measured(base: Path, files: int) -> tuple[float, float]:
    """Return the milliseconds of the command in the project's tree, and of its verification in the room."""
    root = project(base / "project", files)
    clock, session = SystemClock(), Session("bench-20260101-1", "bench", SystemClock().now())
    with closing(Database(base / "state.db")) as database:
        store = SessionStore(database)
        journal = Journal(store, session, clock, redact=str)
        journal.save(session)
        repository = Repository.open(root, clock=clock)
        sandbox = choose("bwrap" if probe("bwrap").works else "none", root)
        place = Workplace(repository, repository)
        room = CleanRoom(base / "rooms", place, mounted=sandbox.name == "bwrap")
        log = VerificationLog(journal, AuditTrail(store.database, session.id, str), clock)
        verifier = Verifier({"verify-build": LINE}, room, sandbox, log, timeout_s=60, network=False)
        here = median_ms(lambda: sandbox.run(Command(LINE, root)), RUNS)
        return here, median_ms(changing(root, lambda: verifier.run("verify_build")), RUNS)


def changing(root: Path, verify: Callable[[], object]) -> Callable[[], object]:
    """Return a verification before which some files change."""
    numbers = count()

    def once() -> None:
        number = next(numbers)
        for file in range(CHANGED):
            (root / f"folder{file}" / "file0.txt").write_text(f"{number}\n", "utf-8")
        verify()

    return once


def project(root: Path, files: int) -> Path:
    """Make a repository with so many files, ten in a folder."""
    root.mkdir()
    for number in range(files):
        folder = root / f"folder{number // 10}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number % 10}.txt").write_text(f"{number}\n" * 20, "utf-8")
    named = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], [*named, "commit", "-qm", "Begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root
