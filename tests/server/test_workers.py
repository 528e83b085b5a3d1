"""The queue in the server: the page of workers, and what Prometheus is told of them."""

from __future__ import annotations

import re

from lopen.queue.opening import project_id
from lopen.queue.shared import BuildOrder, SharedQueue
from lopen.server.dashboard.markup import Place
from lopen.server.dashboard.workers import workers_page
from tests.e2e.conftest import MakeProject
from tests.queue.conftest import taken
from tests.server.serving import serving
from tests.server.test_metrics import samples


def test_the_page_and_the_metrics_tell_what_runs_where_and_what_waits(make_project: MakeProject) -> None:
    project = make_project([])
    project.specify()
    project.commit("Specify")
    with serving(project) as server:
        assert "Workers" not in re.findall(r"<a[^>]*>([^<]*)</a>", server.client.get("/limits").text)
        assert samples(server)["lopen_queue_depth", ""] == 0
        (project.root / ".lopen").mkdir(exist_ok=True)
        queue = SharedQueue(f"sqlite:///{project.root / '.lopen' / 'queue.db'}", project_id(project.root))
        for module, after in (("alpha", ()), ("beta", ("alpha",)), ("gamma", ()), ("delta", ())):
            queue.place(BuildOrder(module, "", {}, {}, "", "", after=after), 1)
        fences = {module: taken(queue, module, "host-1") for module in ("alpha", "gamma", "delta")}
        queue.release("gamma", fences["gamma"], "waits", {"reason": "Whole numbers?", "seconds": 70.0})
        queue.release("delta", fences["delta"], "running", {})  # as if its lease had expired
        assert queue.queue(next(iter(queue.placed("delta"))))
        page = server.client.get("/workers").text
        rows = [re.sub(r"<[^>]+>", "|", row) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)]
        told = {
            name: next(r for r in rows if f"|{name}|" in r) for name in ("alpha", "beta", "gamma", "delta")
        }
        assert "host-1" in told["alpha"], told
        assert "holds for" in told["alpha"], told
        assert told["beta"].count("alpha") == 1, told
        assert "Whole numbers?" in told["gamma"], told
        assert "lopen queue retry gamma" in told["gamma"], told
        assert "a worker" in told["delta"], told
        for _ in range(2):  # nothing is counted twice
            values = samples(server)
            assert values["lopen_queue_depth", ""] == 2
            assert values["lopen_workers", ""] == 1
            assert values["lopen_lease_expired_total", ""] == 1
            assert values["lopen_build_seconds_sum", 'result="waits"'] == 70
        assert "Workers" in re.findall(r"<a[^>]*>([^<]*)</a>", server.client.get("/limits").text)
        queue.close()
    away = workers_page(Place("project"), [], "the queue's database is away", 0)
    assert "No worker builds anything" not in away, "nobody knows"
