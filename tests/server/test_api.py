"""The API: it says what the commands say, and acts as they do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import TIMEOUT_S, Project, build, plan
from tests.server.held import Held
from tests.server.serving import serving

TASKS = ("One", "Two")


def shown(project: Project, *command: str, event: str) -> list[dict[str, Any]]:
    """The objects that a command prints with `--json`, without time and session."""
    ran = project.lopen(*command, "--json")
    assert ran.code == 0, ran.err
    return [{k: v for k, v in e.items() if k not in ("ts", "event")} for e in ran.named(event)]


def without_session(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in each.items() if k != "session"} for each in objects]


def test_a_person_builds_a_module_through_the_api(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    with serving(project) as server:
        assert server.get("/api/modules")["modules"][0]["state"] == "specified"
        gate = server.get("/api/modules/calc/specification")
        assert [c["id"] for c in gate["criteria"]] == ["AC-1"]
        assert {c["name"]: c["command"] for c in gate["commands"]}["verify-lint"] is None
        refused = server.post("/api/modules/calc/approve", {"spec_hash": "0" * 32}, 409)
        assert "has changed" in refused["detail"]
        assert server.get("/api/modules/calc/specification")["approval"] is None

        approved = server.post("/api/modules/calc/approve", {"spec_hash": gate["spec_hash"], "note": "read"})
        assert approved["spec_hash"] == gate["spec_hash"]
        assert approved["note"] == "read"
        ran = project.lopen("run", "calc")
        assert ran.code == 0, ran.err

        [module] = server.get("/api/modules")["modules"]
        [session] = server.get("/api/sessions")["sessions"]
        assert (module["state"], session["status"]) == ("complete", "complete")
        found = server.get(f"/api/sessions/{session['session']}")
        command = shown(project, "status", session["session"], event="status")[0]
        assert {k: command[k] for k in found.keys() - {"question"}} == {
            k: v for k, v in found.items() if k != "question"
        }
        task = server.get("/api/modules/calc/tasks/calc-t1")
        assert (task["state"], task["verdict"]["passed"]) == ("complete", True)
        assert "+def add(a, b):" in task["diff"]
        assert task["verifications"][-1]["passed"]
        assert task["commit"] == project.git("rev-parse", "lopen/calc")
        budgets = server.get("/api/budget")
        assert budgets["budgets"] == without_session(shown(project, "budget", "show", event="budget"))
        assert budgets["total"] == len(budgets["budgets"]) == 3
        assert server.get("/api/budget?limit=1&offset=1")["budgets"] == budgets["budgets"][1:2]
        circuits = server.get("/api/circuit")["circuits"]
        assert circuits[0].items() <= shown(project, "circuit", "status", event="circuit")[0].items()


def test_budgets_circuits_and_alerts_change_as_by_the_commands(make_project: MakeProject) -> None:
    project = make_project(
        [plan(), build("calc-t1"), build("calc-t1")],
        LOPEN_BUDGET__SESSION_TOKENS="1500",
        LOPEN_MODEL__MAX_TOKENS="1100",
    )
    project.specify()
    assert project.drive().code == 3
    session = project.status()["session"]
    budget, circuit = f"session:{session}", f"session:{session}"
    with serving(project) as server:
        [alert] = server.get(f"/api/budget/alerts?budget_id={budget}&acknowledged=false")["alerts"][:1]
        assert server.post(f"/api/budget/alerts/{alert['alert_id']}/acknowledge")["acknowledged"] is True
        assert alert["alert_id"] not in [
            a["alert_id"] for a in server.get("/api/budget/alerts?acknowledged=false")["alerts"]
        ]
        for wrong in (0, 1_000_001, "5", 1.5):
            body = {"additional_tokens": wrong, "reason": "more"}
            assert server.post(f"/api/budget/{budget}/extend", body, 422)["errors"]
        assert server.get(f"/api/sessions/{session}")["waiting"]["command"].startswith("lopen budget extend")
        assert server.post(f"/api/budget/{budget}/reset")["tokens_used"] == 0
        assert server.get(f"/api/sessions/{session}")["waiting"]["command"] == f"lopen resume {session}"
        before = server.get(f"/api/budget/{budget}")
        body = {"additional_tokens": 500_000, "reason": "it is close"}
        assert (
            server.post(f"/api/budget/{budget}/extend", body)["max_tokens"] == before["max_tokens"] + 500_000
        )
        assert (
            shown(project, "budget", "show", budget, event="incident")[-1]["seen"]
            == "500,000 tokens: it is close"
        )
        for _ in range(9):
            server.post(f"/api/budget/{budget}/extend", {"additional_tokens": 1, "reason": "again"})
        answer = server.client.post(f"/api/budget/{budget}/extend", json=body)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert server.post(f"/api/circuit/{circuit}/acknowledge")["state"] == "closed"
        assert server.post(f"/api/circuit/{circuit}/reset")["iteration_count"] == 0
        for path in ("/api/budget/task:none", "/api/circuit/session:none", "/api/sessions/none-20260101-1"):
            assert server.client.get(path).status_code == 404
        for path in (
            "/api/budget/task:none/reset",
            "/api/circuit/session:none/acknowledge",
            "/api/budget/alerts/a/acknowledge",
        ):
            assert server.post(path, status=404)["hint"]


def test_a_running_session_pauses_and_skips_as_it_is_asked(make_project: MakeProject) -> None:
    """The pause is taken between two turns, the skip between two iterations; the conversation goes on."""
    held = Held(tools(("read_file", {"path": "README.md"})))
    project = make_project([plan(tasks=TASKS), held, build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    with serving(project) as server, project.start("run", "calc", "--json") as run:
        assert held.reached.wait(60)
        session = server.get("/api/sessions")["sessions"][0]["session"]
        assert server.get(f"/api/sessions/{session}")["status"] == "running"
        budgets = server.get("/api/budget")["budgets"]
        assert budgets == without_session(shown(project, "budget", "show", event="budget"))
        assert max(b["reserved"] for b in budgets) > 0  # a request is under way
        asked = server.post("/api/tasks/calc-t2/skip", {"reason": "not needed"})
        assert asked["done"] is False
        told = server.post(f"/api/sessions/{session}/tell", {"text": "no floats"})
        assert (told["done"], told["command"]) == (False, "")
        assert server.post(f"/api/sessions/{session}/pause")["done"] is False
        held.let_go()
        out, err = run.communicate(timeout=60)
        assert run.returncode == 3, err
        assert [json.loads(line)["kind"] for line in out.splitlines() if '"session_paused"' in line] == [
            "person"
        ]
        found = server.get(f"/api/sessions/{session}")
        assert found["waiting"]["command"] == f"lopen resume {session}"
        assert "not running" in server.post(f"/api/sessions/{session}/pause", status=409)["detail"]

        resumed = project.resume()
        assert resumed.code == 3, resumed.err  # a skipped task leaves its component open
        tasks = server.get(f"/api/sessions/{session}")["components"][0]["tasks"]
        assert [t["state"] for t in tasks] == ["complete", "failed"]
    assert len(project.requests) == 3
    assert "The person says: no floats" in json.dumps(project.requests[2]["messages"])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_run_of_the_server_outlives_it_and_starts_once(make_project: MakeProject) -> None:
    held = Held(plan())
    project = make_project([held, build("calc-t1")])
    project.specify()
    with serving(project) as server:
        assert "not approved" in server.post("/api/modules/calc/run", status=409)["detail"]
        assert server.post("/api/modules/none/run", status=404)["hint"]
        assert project.lopen("approve", "calc", "--yes").code == 0
        with ThreadPoolExecutor(4) as persons:
            answers = list(persons.map(lambda _: server.client.post("/api/modules/calc/run"), range(4)))
        assert sorted(a.status_code for a in answers) == [200, 409, 409, 409], [a.text for a in answers]
        assert held.reached.wait(60)
        assert server.get("/api/modules")["modules"][0]["worked_on"] is True
    held.let_go()
    assert project.lopen("attach").code == 0
    assert project.status()["status"] == "complete"
    assert len(project.requests) == 2


def test_questions_and_confirmations_are_answered(make_project: MakeProject) -> None:
    question = tools(("ask_user", {"question": "Which?", "options": ["a", "b"], "default": "a"}))
    project = make_project([question, plan(), build("calc-t1")])
    project.specify()
    assert project.drive().code == 3
    session = project.status()["session"]
    with serving(project) as server:
        assert server.get(f"/api/sessions/{session}")["question"]["options"] == ["a", "b"]
        server.post(f"/api/sessions/{session}/confirm", {"note": ""}, 409)
        server.post(f"/api/sessions/{session}/answer", {"text": " "}, 422)
        assert (
            server.post(f"/api/sessions/{session}/answer", {"text": "b"})["command"]
            == f"lopen resume {session}"
        )
        project.write("lopen/__main__.py", "raise SystemExit('not this one')\n")  # in the server's folder
        project.git("add", "-A")
        project.git("commit", "-q", "-m", "A module of that name")
        assert server.post(f"/api/sessions/{session}/resume")["session"] == session
        until(lambda: server.get(f"/api/sessions/{session}")["status"] == "complete")
        until(lambda: server.get("/api/modules")["modules"][0]["worked_on"] is False)
        assert "is complete" in server.post(f"/api/sessions/{session}/resume", status=409)["detail"]
        assert server.post(f"/api/sessions/{session}/answer", {"text": "c"}, 409)["detail"].endswith(
            "no open question"
        )
    assert "The person answered: b" in json.dumps(project.requests[1])


def test_an_unreachable_store_of_budgets_hides_nothing_else(make_project: MakeProject) -> None:
    project = make_project(LOPEN_BUDGET__STORE="redis://127.0.0.1:1/0")
    project.specify()
    with serving(project) as server:
        assert "sqlite" in server.client.get("/api/budget").json()["hint"]
        assert server.get("/api/modules")["modules"][0]["module"] == "calc"
        assert "# TYPE lopen_tool_iterations_total" in server.client.get("/metrics").text
