"""The dashboard in a real browser, on a real server, beside a real build."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, expect

from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.stores.opening import open_limits
from lopen.llm.fake_api.responses import encode, message_events
from lopen.llm.fake_api.server import Answer, Message, Raw
from lopen.llm.messages import Usage
from lopen.settings.schema import Settings
from lopen.storage.database import Database
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Pause, Question, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.project import TIMEOUT_S, Project, build, code, plan, specification, verified
from tests.server.browser import Visitor, opened_browser, visiting
from tests.server.serving import serving, started

HELD_S = 60
OF_TWO_TASKS = plan(tasks=["Write add", "Document add"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found


class Held:
    """A turn that is answered when the test lets it go on; its first words are streamed before that."""

    def __init__(self, answer: Message, begin: str = "") -> None:
        self._answer = answer
        self._begin = begin
        self._let_go = threading.Event()

    def let_go(self) -> None:
        self._let_go.set()

    def __call__(self, body: dict[str, Any]) -> Answer:
        if self._begin:
            return Raw(_Pieces(self._events(str(body["model"])), self._let_go))
        assert self._let_go.wait(HELD_S)
        return self._answer

    def _events(self, model: str) -> list[bytes]:
        blocks: list[Any] = [{"type": "text", "text": self._begin}, *self._answer.content]
        blocks = [
            {"id": f"toolu_held_{i}", **b} if b["type"] == "tool_use" else b for i, b in enumerate(blocks)
        ]
        whole = {"id": "msg_held", "model": model, "content": blocks, "stop_reason": self._answer.stop_reason}
        events = [encode(event) for event in message_events(whole, self._answer.usage or Usage(10, 10))]
        events[3] += b": %b\n\n" % (b"-" * 20_000)  # a comment, larger than the buffer of the connection
        return events


class _Pieces(Sequence[bytes]):
    """The events of an answer, of which those after the first text wait."""

    def __init__(self, events: list[bytes], let_go: threading.Event) -> None:
        self._events = events
        self._let_go = let_go

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, at: Any) -> Any:
        if at == 4:  # message_start, ping, content_block_start, content_block_delta
            assert self._let_go.wait(HELD_S)
        return self._events[at]


def ended(process: subprocess.Popen[str], code: int) -> None:
    """Wait for a command's end."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, out[-2000:] + err


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_person_follows_and_steers_a_build(
    make_project: MakeProject, browser: Browser, by: Literal["mouse", "keyboard"]
) -> None:
    writing = Held(
        tools(*code(), usage=Usage(4_000, 160_000)), begin="I write the function and its test first. "
    )
    spending = Held(tools(*verified("calc-t1"), usage=Usage(4_000, 40_000)))
    last = Held(build("calc-t2", "more"))
    project = make_project(
        [OF_TWO_TASKS, writing, spending, last, *[build("calc-t2", "more")] * 3],
        LOPEN_BUDGET__SESSION_TOKENS="200000",
        LOPEN_BUDGET__TASK_TOKENS="0",
        LOPEN_BUDGET__BY_TASK_TYPE__IMPLEMENT="0",
    )
    project.specify()
    with serving(project) as server, visiting(browser, server, by) as person:
        approve(person, project, pictures=by == "mouse")
        run = project.start("run", "calc")
        person.go("#/project/m/calc")
        watch_the_model_write(person, pictures=by == "mouse")
        writing.let_go()
        cross_the_threshold(person, pictures=by == "mouse")
        spending.let_go()
        ended(run, 3)
        extend_the_budget(person, pictures=by == "mouse")
        run = project.start("resume")
        pause(person)
        last.let_go()
        ended(run, 3)
        expect(person.page).to_have_title("(1) needs you · calc · lopen")
        expect(person.page.locator("#icon")).to_have_attribute("href", "/static/icon-needs.svg")
        ended(project.start("resume"), 0)
        read_the_task(person, pictures=by == "mouse")


def approve(person: Visitor, project: Project, *, pictures: bool) -> None:
    person.press("calc")
    expect(person.page.get_by_text("Nothing was built yet")).to_be_visible()
    person.press("Read and approve")
    page = person.page
    expect(page.get_by_role("article", name="Specification")).to_contain_text("Nothing is rounded.")
    expect(page.get_by_role("region", name="Acceptance criteria")).to_contain_text("add(1, 2) is 3")
    expect(page.get_by_role("region", name="Commands that lopen will run")).to_contain_text("-m unittest -q")
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    if pictures:
        person.picture("gate")
        person.require_accessible()
    page.route(
        "**/specification*", lambda route: route.abort()
    )  # the page does not notice the change by itself
    project.specify(text=specification(criteria=["add(1, 2) is 3", "add is exact"]))
    person.write("Note (optional)", "read on a train")
    person.press("Approve")
    expect(page.get_by_role("alert").first).to_contain_text("the specification has changed")
    page.unroute("**/specification*")
    person.press("Read it again")
    expect(page.get_by_role("region", name="Acceptance criteria")).to_contain_text("add is exact")
    project.specify()
    expect(page.get_by_role("alert").first).to_contain_text("has changed since you opened this page")
    person.press("Read it again")
    expect(page.get_by_role("region", name="Acceptance criteria")).not_to_contain_text("add is exact")
    person.write("Note (optional)", "read on a train")
    person.press("Approve")
    expect(page.get_by_role("heading", level=1)).to_contain_text("approved")
    expect(page.get_by_role("region", name="Since the last approval")).to_contain_text("read on a train")


