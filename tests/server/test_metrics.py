"""The metrics: they add up to what the commands say, and Prometheus's own linter finds nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

from lopen.models.messages import Usage
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.needs import lacking
from tests.project import build, code, plan, verified
from tests.ran import HERE
from tests.server.serving import Server, serving

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def samples(server: Server) -> dict[tuple[str, str], float]:
    """Name and labels → value."""
    found = (SAMPLE.match(line) for line in server.client.get("/metrics").text.splitlines())
    return {(m[1], m[2] or ""): float(m[3]) for m in found if m}


def added(values: dict[tuple[str, str], float], name: str, *labels: str) -> float:
    return sum(v for (n, given), v in values.items() if n == name and all(x in given for x in labels))


def test_the_metrics_add_up_and_pass_the_linter(make_project: MakeProject) -> None:
    if shutil.which("promtool") is None:
        lacking("promtool")
    usage = Usage(1_000, 200, cache_read_tokens=5_000, cache_write_tokens=300)
    writing = tools(*code(), *verified("calc-t1"), usage=usage)
    project = make_project([plan(tasks=("One", "Two")), writing, build("calc-t2", "two")])
    project.specify()
    with serving(project) as server:
        before = server.client.get("/metrics")
        assert before.headers["content-type"].startswith("text/plain; version=")
        ran = project.drive()
        assert ran.code == 0, ran.err
        text = server.client.get("/metrics").text
        values = samples(server)
        assert samples(server) == values  # nothing is counted twice
        linted = subprocess.run(
            ["promtool", "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")
        budgets = {b["budget_id"]: b for b in server.get("/api/budget")["budgets"]}
        session = project.status()["session"]
        shown, told = budgets[f"session:{session}"], project.lopen("status", session, "-v").out
        whole = added(values, "lopen_tokens_used_total", 'budget_type="session"') - added(
            values, "lopen_tokens_used_total", 'budget_type="session"', 'token_type="cache_read"'
        )
        cached = added(values, "lopen_tokens_used_total", 'budget_type="session"', 'token_type="cache_read"')
        turns = len(ran.named("turn_ended"))  # of each the cache reads are rounded
        assert abs(whole + cached * 0.1 - shown["tokens_used"]) <= turns / 2
        assert round(added(values, "lopen_cost_usd_total"), 6) == shown["cost_usd"]
        said = f"{shown['tokens_used']:,}/{shown['max_tokens']:,}"
        assert re.search(rf"^session:{session} .* {said} .* \${shown['cost_usd']:.2f}$", told, re.M), told
        ended = ran.named("tool_ended")
        assert added(values, "lopen_tool_iterations_total") == len(ended)
        assert added(values, "lopen_tool_duration_seconds_count") == len(ended)
        assert added(values, "lopen_turn_duration_seconds_count") == turns
        verifications = ran.named("verification_ran")
        assert added(values, "lopen_verification_duration_seconds_count") == len(verifications)
        assert added(values, "lopen_circuit_state") == 0
        known = set(re.findall(r"^# TYPE (\w+)", text, re.M))
        assert {
            "lopen_budget_alerts_total",
            "lopen_budget_pauses_total",
            "lopen_circuit_trips_total",
        } <= known
        dashboard = (HERE / "docs" / "serving" / "grafana-dashboard.json").read_text("utf-8")
        shown = {t["expr"] for p in json.loads(dashboard)["panels"] for t in p["targets"]}
        assert {name.removesuffix("_bucket") for e in shown for name in re.findall(r"lopen_\w+", e)} == known


def test_alerts_pauses_and_trips_are_counted(make_project: MakeProject) -> None:
    same = [tools(("read_file", {"path": "README.md"}))] * 8
    project = make_project(
        [plan(), *same], LOPEN_CIRCUIT__DUPLICATE_CALL__THRESHOLD="3", LOPEN_BUDGET__TASK_TOKENS="0"
    )
    project.specify()
    assert project.drive().code == 3
    with serving(project) as server:
        values = samples(server)
        assert added(values, "lopen_circuit_trips_total", 'trip_reason="duplicate_call"') == 1
        assert added(values, "lopen_circuit_state") == 2
        alerts = server.get("/api/budget/alerts")["alerts"]
        assert added(values, "lopen_budget_alerts_total", 'alert_type="circuit_tripped"') == len(alerts) == 1
