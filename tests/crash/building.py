"""The build that is killed: a small module of two tasks, a scripted endpoint, and what must hold however it went."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lopen.models.messages import Usage
from lopen.store.database import RECORDED_TASKS
from tests.endpoint import Body, ScriptedEndpoint, Turn, tools, verdict
from tests.fake_api import Answer, Message
from tests.preloaded.runs import Decide, Outcome, Preloaded
from tests.project import build, component, plan, specification, verified

TASKS = ("Write adding", "Write doubling")
VERIFY = "test -f test_calc.py && echo 'Ran 1 test in 0.001s' && echo OK"
SECOND = tools(
    ("write_file", {"path": "double.py", "content": "from calc import add\n\n\ndef double(n):\n    return add(n, n)\n"}),
    ("edit_file", {"path": "calc.py", "old_text": "return a + b", "new_text": "return b + a"}),
    ("run_command", {"command": "echo doubled > note.txt"}),
    *verified("calc-t2"),
)  # fmt: skip
USAGE = Usage(input_tokens=900, output_tokens=100)
PER_REQUEST = 1_000  # tokens
MOST_BROKEN = 1_200  # tokens that an answer that broke off counts: its input, and an estimate of its output
RESERVED = 40_000  # more than any request is promised: its input, and max_tokens of 16,000
GIT_CONFIG = (
    "[user]\n\tname = Test Person\n\temail = person@example.invalid\n[init]\n\tdefaultBranch = main\n"
)


def answer(body: Body) -> Message:
    """What the model says, told from the request alone: after an interruption it does the same again."""
    return replace(_said(body), usage=USAGE)


def _said(body: Body) -> Message:
    opening = str(body["messages"][0]["content"])
    if "calc-t1" in opening:
        return build("calc-t1")
    if "calc-t2" in opening:
        return SECOND
    return plan(component("core", "AC-1"), tasks=TASKS)


class FaultyModel:
    """The model of every build, which may be told to answer the first task with a fault."""

    def __init__(self) -> None:
        self.fault: Turn | None = None

    def __call__(self, body: Body) -> Answer:
        if self.fault is None or "calc-t1" not in str(body["messages"][0]["content"]):
            return answer(body)
        return self.fault(body) if callable(self.fault) else self.fault


@dataclass(frozen=True)
class Found:
    """What a build left: the record and the repository."""

    status: str = ""  # of the session, empty where there is none
    complete: Mapping[str, str] = field(default_factory=dict)  # task → its commit, by the record
    committed: Sequence[str] = ()  # what the branch's commits are for: task ids, "" for the approval
    tree: str = ""
    clean: bool = True
    told: Sequence[str] = ()  # the tasks whose commit the history tells of
    set_aside: bool = False
    reservations: int = 0
    tokens: int = 0
    tools: int = 0  # calls recorded
    iterations: int = 0
    damage: str = ""  # the database's own check, and git's


@dataclass(frozen=True)
class Asked:
    """Requests made: of the model, and of the oracle."""

    model: int
    oracle: int

    @property
    def whole(self) -> int:
        """All of them."""
        return self.model + self.oracle


@dataclass(frozen=True)
class Standard:
    """An undisturbed build, which every other one is held to."""

    found: Found
    asked: Asked
    calls: Sequence[tuple[str, bool]]


class Site:
    """A folder with a project that stands at the gate, approved, to be copied for every run."""

    def __init__(self, folder: Path, preloaded: Preloaded, endpoint: ScriptedEndpoint) -> None:
        self.folder = folder
        self.preloaded = preloaded
        self.endpoint = endpoint
        home = folder / "home"
        home.mkdir()
        (home / ".gitconfig").write_text(GIT_CONFIG, "utf-8")
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "TMPDIR": str(folder / "tmp"),
            "LOPEN_SANDBOX__MODE": "none",
            "LOPEN_MODEL__RETRY_BASE_S": "0.01",
            **endpoint.environment,
        }
        (folder / "tmp").mkdir()
        self.template = folder / "template"
        self.template.mkdir()
        self._git("init", "-q", "-b", "main", "--template=")
        (self.template / "README.md").write_text("A project.\n", "utf-8")
        spec = self.template / "specs" / "calc" / "SPECIFICATION.md"
        spec.parent.mkdir(parents=True)
        spec.write_text(specification(commands={"verify-tests": VERIFY}), "utf-8")
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "Begin")
        approved = self.lopen(self.template, "approve", "calc", "--yes")
        assert approved.code == 0, approved.ran.err

    def _git(self, *arguments: str) -> str:
        return git(self.template, self.environment, *arguments)

    @contextmanager
    def project(self) -> Iterator[Path]:
        """A fresh copy of the project, gone afterwards."""
        root = self.folder / "run" / "project"
        shutil.copytree(self.template, root, symlinks=True)
        self.endpoint.requests.clear()
        self.endpoint.oracle_requests.clear()
        try:
            yield root
        finally:
            shutil.rmtree(root.parent)
            shutil.rmtree(self.folder / "home" / "cache", ignore_errors=True)  # with lopen's clone of it
            for left in (self.folder / "tmp").iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def clone(self, root: Path) -> Path:
        """Return the files of lopen's clone, in which the module is built."""
        (folder,) = (self.folder / "home" / "cache" / "lopen" / "clones").iterdir()
        return folder / "calc" / root.name

    def lopen(
        self,
        root: Path,
        *arguments: str,
        decide: Decide | None = None,
        variables: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Outcome:
        """Run a command in a copy; `variables` are added to its environment."""
        environment = self.environment | dict(variables or {})
        return self.preloaded.run(root, environment, arguments, decide=decide, **more)

    def standard(self) -> Standard:
        """An undisturbed build."""
        with self.project() as root:
            outcome = self.lopen(root, "run", "calc", decide=lambda call, own: "go on")
            assert outcome.code == 0, outcome.ran.err
            return Standard(self.found(root), self.asked, outcome.calls)

    @property
    def asked(self) -> Asked:
        """Requests since the copy was made."""
        return Asked(len(self.endpoint.requests), len(self.endpoint.oracle_requests))

    def resume(self, root: Path, **more: Any) -> Outcome:
        """Go on as a person would: `lopen resume`, or `lopen run` where there is no session yet."""
        resumed = self.lopen(root, "resume", **more)
        if "no sessions yet" in resumed.ran.err:
            return self.lopen(root, "run", "calc", **more)
        return resumed

    def found(self, root: Path) -> Found:
        """What lies there now. The database is read in a copy, so that looking changes nothing."""
        copy = root.parent / "looked-at"
        copy.mkdir()
        try:
            for part in (root / ".lopen").glob("state.db*"):
                shutil.copy(part, copy)
            record = recorded(copy / "state.db")
        finally:
            shutil.rmtree(copy)
        record["set_aside"] = (root / ".lopen" / "corrupted").exists()
        branch = git(root, self.environment, "branch", "--list", "--format=%(refname)", "lopen/calc")
        kept = Found(**record)
        if not branch:
            return kept
        trailers = git(
            root,
            self.environment,
            "log",
            "--reverse",
            "--format=%(trailers:key=Lopen-Task,valueonly,separator=)|",
            "main..lopen/calc",
        )
        return Found(
            **record
            | {
                "committed": [line.strip("|") for line in trailers.splitlines()],
                "tree": git(root, self.environment, "rev-parse", "lopen/calc^{tree}"),
                "clean": git(root, self.environment, "status", "--porcelain") == "",
                "damage": kept.damage + fsck(root, self.environment),
            }
        )


def git(root: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """git's output, stripped."""
    ran = subprocess.run(
        ["git", *arguments], cwd=root, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return ran.stdout.strip()


def fsck(root: Path, environment: Mapping[str, str]) -> str:
    """What git's own check says; what merely dangles is a step that was repeated."""
    ran = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling", "--no-progress"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return (ran.stdout + ran.stderr).strip() if ran.returncode else ""


def recorded(path: Path) -> dict[str, Any]:
    """The record as rows, read without lopen."""
    if not path.exists():
        return {}
    try:
        with closing(sqlite3.connect(path)) as database:
            return _rows(database)
    except sqlite3.Error as error:
        return {"damage": f"state.db: {error}"}


def _rows(database: sqlite3.Connection) -> dict[str, Any]:
    check = database.execute("PRAGMA integrity_check").fetchone()[0]
    if database.execute("PRAGMA user_version").fetchone()[0] == 0:
        return {}  # killed before the first migration: nothing was ever kept
    session = database.execute(
        "SELECT status, json_extract(body, '$.limits.iterations') FROM sessions ORDER BY rowid DESC LIMIT 1"
    ).fetchone()
    tasks = database.execute(f"SELECT id, commit_id FROM {RECORDED_TASKS} WHERE state='complete'")
    told = database.execute("SELECT json_extract(body, '$.commit') FROM events WHERE name='committed'")
    spent = database.execute(
        "SELECT coalesce(sum(json_extract(body, '$.tokens_used')), 0) FROM budgets WHERE budget_id LIKE 'session:%'"
    )
    return {
        "status": session[0] if session else "",
        "iterations": session[1] if session else 0,
        "tools": database.execute("SELECT count(*) FROM tool_calls").fetchone()[0],
        "complete": dict(tasks.fetchall()),
        "told": [commit for (commit,) in told],
        "reservations": database.execute("SELECT count(*) FROM reservations").fetchone()[0],
        "tokens": spent.fetchone()[0],
        "damage": "" if check == "ok" else f"state.db: {check}",
    }


def lost(
    standard: Standard, before: Found, after: Found, outcome: Outcome, asked: Asked, kills: int = 1
) -> list[str]:
    """What does not hold of a build that was cut off (`before` as it lay there then) and resumed (`after`)."""
    clean, cost = standard.found, standard.asked
    wrong: list[str] = []

    def must(holds: bool, words: str) -> None:
        if not holds:
            wrong.append(words)

    must(outcome.code == 0, f"resume ended with {outcome.code}: {outcome.ran.last_line}")
    must("Traceback" not in outcome.ran.err, "a traceback reached the person")
    must(not before.damage, f"unreadable state: {before.damage}")
    must(not after.damage, f"unreadable state: {after.damage}")
    kept = {task: after.complete.get(task) for task in before.complete}
    must(kept == dict(before.complete), f"completed tasks were lost: {before.complete} became {kept}")
    must(Counter(after.committed) == Counter(clean.committed), f"commits for {list(after.committed)}")
    must(
        len(after.told) == len(set(after.told)) == len(clean.told),
        f"the history tells of {len(after.told)} commits",
    )
    must(after.tree == clean.tree, "another final tree")
    must(after.clean, "the work tree or the index is not clean")
    must(not after.set_aside, "state was moved to .lopen/corrupted")
    must(after.status == "complete", f"the session is {after.status}")
    must(after.reservations == 0, f"{after.reservations} reservations were never settled")
    used = PER_REQUEST * asked.whole
    # Of a request that is cut off within a second the estimate of its input is known, and nothing of its answer.
    least, most = used - kills * PER_REQUEST, used + kills * RESERVED
    must(least < after.tokens <= most, f"{after.tokens} tokens charged, {used} used")
    must(asked.model <= cost.model + kills, f"{asked.model} requests instead of {cost.model}")
    must(
        asked.oracle <= cost.oracle + kills, f"{asked.oracle} requests of the oracle instead of {cost.oracle}"
    )
    return wrong


def endpoint(model: Turn = answer) -> ScriptedEndpoint:
    """The endpoint behind every build."""
    return ScriptedEndpoint(model, oracle=replace(verdict(), usage=USAGE))
