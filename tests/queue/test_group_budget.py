"""The budget of builds that were ordered together: exact on several machines, each with a state of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from lopen.limits.meter import BudgetReached, Grant, Meter
from lopen.models.messages import Usage
from lopen.queue.group_budget import GroupStore
from lopen.queue.shared import BuildOrder, DatabaseAway, Fenced, SharedQueue
from lopen.settings.schema import Settings
from lopen.store.database import Database
from tests.fakes import FakeClock
from tests.limits.redis_server import RedisServer
from tests.limits.test_group import ONE_DOLLAR, quote
from tests.project import TIMEOUT_S
from tests.queue.conftest import Machine, MakeProject, kill, taken, with_remote
from tests.queue.test_workers import Held, expire_leases

Begin = Callable[..., Meter]


@pytest.fixture(params=["postgres", "sqlite"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedQueue]:
    on_postgres = request.param == "postgres"
    url = request.getfixturevalue("database") if on_postgres else f"sqlite:///{tmp_path / 'queue.db'}"
    queue = SharedQueue(url, "project")
    for module in ("alpha", "beta"):
        queue.place(BuildOrder(module, "", {}, {}, "", "", options={"group": "together"}), 1)
    yield queue
    queue.close()


@pytest.fixture
def begin(queue: SharedQueue, tmp_path: Path) -> Begin:
    """Take a module's lease on a machine of its own, and open its budgets."""

    def begin(module: str, machine: str, settings: Settings = ONE_DOLLAR) -> Meter:
        fence = taken(queue, module, machine)
        store = GroupStore(Database(tmp_path / f"{machine}.db"), queue, "together", module, fence)
        meter = Meter(store, settings, FakeClock(), group="together")
        meter.open(f"{module}-1", module)
        meter.recover(f"{module}-1")
        return meter

    return begin


def group(meter: Meter) -> Any:
    return next(state for state in meter.states() if state.budget_type == "group")


def test_money_that_one_machine_was_promised_no_other_gets(begin: Begin) -> None:
    one, two = begin("alpha", "one"), begin("beta", "two")
    granted = one.reserve(1, 6_000, "", quote)
    assert granted.max_tokens == 6_000
    small = two.reserve(1, 6_000, "", quote)
    assert small.max_tokens == 2_000, "of 30 cents"
    one.settle(granted, Usage(100, 100), 0.5)
    two.settle(small, Usage(100, 100), 0.2)
    assert (group(one).cost_usd, group(two).cost_usd, group(two).reserved_usd) == (0.7, 0.7, 0.0)
    assert (one.cost(), two.cost()) == (0.5, 0.2)