def watch_the_model_write(person: Visitor, *, pictures: bool) -> None:
    page = person.page
    tree = page.get_by_role("listbox", name="Components and tasks")
    expect(tree).to_contain_text("Write add")
    expect(tree).to_contain_text("Document add")
    expect(page.get_by_role("region", name="What the model writes now")).to_contain_text(
        "I write the function and its test first."
    )
    if pictures:
        person.picture("module")
        person.require_accessible()


def cross_the_threshold(person: Visitor, *, pictures: bool) -> None:
    person.press("lopen")
    page = person.page
    budget = page.locator("tr[data-budget^='session:calc']")
    expect(budget).to_contain_text("warning")
    assert float(budget.get_by_role("progressbar").get_attribute("aria-valuenow") or 0) >= 80
    if pictures:
        person.picture("overview")
        person.require_accessible()
    alert = page.get_by_role("button", name="Acknowledge:")
    expect(alert).to_be_visible()
    person.press("Acknowledge:")
    expect(alert).to_have_count(0)


def extend_the_budget(person: Visitor, *, pictures: bool) -> None:
    page = person.page
    expect(page.get_by_role("heading", name="lopen needs you")).to_be_visible()
    expect(page).to_have_title("(1) needs you · lopen")
    if pictures:
        person.picture("needs-you")
        person.require_accessible()
    person.press("Extend session:")
    person.write("Additional tokens", "100000")
    person.write("Reason", "the last task is close")
    person.press("Extend")
    expect(page.locator("tr[data-budget^='session:calc']")).to_contain_text("300k")


def pause(person: Visitor) -> None:
    person.go("#/project/m/calc")
    person.press("Pause calc")
    expect(person.page.get_by_text("the run stops at the next safe point")).to_be_visible()


def read_the_task(person: Visitor, *, pictures: bool) -> None:
    page = person.page
    expect(page.get_by_role("heading", level=1)).to_contain_text("complete")
    if pictures:
        person.picture("complete")
    person.open_task(1)
    expect(page.get_by_role("region", name="What was asked")).to_contain_text("Write add, with its tests.")
    expect(page.get_by_role("region", name="Changes of calc.py")).to_contain_text("return a + b")
    expect(page.get_by_role("region", name="Output of verify_tests").first).to_contain_text("OK")
    expect(page.get_by_role("region", name="What the judge said")).to_contain_text("All criteria hold.")
    if pictures:
        person.picture("task")
        person.require_accessible()


SCRIPT = "<script>window.ran=1</script><img src=x onerror='window.ran=1'>"


def test_markup_of_the_model_and_the_repository_stays_text(
    make_project: MakeProject, browser: Browser
) -> None:
    findings = [{"severity": "warning", "message": SCRIPT, "path": "calc.py", "line": 1}]
    criteria = [{"id": "AC-1", "holds": "yes", "evidence": SCRIPT}]
    loud = f'import sys\n\nsys.stdout.write("""{SCRIPT}""")\n'
    calls = [("write_file", {"path": "test_loud.py", "content": loud}), *code(), *verified("calc-t1")]
    project = make_project(
        [plan(tasks=[SCRIPT]), tools(*calls, say=SCRIPT)],
        oracle=verdict(summary=SCRIPT, findings=findings, criteria=criteria),
    )
    hostile = f"{SCRIPT}\n\n[link](javascript:window.ran=1) ![image](http://127.0.0.1:9/x.png)\n"
    project.specify(text=specification(criteria=[f"add(1, 2) is 3 {SCRIPT}"], extra=f"## Notes\n{hostile}"))
    assert project.lopen("approve", "calc", "--yes", "--note", SCRIPT).code == 0
    ran = project.lopen("run", "calc")
    assert ran.code == 0, ran.out[-2000:] + ran.err
    with serving(project) as server, visiting(browser, server) as person:
        page = person.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        shown = {
            "#/": "calc",
            "#/project/m/calc": SCRIPT,
            "#/project/m/calc/t/calc-t1": SCRIPT,
            "#/project/m/calc/gate": SCRIPT,
        }
        for place, text in shown.items():
            person.go(place)
            expect(page.get_by_text(text).first).to_be_visible()
        assert page.locator("a[href^=javascript]").count() == 0
        page.wait_for_function("!document.querySelector('main img, main script')")
        assert page.evaluate("window.ran") is None
        assert all(url.startswith(server.url) for url in asked), asked


