"""`lopen report`: what proves each criterion, on the terminal, for a program, and as one file for a reviewer."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.e2e.conftest import MakeProject
from tests.endpoint import verdict
from tests.project import build, plan
from tests.server.serving import serving


def test_a_reviewer_reads_what_proves_each_criterion(make_project: MakeProject, browser: Browser) -> None:
    said = [{"id": "AC-1", "holds": "yes", "evidence": "test_add compares add(1, 2) with 3"}]
    project = make_project([plan(), build("calc-t1")], oracle=verdict(criteria=said))
    project.specify()
    assert "no sessions yet" in project.lopen("report").err
    assert project.drive().code == 0
    commit = project.git("rev-parse", "lopen/calc")
    told = project.lopen("report", "calc").out
    assert "calc: complete, 1 of 1 criteria met" in told
    assert f"built by Write it (calc-t1): {commit[:12]}" in told
    assert "test_add compares add(1, 2) with 3" in told
    with serving(project) as server:
        [found] = project.lopen("report", "calc", "--json").named("report")
        served = server.get("/api/modules/calc/dossier")
        assert served["criteria"] == found["criteria"]
        assert found["criteria"][0]["commits"] == [commit]
        page_of_none = server.client.get("/modules/none", headers={"accept": "text/html"})
        assert (page_of_none.status_code, "no session named none" in page_of_none.text) == (404, True)
        of_another = server.client.get(
            f"/modules/none?session={found['session']}", headers={"accept": "text/html"}
        )
        assert of_another.status_code == 404, "the session is of calc"
    file = project.root / "calc.html"
    assert f"wrote {file}" in project.lopen("report", "calc", "--html", str(file)).out
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    asked: list[str] = []
    page.goto(file.as_uri())
    criteria = page.get_by_role("region", name="Criteria")
    expect(criteria).to_contain_text("test_add compares add(1, 2) with 3")
    expect(criteria).to_contain_text(commit[:8])
    page.locator(".diff summary", has_text="calc.py").first.click()
    expect(page.get_by_role("region", name="Changes of calc.py")).to_contain_text("return a + b")
    assert asked == [file.as_uri()]
    written = page.locator("time").first
    assert written.inner_text() == written.get_attribute("title"), "in a file no time is relative"
    page.close()
    refused = project.lopen("report", "calc", "--html", "/nonexistent/calc.html")
    assert refused.code == 1
    assert "name another file" in refused.err
