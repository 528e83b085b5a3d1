"""The catalogue: the order of its tools, and which are offered."""

from __future__ import annotations

from lopen.tools.catalogue import FIXED, Registry, catalogue
from lopen.workflow.steps import PLANNING_STEPS, Step


def test_the_tools_of_the_specification_come_last_in_an_order_that_never_changes() -> None:
    given: dict[str, str | None] = {
        "verify-types": "mypy",
        "verify-setup": "pip",
        "verify-commit": "x",
        "verify-api": "y",
        "verify-tests": "pytest",
        "verify-build": None,
    }
    fixed = [tool.name for tool in FIXED]
    for commands in (given, dict(reversed(given.items()))):
        names = [tool.name for tool in catalogue(commands)]
        assert names == [*fixed, "verify_tests", "verify_api", "verify_types"]


def test_the_planning_steps_offer_one_union_and_every_other_step_its_own() -> None:
    registry = Registry(FIXED)
    assert len({registry.offered(step) for step in PLANNING_STEPS}) == 1
    recording = {tool for tool in FIXED if tool.steps <= PLANNING_STEPS}
    assert {t.name for t in set(registry.offered(Step.DRAFT_SPECIFICATION)) & recording} == {
        "record_dependencies",
        "record_components",
        "select_component",
        "record_tasks",
    }
    for step in set(Step) - PLANNING_STEPS:
        own = set(registry.offered(step)) - (recording if step is Step.DRAFT_SPECIFICATION else set())
        assert own == {tool for tool in FIXED if step in tool.steps}
