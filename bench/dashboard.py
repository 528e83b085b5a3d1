"""The dashboard in a browser: its size, the time until it can be used, and a page with a large session."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page

from bench.rows import Row
from bench.session import home
from lopen.core.clock import SystemClock
from lopen.core.events import ToolEnded
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Plan, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.project import Project
from tests.server.browser import opened_browser, visiting
from tests.server.serving import serving

TASKS, EVENTS = 1_000, 10_000
KB, MB = 1_000, 1_000_000
SCROLLED_S = 3
STARTS = 5
SIZE = """() => [performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource")]
    .filter(e => !e.name.includes("/api/") && !e.name.includes("/dashboard/"))
    .reduce((sum, e) => sum + e.decodedBodySize, 0)"""
SCROLL = """([name, seconds]) => new Promise(done => {
    const list = document.querySelector(name), frames = [];
    let last = performance.now(), way = -97;
    const end = last + seconds * 1000;
    const step = now => {
        frames.push(now - last);
        last = now;
        if (list.scrollTop <= 0) way = 97;
        list.scrollTop += way;
        now < end ? requestAnimationFrame(step) : done(frames.slice(1));
    };
    requestAnimationFrame(step);
})"""


def rows() -> Iterator[Row]:
    """Measure on loopback, with a browser that draws in software."""
    with home() as folder, opened_browser() as browser:
        project = Project(folder / "project")
        project.specify()
        _record_large_session(project.root)
        with serving(project) as server, visiting(browser, server) as person:
            page = person.page
            page.wait_for_selector("[aria-label=Modules] tr th a")
            yield Row("dashboard, everything that it loads", page.evaluate(SIZE) / KB, 300, "kB")
            starts = sorted(_start_s(page) for _ in range(STARTS))
            detail = f"{starts[0]:.2f} to {starts[-1]:.2f} s"
            yield Row(
                "dashboard, until it shows the modules, median", starts[STARTS // 2], 1, "s", detail=detail
            )
            person.go("#/project/m/calc")
            page.wait_for_selector(f".feed [aria-setsize='{EVENTS}']")
            page.wait_for_selector(f".tree [aria-setsize='{TASKS + 10}']")
            for name in (".feed", ".tree"):
                yield _scrolling(page, name)
            held = _memory(browser, page) / MB
            yield Row(f"page with {EVENTS:,} events and {TASKS:,} tasks: memory", held, 150, "MB")


def _record_large_session(root: Path) -> None:
    components = tuple(
        Component(
            f"c{c}", f"Component {c}", tasks=tuple(_task(c * TASKS // 10 + n) for n in range(TASKS // 10))
        )
        for c in range(10)
    )
    now = datetime.now(UTC)
    session = Session(
        f"calc-{now:%Y%m%d}-1",
        "calc",
        now,
        step=Step.ITERATE_THROUGH_TASKS,
        plan=Plan(tree=TaskTree(components)),
    )
    (root / ".lopen").mkdir(mode=0o700)
    journal = Journal(
        SessionStore(Database(root / ".lopen" / "state.db")), session, SystemClock(), redact=str
    )
    summary = "python -m pytest tests/test_interest.py -q"
    with journal.transaction():
        journal.save(session)
        journal.tell(
            *(ToolEnded(f"call-{n}", "run_command", f"{summary} # {n}", "ok", 0.4) for n in range(EVENTS))
        )


def _task(number: int) -> Task:
    return Task(f"calc-t{number + 1}", f"Compute interest for calendar {number + 1}", "With its tests.")


def _scrolling(page: Page, name: str) -> Row:
    """Measure the work of a frame in processor time, which other processes on the machine do not change."""
    meter = page.context.new_cdp_session(page)
    meter.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _task_s(meter)
    frames = sorted(page.evaluate(SCROLL, [name, SCROLLED_S]))
    work = (_task_s(meter) - before) / len(frames)
    detail = f"{len(frames) / SCROLLED_S:.0f} frames a second with this machine's load"
    return Row(f"scrolling {name[1:]}: work a frame, of 16.7", work * 1_000, 8, "ms", detail=detail)


def _task_s(meter: CDPSession) -> float:
    metrics = meter.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def _start_s(page: Page) -> float:
    began = time.perf_counter()
    page.reload(wait_until="commit")
    page.wait_for_selector("[aria-label=Modules] tr th a")
    return time.perf_counter() - began


def _memory(browser: Browser, page: Page) -> int:
    """Return the bytes that belong to the page's process alone, in its steady state."""
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    processes: list[dict[str, Any]] = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")[
        "processInfo"
    ]
    renderers = [int(p["id"]) for p in processes if p["type"] == "renderer"]
    return max(_private(pid) for pid in renderers)


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    private = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return private * 1_024 if os.path.exists(f"/proc/{pid}") else 0
