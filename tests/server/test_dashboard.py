"""The dashboard in a real browser: hostile text stays text, and a restarted server is found again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from playwright.sync_api import Browser, expect

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.preloaded.started import StartedCommand
from tests.project import TIMEOUT_S, build, code, plan, specification, verified
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
        shown = {
            "#/": "calc",
            "#/project/m/calc": SCRIPT,
            "#/project/m/calc/t/calc-t1": SCRIPT,
            "#/project/m/calc/gate": SCRIPT,
        }
        for place, text in shown.items():
            person.go(place)
            expect(page.get_by_text(text).first).to_be_visible()
            assert not set(UNSEEN) & set(page.locator("body").inner_text())
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
