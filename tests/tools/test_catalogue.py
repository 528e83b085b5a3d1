"""The catalogue: every tool, its inputs, its steps, in an order that never changes."""

from __future__ import annotations

from typing import Any

from lopen.tools.catalogue import FIXED, Registry, Tool, catalogue
from lopen.workflow.steps import PLANNING_STEPS, Step, number

EVERY, PLANNING, BUILDING = range(1, 8), range(1, 6), [6]

# tool: its inputs (`?` optional) and the numbers of the steps it runs in
TABLE: dict[str, tuple[str, Any]] = {
    "read_file": ("path offset? limit?", EVERY),
    "list_files": ("path? glob?", EVERY),
    "search_files": ("pattern path? glob?", EVERY),
    "write_file": ("path content", BUILDING),
    "edit_file": ("path old_text new_text replace_all?", BUILDING),
    "run_command": ("command timeout_s?", range(1, 7)),
    "read_spec": ("section? module?", EVERY),
    "read_research": ("topic?", EVERY),
    "read_plan": ("", EVERY),
    "get_current_context": ("", EVERY),
    "log_research": ("topic summary findings sources? relevance?", range(1, 7)),
    "research": ("topic question", range(1, 7)),
    "report_progress": ("message", EVERY),
    "ask_user": ("question options? default", PLANNING),
    "write_spec": ("content", [1]),
    "record_dependencies": ("dependencies", [2]),
    "record_components": ("components", [3]),
    "select_component": ("name reason", [4]),
    "record_tasks": ("component tasks", [5]),
    "update_task_status": ("task_id status note?", BUILDING),
    "update_subtask": ("task_id subtask done", BUILDING),
    "add_task": ("component name description reason type?", BUILDING),
    "split_task": ("task_id tasks reason", BUILDING),
    "verify_task_completion": ("task_id note?", BUILDING),
    "verify_component_completion": ("component", BUILDING),
    "verify_module_completion": ("", [4, 6, 7]),
    "verify_build": ("", BUILDING),
    "verify_tests": ("", BUILDING),
    "verify_lint": ("", BUILDING),
}
STANDARD: dict[str, str | None] = {
    "verify-build": "make",
    "verify-tests": "pytest",
    "verify-lint": "ruff check",
}


def tools() -> dict[str, Tool]:
    return {t.name: t for t in catalogue(STANDARD)}


def fields(schema: dict[str, Any]) -> str:
    """The properties of a schema as the table writes them."""
    required = schema.get("required", [])
    return " ".join(f"{name}{'' if name in required else '?'}" for name in schema["properties"])


def test_each_tool_takes_the_inputs_of_the_table_in_its_steps() -> None:
    assert list(tools()) == list(TABLE)
    for name, (inputs, steps) in TABLE.items():
        tool = tools()[name]
        assert fields(dict(tool.spec.input_schema)) == inputs
        assert sorted(number(s) for s in tool.steps) == list(steps)
        assert tool.spec.input_schema["additionalProperties"] is False
        assert tool.description.endswith(".")


def test_the_order_never_changes_and_a_specification_s_own_tools_come_last_and_sorted() -> None:
    own: dict[str, str | None] = {
        "verify-types": "mypy",
        "verify-setup": "pip",
        "verify-commit": "x",
        "verify-api": "y",
    }
    given = own | STANDARD
    assert [t.name for t in catalogue(given)] == [*TABLE, "verify_api", "verify_types"]
    assert [t.name for t in catalogue(dict(reversed(given.items())))] == [
        *TABLE,
        "verify_api",
        "verify_types",
    ]


def test_a_tool_is_not_offered_where_the_specification_has_no_command_for_it() -> None:
    names = [t.name for t in catalogue({"verify-build": None, "verify-tests": "pytest"})]
    assert names == [n for n in TABLE if n not in ("verify_build", "verify_lint")]


def test_the_planning_steps_offer_one_union_and_every_other_step_its_own() -> None:
    registry = Registry(catalogue(STANDARD))
    unions = {tuple(t.name for t in registry.offered(s)) for s in PLANNING_STEPS}
    assert len(unions) == 1
    for step in Step:
        offered = [t.name for t in registry.offered(step)]
        steps = {number(s) for s in (PLANNING_STEPS if step in PLANNING_STEPS else {step})}
        assert offered == [name for name, (_, where) in TABLE.items() if steps & set(where)]


def test_only_tools_that_change_nothing_are_read_only() -> None:
    reading = {t.name for t in FIXED if t.read_only}
    assert reading == {
        "read_file",
        "list_files",
        "search_files",
        "read_spec",
        "read_research",
        "read_plan",
        "get_current_context",
    }
