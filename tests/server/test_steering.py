"""A person follows and steers a real build from the dashboard, to its end, by keyboard alone."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from lopen.models.messages import Usage
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import Project, build, code, plan, specification, verified
from tests.server.browser import WIDE, Visitor, visiting
from tests.server.held import Held
from tests.server.serving import serving

OF_TWO_TASKS = plan(tasks=["Write add", "Document add"])


def test_a_person_follows_and_steers_a_build(make_project: MakeProject, browser: Browser) -> None:
    writing = Held(tools(*code(), usage=Usage(4_000, 160_000)))
    spending = Held(tools(*verified("calc-t1"), usage=Usage(4_000, 40_000)))
    last = Held(build("calc-t2", "more"))
    project = make_project(
        [OF_TWO_TASKS, writing, spending, last, *[build("calc-t2", "more")] * 3],
        LOPEN_BUDGET__SESSION_TOKENS="200000",
        LOPEN_BUDGET__TASK_TOKENS="0",
        LOPEN_BUDGET__BY_TASK_TYPE__IMPLEMENT="0",
    )
    project.specify()
    with serving(project) as server, visiting(browser, server, "keyboard") as person:
        approve(person, project)
        see_the_tasks(person)
        writing.let_go()
        cross_the_threshold(person)
        spending.let_go()
        extend_the_budget(person)
        pause(person)
        refused = server.post("/api/modules/calc/run", status=409)
        assert "is working on module calc" in refused["detail"]
        last.let_go()
        expect(person.page).to_have_title("(1) calc · project · lopen")
        expect(person.page.locator("link[rel=icon]")).to_have_attribute("href", "/static/icon-needs.svg")
        person.press("Go on with calc")
        read_the_task(person)
        assert "is complete" in server.post("/api/modules/calc/run", status=409)["detail"]
        read_what_changed(person, project)
    assert project.status()["status"] == "complete"


def approve(person: Visitor, project: Project) -> None:
    person.press("Read and approve")
    page = person.page
    expect(page.get_by_role("article", name="Specification")).to_contain_text("Nothing is rounded.")
    expect(page.get_by_role("region", name="Acceptance criteria")).to_contain_text("add(1, 2) is 3")
    expect(page.get_by_role("region", name="Commands that lopen will run")).to_contain_text("-m unittest -q")
    expect(page.get_by_role("button", name="Approve and build")).to_be_enabled()
    expect(page.get_by_role("region", name="Approve")).to_contain_text("lopen spec calc -p 'what to change'")
    person.require_accessible()
    page.route(
        "**/specification*", lambda route: route.abort()
    )  # the page does not notice the change by itself
    project.specify(text=specification(criteria=["add(1, 2) is 3", "add is exact"]))
    person.write("Note (optional)", "read on a train")
    person.press("Only approve")
    expect(page.locator("#said")).to_contain_text("the specification has changed")
    page.unroute("**/specification*")
    page.reload()
    expect(page.get_by_role("region", name="Acceptance criteria")).to_contain_text("add is exact")
    project.specify()
    expect(page.get_by_role("alert")).to_contain_text("has changed since you opened this page")
    expect(page.get_by_role("button", name="Approve and build")).to_be_disabled()
    person.press("Read it again")
    expect(page.get_by_role("region", name="Acceptance criteria")).not_to_contain_text("add is exact")
    person.write("Note (optional)", "read on a train")
    person.press("Approve and build")
    expect(page.get_by_role("heading", level=1)).to_contain_text("working")


def see_the_tasks(person: Visitor) -> None:
    page = person.page
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("Write add")
    expect(page.get_by_role("region", name="Criteria")).to_contain_text("Document add")
    person.require_accessible()


def cross_the_threshold(person: Visitor) -> None:
    person.press("lopen")
    page = person.page
    near = page.get_by_role("region", name="Close to a limit")
    expect(near).to_contain_text("warning")
    assert float(near.get_by_role("progressbar").first.get_attribute("aria-valuenow") or 0) >= 80
    expect(page.get_by_role("region", name="Running")).to_contain_text("task 1 of 2")
    person.require_accessible()
    person.press("Limits")
    budgets = page.get_by_role("region", name="Budgets")
    expect(budgets.get_by_role("row").nth(1)).to_contain_text("warning")  # the one near its limit is first
    expect(budgets.get_by_role("button")).to_have_count(0)  # behind what opens them
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("button", name="Notify me")).to_be_visible()
    page.set_viewport_size(WIDE)
    alert = page.get_by_role("button", name="Acknowledge:")
    expect(alert).to_be_visible()
    person.press("Acknowledge:")
    expect(alert).to_have_count(0)


def extend_the_budget(person: Visitor) -> None:
    page = person.page
    person.press("Overview")
    expect(page.get_by_role("heading", name="1 waits for you")).to_be_visible()
    expect(page).to_have_title("(1) calc waits · project · lopen")
    need = page.locator("#need-calc")
    person.press("Extend session:")
    person.write("Additional tokens", "100000", within=need)
    person.write("Reason", "the last task is close", within=need)
    person.press("Extend and go on")
    expect(page.locator("#said")).to_contain_text("calc runs")


def pause(person: Visitor) -> None:
    person.go("modules/calc")
    person.press("Tell the model")
    person.write("It hears this with its next turn", "keep it short", exact=False)
    person.press("Tell it")
    expect(person.page.locator("#said")).to_contain_text("with its next turn")
    person.press("Pause calc")
    expect(person.page.locator("#said")).to_contain_text("stops at its next safe point")


def read_the_task(person: Visitor) -> None:
    page = person.page
    expect(page.get_by_role("heading", level=1)).to_contain_text("complete")
    person.press("Write add")
    expect(page.get_by_text("Write add, with its tests.")).to_be_visible()
    expect(page.get_by_role("region", name="Changes of calc.py")).to_contain_text("return a + b")
    expect(page.locator(".code .k").first).to_have_text("def")
    expect(page.get_by_role("region", name="Output of verify_tests").first).to_contain_text("OK")
    expect(page.get_by_role("region", name="Verdicts")).to_contain_text("All criteria hold.")
    person.require_accessible()


def read_what_changed(person: Visitor, project: Project) -> None:
    """The gate names each changed section and shows the change of the text since the last approval."""
    person.press("← calc")
    person.press("Specification")
    expect(person.page.get_by_text("It is approved and built.")).to_be_visible()
    project.specify(text=specification(criteria=["add(1, 2) is 3", "add is exact"]))
    person.press("Read it again")
    since = person.page.get_by_role("region", name="Since the last approval")
    expect(since).to_contain_text("read on a train")
    expect(since).to_contain_text("changed: Acceptance Criteria")
    change = since.get_by_role("region", name="Changes of specs/calc/SPECIFICATION.md")
    expect(change.locator("tr.added")).to_have_text(["12+- [ ] add is exact"])
    assert "[ ]" not in person.page.get_by_role("article", name="Specification").inner_text()
