"""What the meter makes of money: a run's limit, a session's for what is called from outside, models without a price."""

from __future__ import annotations

import pytest

from lopen.core.events import AlertRaised, Notice
from lopen.limits import admin_actions
from lopen.limits.call_gate import ToolPass
from lopen.limits.circuits import CallDecision
from lopen.limits.meter import BudgetReached, Meter
from lopen.limits.store import LimitsStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from tests.fakes import FakeClock
from tests.limits.conftest import MakeMeter, spend

ONE_DOLLAR = Settings.model_validate({"budget": {"max_cost_usd": 1.0}})


def test_the_cost_limit_of_a_run_stops_it(store: LimitsStore, clock: FakeClock) -> None:
    meter = Meter(store, ONE_DOLLAR, clock)
    meter.open("s1", "m")
    spend(meter, 100, 0.7)
    spend(meter, 100, 0.4, "oracle")
    with pytest.raises(BudgetReached, match=r"\$1\.10 of the \$1\.00") as raised:
        meter.reserve(1, 100)
    assert raised.value.command == "lopen resume s1 --max-cost 1.65"


def test_the_cost_limit_shortens_an_answer_to_what_it_pays_for(store: LimitsStore, clock: FakeClock) -> None:
    def quote(answer: int) -> float:
        return 0.10 + answer / 10_000

    meter = Meter(store, ONE_DOLLAR, clock)
    meter.open("s1", "m")
    assert meter.reserve(1, 9_000, "", quote).max_tokens == 9_000
    assert meter.reserve(1, 16_000, "", quote).max_tokens == 9_000
    spend(meter, 100, 0.6)
    assert meter.reserve(1, 16_000, "", quote).max_tokens == 3_000
    spend(meter, 100, 0.2)
    with pytest.raises(
        BudgetReached, match=r"\$0\.80 of the \$1\.00 it may, and another .* \$0\.40"
    ) as raised:
        meter.reserve(1, 16_000, "", quote)
    assert (
        raised.value.command == "lopen resume s1 --max-cost 1.2"
    )  # the least for a request as the ones before
    assert meter.reserve(1, 16_000).max_tokens == 16_000  # without a known price


def test_what_a_crash_left_unsettled_has_its_cost_too(make_meter: MakeMeter) -> None:
    meter = make_meter()
    grant = meter.reserve(1_000, 2_000, "oracle", lambda answer: answer / 1_000)
    meter.streamed(grant, Usage(1_000, 500), 2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lopen.limits.meter.is_gone", lambda owner: True)
        told = meter.recover("s1")
    assert meter.cost() == pytest.approx(2.0)
    assert [e.alert_type for e in told if isinstance(e, AlertRaised)] == ["warning_threshold"]


def test_external_calls_warn_at_one_dollar_and_block_at_five_until_acknowledged(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter()
    assert spend(meter, 10, 4.0) == []  # the session's own work does not count here
    assert spend(meter, 10, 0.6, "oracle") == []
    assert spend(meter, 10, 0.6, "research") == ["warning_threshold"]
    assert spend(meter, 10, 3.0, "research") == []
    assert isinstance(meter.gate.external_call(1), ToolPass)
    spend(meter, 10, 1.0, "oracle")
    stopped = meter.gate.external_call(2)
    assert isinstance(stopped, CallDecision)
    assert stopped.command == "lopen circuit ack session:s1"
    admin_actions.acknowledge_circuit(store, "session:s1", clock.now())
    assert isinstance(meter.gate.external_call(3), ToolPass)


def test_a_limit_on_cost_that_does_not_hold_for_a_model_is_said_once(
    store: LimitsStore, clock: FakeClock
) -> None:
    other = Meter(store, Settings(), clock)
    other.open("s2", "m", "t1")
    assert other.reserve(10, 2_000, "builder").events == ()
    [said] = other.reserve(10, 2_000, "oracle").events
    assert isinstance(said, Notice)
    assert other.reserve(10, 2_000, "oracle").events == ()
    assert "resources.cost_block_usd ($5.00)" in said.message
