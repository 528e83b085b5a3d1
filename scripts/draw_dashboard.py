"""Draw the dashboard: `python -m scripts.draw_dashboard [FOLDER]` in the repository's root.

In a project of several modules the bundled example is built against a scripted endpoint that takes its time; the others
are stored as they are: one asks, one was rejected, one is interrupted, one waits for its approval. Chromium opens the
pages while the example is built, and after it, at three widths, light and dark. Into FOLDER go all pictures; without
it, only the one that the documentation shows is written.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from lopen.core import events as e
from lopen.example import MODULE, lay_out
from lopen.queue.opening import project_id
from lopen.queue.shared import BuildOrder, SharedQueue
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.pauses import Confirmation, FailuresInRow, Pause, Question
from lopen.workflow.session import Plan, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from scripts.record_example import Author
from tests.fake_api import Answer, MessagesEndpoint
from tests.project import Project, specification
from tests.server.browser import opened_browser, visiting
from tests.server.serving import serving

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "dashboard.png"
PAUSE_S = 0.5  # before each answer, so that the timeline shows the model's work
WIDTHS = (390, 820, 1440)
LIMIT_S = 180
RUNNING = {"home": "", "module": f"modules/{MODULE}", "question": "modules/names", "workers": "workers"}
COMPLETE = {
    "complete": f"modules/{MODULE}",
    "task": f"modules/{MODULE}/tasks/{MODULE}-t5",
    "diff": f"modules/{MODULE}/diff",
    "events": f"modules/{MODULE}/events",
    "rejected": "modules/ledger",
    "gate": "modules/reports/specification",
    "limits": "limits",
    "history": "history",
}
LEDGER = ["A posting with an empty name is refused", "Amounts are posted to the penny", "A sheet balances"]


class SlowAuthor(Author):
    """Answers as the example's model does, slowly; holds the judge's second look at refused work until released."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.released, self._refused = threading.Event(), threading.Event(), False

    def __call__(self, body: dict[str, Any]) -> Answer:
        time.sleep(PAUSE_S)
        if any(tool["name"] == "submit_verdict" for tool in body.get("tools", ())):
            if self._refused:
                self.reached.set()
                self.released.wait(LIMIT_S)
            self._refused = not self._verdicts[0]["passed"]
        return super().__call__(body)


def store_others(project: Project) -> None:
    """Store modules that wait for a person."""
    now = datetime.now(UTC)
    store = SessionStore(Database(project.root / ".lopen" / "state.db"))
    done = Task("ledger-t1", "Keep accounts by name", state=State.COMPLETE, commit="37881e7c5a2b9d4e")
    posting = Task(
        "ledger-t2", "Post amounts", state=State.FAILED, failures=3, reasons=("LED-1 does not hold",)
    )
    pauses: dict[str, tuple[Pause | None, tuple[Task, ...]]] = {
        "ledger": (
            Confirmation(
                "ledger-20261124-1", FailuresInRow("ledger-t2", 3), "the judge rejected Post amounts 3 times"
            ),
            (done, posting, Task("ledger-t3", "Balance the sheet")),
        ),
        "names": (
            Question(
                "names-20261124-1",
                "May account names contain accents? The specification says letters; the example shows only ASCII.",
                ("no", "yes"),
                "no",
            ),
            (Task("names-t1", "Read names", state=State.IN_PROGRESS), Task("names-t2", "Sort names")),
        ),
        "search": (
            None,
            (Task("search-t1", "Index names", state=State.IN_PROGRESS), Task("search-t2", "Rank matches")),
        ),
    }
    for module, (pause, tasks) in pauses.items():
        criteria = {f"{module[:3].upper()}-{n}": text for n, text in enumerate(LEDGER, 1)}
        project.specify(module, specification(module, criteria=LEDGER))
        tree = TaskTree((Component("c1", "core", criteria=tuple(criteria), tasks=tasks, broken_down=True),))
        session = Session(
            f"{module}-20261124-1",
            module,
            now - timedelta(minutes=31),
            Step.ITERATE_THROUGH_TASKS,
            "paused" if pause else "running",
            pause,
            branch=f"lopen/{module}",
            plan=Plan(tree=tree, criteria=criteria, original_scope=len(criteria)),
        )
        store.save(session, now)
        told: list[tuple[int, e.Event]] = [
            (31, e.SessionStarted(module, "draft_specification")),
            (
                30,
                e.IterationStarted(
                    1, "iterate_through_tasks", "claude-sonnet-5-5", "core", tasks[-2].id, tasks[-2].name
                ),
            ),
            (24, e.TurnEnded(1, "claude-sonnet-5-5", "tool_use", 9_000, 2_100, 60_000, 4_000, 0.11, 240.0)),
        ]
        if pause is not None:
            told.append((12, e.SessionPaused(pause.kind, pause.message, "")))
        for minutes, event in told:
            store.append_event(session.id, now - timedelta(minutes=minutes), event.name, event.body())
    finding = {
        "severity": "error",
        "message": "An empty name is accepted: `post('', 3)` returns a posting.",
        "path": "ledger/__init__.py",
        "line": 14,
        "criterion": "LED-1",
    }
    verdict = {
        "passed": False,
        "confidence": "high",
        "summary": "Amounts are exact, but a posting needs a name.",
        "findings": [finding],
        "scope": "task",
        "subject": "ledger-t2",
        "evidence_hash": "5d2c" * 16,
        "criteria": [{"id": "LED-1", "holds": "no", "evidence": "post('', 3) returns a posting"}],
    }
    store.remember_verdict(
        "ledger-20261124-1", "5d2c" * 16, "task", "ledger-t2", now - timedelta(minutes=12), verdict
    )
    store.database.close()