def test_a_request_waits_for_what_another_machine_leaves_of_its_promise(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = begin("alpha", "one"), begin("beta", "two")
    granted = one.reserve(1, 8_000, "", quote)
    monkeypatch.setattr(FakeClock, "sleep", lambda *_: one.settle(granted, Usage(100, 100), 0.2))
    assert two.reserve(1, 4_000, "", quote).max_tokens == 4_000


def test_a_fenced_build_charges_nothing_and_its_successor_charges_what_was_cut_off(
    queue: SharedQueue, begin: Begin
) -> None:
    one = begin("alpha", "one")
    cut_off = one.reserve(1, 6_000, "", quote)
    [placed] = queue.placed("alpha")
    queue.release("alpha", placed.fence, "waiting", {})  # as if the lease had expired
    three = begin("alpha", "three")
    assert (group(three).cost_usd, group(three).reserved_usd) == (0.1, 0.0), "the input was sent"
    with pytest.raises(Fenced):
        one.settle(cut_off, Usage(100, 100), 0.5)
    with pytest.raises(Fenced):
        one.reserve(1, 6_000, "", quote)
    assert group(three).cost_usd == 0.1


def test_a_commit_whose_answer_is_lost_counts_once(
    queue: SharedQueue, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = begin("alpha", "one")
    spending, left = queue.spending, ["reserve", "settle"]

    @contextmanager
    def cut(*held: Any) -> Iterator[Any]:
        with spending(*held) as run:
            yield run
        if left and left.pop():
            raise DatabaseAway("the connection is gone")

    def cut_off_once(act: Callable[[], Any]) -> Any:
        left[:] = ["once"]
        return act()

    monkeypatch.setattr(queue, "spending", cut)
    monkeypatch.setattr("lopen.queue.shared.RETRY_S", 0.0)
    left.clear()
    granted: Grant = cut_off_once(lambda: one.reserve(1, 1_000, "", quote))
    cut_off_once(lambda: one.settle(granted, Usage(100, 100), 0.5))
    assert (group(one).cost_usd, group(one).reserved_usd, group(one).requests_used) == (0.5, 0.0, 1)


def test_what_all_have_spent_stops_each_and_the_highest_limit_holds(begin: Begin) -> None:
    one, two = begin("alpha", "one"), begin("beta", "two")
    one.settle(one.reserve(1, 1_000, "", quote), Usage(100, 100), 0.95)
    with pytest.raises(BudgetReached, match=r"have cost \$0\.95 of the \$1\.00 they may"):
        two.reserve(1, 1_000, "", quote)


def test_orders_share_one_limit_and_a_person_raises_it_for_all(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    project = make_project("alpha", "beta")
    with_remote(project)
    machines = [Machine(project, tmp_path / name, database) for name in ("one", "two")]
    for machine in machines:
        machine.project.git("reset", "-q", "--hard", project.git("rev-parse", "HEAD"))
    person = machines[0].project
    assert person.lopen("approve", "alpha", "beta", "--yes").code == 0
    assert person.lopen("queue", "add", "alpha", "beta", "--max-cost", "0.035").code == 0
    for machine in machines:  # one after the other: which build waits does not depend on chance
        assert machine.worker("--until-idle", "--jobs", "1").wait(TIMEOUT_S) == 0, machine.output
    orders = {o["module"]: o for o in person.lopen("queue", "list", "--json").named("order")}
    waiting = [o for o in orders.values() if o["state"] == "waits"]
    assert waiting, [(o.get("reason"), o.get("cost_usd")) for o in orders.values()]
    command = waiting[-1]["command"]
    assert command.startswith("lopen queue add "), waiting
    assert sum(o["cost_usd"] for o in orders.values()) <= 0.035, orders
    assert person.lopen(*command.split()[1:-1], "9").code == 0
    assert machines[1].worker("--until-idle").wait(TIMEOUT_S) == 0, machines[1].output
    orders = {o["module"]: o for o in person.lopen("queue", "list", "--json").named("order")}
    assert {o["state"] for o in orders.values()} == {"complete"}, machines[1].output


def test_redis_counts_for_all_machines_exactly_also_over_a_kill_and_an_extension(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held = Held("alpha")
    project = make_project("alpha", "beta", alpha=held)
    with_remote(project)
    server = RedisServer(tmp_path)
    machines = [Machine(project, tmp_path / name, database) for name in ("one", "two")]
    for machine in machines:
        machine.project.variables["LOPEN_BUDGET__STORE"] = server.url
        machine.project.git("reset", "-q", "--hard", project.git("rev-parse", "HEAD"))
    one, two = machines
    assert one.project.lopen("approve", "alpha", "beta", "--yes").code == 0
    assert one.project.lopen("queue", "add", "alpha", "beta", "--max-cost", "9").code == 0
    first = one.worker("--jobs", "2")
    assert held.asked.wait(TIMEOUT_S), one.output
    kill(first)
    held.go_on.set()
    with closing(redis.Redis.from_url(server.url, decode_responses=True)) as client:
        [key] = client.keys("*:budget:state:group:*")
        budget_id = json.loads(str(client.hget(key, "budget_id")))
        extended = one.project.lopen("budget", "extend", budget_id, "5000", "--reason", "more to do")
        assert (extended.code, client.hget(key, "extended")) == (0, "5000"), extended.err
    expire_leases(database)
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    orders = one.project.lopen("queue", "list", "--json").named("order")
    assert {o["state"] for o in orders} == {"complete"}, orders
    assert project.endpoint is not None
    sent = len(project.endpoint.routed_requests) + len(project.endpoint.oracle_requests)
    with closing(redis.Redis.from_url(server.url, decode_responses=True)) as client:
        group = client.hgetall(key)
        sessions = [client.hgetall(key) for key in client.keys("*:budget:state:session:*")]
        assert (group["requests_used"], group["reserved"]) == (str(sent), "0"), (group, sent)
        assert sum(float(own["cost_usd"]) for own in sessions) == pytest.approx(float(group["cost_usd"]))
    server.stop()
