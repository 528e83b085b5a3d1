"""The dashboard in a real browser: hostile text stays text, and a restarted server is found again."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

from playwright.sync_api import Browser, expect

from lopen.core.events import Notice
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.preloaded.started import StartedCommand
from tests.project import TIMEOUT_S, Project, build, code, plan, specification, verified
from tests.server.browser import visiting
from tests.server.held import Held
from tests.server.serving import serving, started

OF_TWO_TASKS = plan(tasks=["Write add", "Document add"])


def ended(process: StartedCommand, code: int) -> None:
    """Wait for a command's end."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, out[-2000:] + err


SCRIPT = "<script>window.ran=1</script><img src=x onerror='window.ran=1'>"
UNSEEN = "\u202e\ufff9\u3164\u180e\u200d"


def test_markup_of_the_model_and_the_repository_stays_text(
    make_project: MakeProject, browser: Browser
) -> None:
    findings = [{"severity": "warning", "message": SCRIPT, "path": "calc.py", "line": 1}]
    criteria = [{"id": "AC-1", "holds": "yes", "evidence": SCRIPT}]
    loud = f'import sys\n\nsys.stdout.write("""{SCRIPT}""")\n'
    calls = [("write_file", {"path": "test_loud.py", "content": loud}), *code(), *verified("calc-t1")]
    project = make_project(
        [plan(tasks=[SCRIPT]), tools(*calls, say=SCRIPT + UNSEEN)],
        oracle=verdict(summary=SCRIPT + UNSEEN, findings=findings, criteria=criteria),
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
        pages = ["modules/calc", "modules/calc/tasks/calc-t1", "modules/calc/specification"]
        for place in (*pages, "modules/calc/events", "modules/calc/diff", "limits", "history", ""):
            person.go(place)
            expect(page.get_by_text(SCRIPT if place in pages else "calc").first).to_be_visible()
            body = page.locator("body").inner_text()
            assert not set(UNSEEN) & set(body)
            assert place == "modules/calc/diff" or "`" not in body
            assert page.locator("main img, main script, a[href^=javascript]").count() == 0
            person.require_accessible()
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
        person.go("modules/calc")
        page = person.page
        happened = page.get_by_role("region", name="What happened")
        expect(happened).to_contain_text("task calc-t1 Write add in")
        first.process.kill()
        expect(page.get_by_role("banner")).to_contain_text("the server does not answer")
        before.let_go()
        after.let_go()
        ended(run, 0)
        with serving(project, "--port", first.url.rpartition(":")[2]):
            expect(happened).to_contain_text("calc is complete")
            expect(page.get_by_role("heading", level=1)).to_contain_text("complete")


def test_rows_keep_their_shape_while_events_come(make_project: MakeProject, browser: Browser) -> None:
    """A thousand events arrive while a build runs; nothing on the page moves, and what a person wrote stays."""
    held = Held(build("calc-t1"))
    project = make_project([plan(), held])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    watch = """() => {
        window.shifts = [];
        new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map((e) => e.value)))
            .observe({ type: "layout-shift", buffered: false });
    }"""
    with serving(project) as server, visiting(browser, server) as person:
        run = project.start("run", "calc")
        assert held.reached.wait(60)
        session = server.get("/api/sessions")["sessions"][0]["session"]
        for place in ("", "modules/calc"):
            person.go(place)
            expect(person.page.locator("#live")).to_have_text("live")
            expect(person.page.locator(".now").last).to_contain_text("Write it: ")
            person.page.evaluate(watch)
            if place:
                person.press("Tell the model")
                person.write("It hears this", "a long thought", exact=False)
            tell_a_thousand(project, session, place)
            expect(person.page.locator("main")).to_contain_text(f"an event of {place}, number 999")
            assert person.page.evaluate("window.shifts") == []
        expect(person.page.locator("textarea").first).to_have_value("a long thought")
        held.let_go()
        ended(run, 0)


def tell_a_thousand(project: Project, session: str, place: str) -> None:
    with closing(SessionStore(Database(project.root / ".lopen" / "state.db")).database) as database:
        store = SessionStore(database)
        for hundred in range(10):
            with database.transaction():
                for n in range(100):
                    event = Notice("info", f"an event of {place}, number {hundred * 100 + n}")
                    store.append_event(session, datetime.now(UTC), event.name, event.body())


def test_an_address_opened_without_the_cookie_is_a_page(make_project: MakeProject, browser: Browser) -> None:
    with serving(make_project()) as server:
        context = browser.new_context()
        page = context.new_page()
        for address in (f"{server.url}/modules/calc", f"{server.url}/open?key=used"):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 401
            expect(page.locator("main")).to_contain_text("lopen serve --link --open")
            assert page.evaluate("getComputedStyle(document.body).maxWidth") != "none"
        context.close()