@contextmanager
def worked_on(root: Path, module: str) -> Iterator[None]:
    """Let another process hold the module, as its build would."""
    hold = "import sys, pathlib; from lopen.store.folder import module_lock as lock\n"
    hold += "with lock(pathlib.Path(sys.argv[1]), sys.argv[2]): print(flush=True); input()"
    command = [sys.executable, "-c", hold, str(root), module]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.communicate(b"\n")


def order_builds(project: Project) -> None:
    """Order builds from a queue: one is under way on another machine, one waits for it, one for a person."""
    address = f"sqlite:///{project.root / '.lopen' / 'queue.db'}"
    with closing(SharedQueue(address, project_id(project.root))) as queue:
        for module, after in (("search", ()), ("ledger", ()), ("exports", ("search",)), ("imports", ())):
            queue.place(BuildOrder(module, "", {}, {}, "", "", after=after), 1)
        fences = {placed.order.module: placed.fence for placed in queue.ready()}
        for module in ("search", "ledger"):
            queue.take(module, fences[module], "build-host-2")
        told = {"reason": "the judge rejected Post amounts 3 times", "command": "lopen confirm ledger"}
        queue.release(
            "ledger", fences["ledger"], "waits", told | {"tasks_done": 1, "tasks": 3, "cost_usd": 0.11}
        )


def photograph(page: Page, url: str, places: dict[str, str], folder: Path) -> None:
    """Save pictures of the pages at each width, light and dark."""
    for name, place in places.items():
        page.goto(f"{url}/{place}")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)


def draw(root: Path, folder: Path | None) -> None:
    """Build in the folder `root`, and write the pictures."""
    author = SlowAuthor()
    with MessagesEndpoint(author) as endpoint:
        project = Project(
            root,
            ANTHROPIC_BASE_URL=endpoint.url,
            ANTHROPIC_API_KEY="unused",
            LOPEN_ORACLE__MUTATION="",
            LOPEN_SANDBOX__MODE="none",
        )
        lay_out(root)
        project.commit("Begin the project")
        assert project.lopen("approve", MODULE, "--yes").code == 0
        run = project.start("run", MODULE, "--detach")
        run.communicate(timeout=LIMIT_S)
        store_others(project)
        project.specify("reports", specification("reports", criteria=LEDGER))
        order_builds(project)
        with (
            worked_on(root, "search"),
            opened_browser() as browser,
            serving(project) as server,
            visiting(browser, server) as visitor,
        ):
            page = visitor.page
            assert author.reached.wait(LIMIT_S)
            page.set_viewport_size({"width": 1200, "height": 900})
            page.goto(f"{server.url}/")
            page.screenshot(path=PICTURE)
            if folder is not None:
                photograph(page, server.url, RUNNING, folder)
            author.released.set()
            if folder is not None:
                assert project.lopen("attach", MODULE).code == 0
                photograph(page, server.url, COMPLETE, folder)
                report = folder / "report.html"
                report.write_text(server.client.get(f"/modules/{MODULE}/report").text, "utf-8")
                page.goto(report.as_uri())
                photograph(page, folder.as_uri(), {"report": "report.html"}, folder)


def main() -> int:
    """Draw into the folder that was named, or the picture of the documentation."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lopen-dashboard-") as temporary:
        os.environ |= {"XDG_DATA_HOME": f"{temporary}/data", "XDG_CACHE_HOME": f"{temporary}/cache"}
        draw(Path(temporary).resolve() / "billing-service", folder)
    return 0


if __name__ == "__main__":
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    sys.exit(main())
