"""Every kind of decision on the dashboard, on sessions that were stored as waiting for one."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

from playwright.sync_api import Browser, expect

from lopen.limits.circuits import CircuitState
from lopen.limits.opening import open_limits
from lopen.settings.schema import Settings
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.pauses import Confirmation, FailuresInRow, Pause, Question, circuit_open
from lopen.workflow.session import Plan, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.e2e.conftest import MakeProject
from tests.project import Project, specification
from tests.server.browser import visiting
from tests.server.serving import serving


def test_a_person_answers_confirms_acknowledges_and_skips(
    make_project: MakeProject, browser: Browser
) -> None:
    """Every kind of decision, on sessions that were stored as waiting for one."""
    project = make_project()
    with serving(project) as server, visiting(browser, server) as person:
        page = person.page
        expect(page.get_by_text("lopen init MODULE")).to_be_visible()
        _store_waiting_sessions(project)
        expect(page.get_by_role("heading", name="3 wait for you")).to_be_visible()
        expect(page).to_have_title("(3) asks asks · project · lopen")
        person.require_accessible()
        expect(page.get_by_text("Round up or down?")).to_be_visible()
        expect(page.get_by_label("Answer for asks")).to_have_value("down")
        person.write("Answer for asks", "perhaps")
        person.press("Answer, but do not go on yet")
        expect(page.locator("#said")).to_contain_text("taken as your own words; offered: up, down")
        asks = page.locator("#need-asks")
        expect(asks).to_contain_text("can go on")
        expect(asks.get_by_role("button", name="Go on with asks")).to_be_visible()
        expect(asks.get_by_role("button", name="Answer", exact=True)).to_have_count(0)
        person.press("Change the answer for asks")
        expect(page.get_by_label("Answer for asks", exact=True)).to_have_value("perhaps")
        person.write("Answer for asks", "up", within=asks)
        asks.get_by_role("button", name="Change", exact=True).click()
        expect(asks).to_contain_text("you answered 'up'")
        person.press("Let doubts go on")
        person.write("Note for the model (optional)", "try the other library")
        person.require_accessible()
        person.press("Confirm, but do not go on yet")
        expect(page.locator("#need-doubts")).to_contain_text("can go on")
        person.press("Only acknowledge session:trips")
        expect(page.locator("#need-trips")).to_contain_text("can go on")
        person.go("limits")
        expect(page.get_by_role("region", name="Circuits")).to_contain_text("trying again")
        person.go("modules/doubts/tasks/doubts-t1")
        person.press("Skip Write it")
        person.write("Reason", "out of scope")
        page.locator("details[open]").get_by_role("button", name="Skip the task").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("skipped")
    store = SessionStore(Database(project.root / ".lopen" / "state.db"))
    asked, confirmed = (store.latest(module=name) for name in ("asks", "doubts"))
    assert asked is not None
    assert isinstance(asked.pause, Question)
    assert asked.pause.answer == "up"
    assert confirmed is not None
    assert any("try the other library" in note for note in confirmed.dialogue.notes)
    assert [t.given_up for t in confirmed.tree.tasks] == ["out of scope"]


def _store_waiting_sessions(project: Project) -> None:
    now = datetime.now(UTC)
    pauses: dict[str, Pause] = {
        "asks": Question("asks-20260301-1", "Round up or down?", ("up", "down"), "down"),
        "doubts": Confirmation("doubts-20260301-1", FailuresInRow("doubts-t1", 3), "3 attempts failed"),
        "trips": circuit_open(
            "trips-20260301-1", "5 identical calls in a row", "lopen circuit ack session:trips-20260301-1"
        ),
    }
    (project.root / ".lopen").mkdir(mode=0o700, exist_ok=True)
    store = SessionStore(Database(project.root / ".lopen" / "state.db"))
    for module, pause in pauses.items():
        project.specify(module, specification(module))
        tree = TaskTree((Component("c1", "core", tasks=(Task(f"{module}-t1", "Write it"),)),))
        session = Session(
            f"{module}-20260301-1",
            module,
            now,
            step=Step.ITERATE_THROUGH_TASKS,
            status="paused",
            pause=pause,
            plan=Plan(tree=tree),
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
    with closing(open_limits(Settings(), store.database)) as limits:
        limits.atomically(lambda rows: rows.put_circuit(tripped))
    store.database.close()


def test_a_decision_reaches_the_project_on_whose_page_it_was_made(
    make_project: MakeProject, browser: Browser
) -> None:
    first, second = make_project(name="first"), make_project(name="second")
    for project in (first, second):
        project.specify()
    both = (str(first.root), str(second.root))
    with serving(first, *both) as server, visiting(browser, server) as person:
        for name in ("first", "second"):
            expect(person.page.get_by_role("region", name=f"Modules of {name}")).to_contain_text("calc")
            expect(person.page.get_by_role("region", name=f"Limits and spend of {name}")).to_be_visible()
        expect(person.page.locator("main")).to_contain_text("2 projects spent $0.00 today.")
        person.go("modules/calc?project=second")
        expect(person.page).to_have_title("(1) calc · second · lopen")
        person.press("Read and approve")
        person.press("Only approve")
        expect(person.page.get_by_role("heading", level=1)).to_contain_text("approved")
    states = [p.lopen("status", "--json").named("status")[0]["modules"][0]["state"] for p in (first, second)]
    assert states == ["specified", "approved"]