def test_the_stream_goes_on_where_a_killed_server_left_it(
    make_project: MakeProject, browser: Browser
) -> None:
    before, after = Held(build("calc-t1")), Held(build("calc-t2", "more"))
    project = make_project([OF_TWO_TASKS, before, after])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    first = started(project)
    with closing(first.client), first.process, visiting(browser, first) as person:
        run = project.start("run", "calc")
        person.go("#/project/m/calc")
        page = person.page
        feed = page.get_by_role("listbox", name="Events of the session")
        expect(feed).to_contain_text("calc-t1 Write add: in progress")
        first.process.kill()
        expect(page.get_by_role("banner")).to_contain_text("the server does not answer")
        before.let_go()
        after.let_go()
        ended(run, 0)
        with serving(project, "--port", first.url.rpartition(":")[2]):
            expect(feed).to_contain_text("calc is complete")
            expect(page.get_by_role("heading", level=1)).to_contain_text("complete")
        with sqlite3.connect(project.root / ".lopen" / "state.db") as database:
            (recorded,) = database.execute("SELECT count(*) FROM events").fetchone()
        feed.focus()
        page.keyboard.press("Home")
        expect(feed.locator("[aria-posinset='1']")).to_have_attribute("aria-setsize", str(recorded))


def test_a_person_answers_confirms_acknowledges_and_skips(
    make_project: MakeProject, browser: Browser
) -> None:
    """Every kind of decision, on sessions that were stored as waiting for one."""
    project = make_project()
    with serving(project) as server, visiting(browser, server) as person:
        page = person.page
        expect(page.get_by_text("lopen init MODULE")).to_be_visible()
        _store_waiting_sessions(project)
        expect(page.get_by_role("heading", name="lopen needs you · 3")).to_be_visible()
        person.picture("waiting")
        person.require_accessible()
        person.press("Answer")
        expect(page.get_by_role("dialog")).to_contain_text("Round up or down?")
        expect(page.get_by_label("Answer", exact=True)).to_have_value("down")
        person.write("Answer", "up")
        person.press("Answer")
        expect(page.get_by_role("heading", name="lopen needs you · 2")).to_be_visible()
        person.press("Confirm")
        person.write("Note for the model (optional)", "try the other library")
        person.press("Confirm")
        expect(page.get_by_role("button", name="Confirm")).to_have_count(0)
        person.press("Acknowledge circuit")
        expect(page.get_by_role("region", name="Circuits").first).to_contain_text("half open")
        person.go("#/project/m/doubts/t/doubts-t1")
        person.press("Skip Write it")
        person.write("Reason", "out of scope")
        person.press("Skip the task")
        expect(page.get_by_role("heading", level=1)).to_contain_text("skipped")
    store = SessionStore(Database(project.root / ".lopen" / "state.db"))
    asked, confirmed = (store.latest(module=name) for name in ("asks", "doubts"))
    assert asked is not None
    assert asked.question is not None
    assert asked.question.answer == "up"
    assert confirmed is not None
    assert any("try the other library" in note for note in confirmed.notes)
    assert [t.given_up for t in confirmed.tree.tasks] == ["out of scope"]


def _store_waiting_sessions(project: Project) -> None:
    now = datetime.now(UTC)
    pauses = {
        "asks": Pause("question", "the model asks: Round up or down?", "lopen answer asks-20260301-1 TEXT"),
        "doubts": Pause(
            "confirmation", "3 attempts failed", "lopen confirm doubts-20260301-1", "doubts-t1", 3
        ),
        "trips": Pause("circuit", "5 identical calls in a row", "lopen circuit ack session:trips-20260301-1"),
    }
    (project.root / ".lopen").mkdir(mode=0o700, exist_ok=True)
    store = SessionStore(Database(project.root / ".lopen" / "state.db"))
    for module, pause in pauses.items():
        project.specify(module, specification(module))
        tree = TaskTree((Component("c1", "core", tasks=(Task(f"{module}-t1", "Write it"),)),))
        question = Question("Round up or down?", ("up", "down"), "down") if module == "asks" else None
        session = Session(
            f"{module}-20260301-1",
            module,
            now,
            step=Step.ITERATE_THROUGH_TASKS,
            status="paused",
            pause=pause,
            tree=tree,
            question=question,
        )
        store.save(session, now)
    tripped = CircuitState(
        "session:trips-20260301-1",
        state="open",
        trip_reason="5 identical calls in a row",
        tripped_at=now.timestamp(),
        last_updated=now.timestamp(),
        rule="duplicate_call",
        needs_ack=True,
    )
    with closing(open_limits(Settings().budget, store.database)) as limits:
        limits.atomically(lambda rows: rows.put_circuit(tripped))
    store.database.close()


def test_a_decision_reaches_the_project_on_whose_page_it_was_made(
    make_project: MakeProject, browser: Browser
) -> None:
    first, second = make_project(name="first"), make_project(name="second")
    for project in (first, second):
        project.specify()
    both = ("--project", str(first.root), "--project", str(second.root))
    with serving(first, *both) as server, visiting(browser, server) as person:
        modules = person.page.get_by_role("region", name="Modules").first
        expect(modules).to_contain_text("calcfirst")
        expect(modules).to_contain_text("calcsecond")
        person.go("#/second/m/calc/gate")
        person.press("Approve")
        expect(person.page.get_by_role("heading", level=1)).to_contain_text("approved")
    states = [p.lopen("modules", "--json").named("module")[0]["state"] for p in (first, second)]
    assert states == ["specified", "approved"]
