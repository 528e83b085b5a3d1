"""The registry: whatever a model sends, it gets an answer that says what was wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lopen.models.messages import ToolUse, parse_input
from lopen.models.tool_calls import Input
from lopen.tools.calls import ToolResult, done, failed
from lopen.tools.catalogue import catalogue
from lopen.tools.registry import Registry, Tool
from lopen.workflow.steps import Step

REGISTRY = Registry(catalogue({"verify-tests": "pytest"}))
BUILD = Step.ITERATE_THROUGH_TASKS


def refused(name: str, given: Any, step: Step = BUILD) -> ToolResult:
    """The answer to a call that is not run."""
    result = REGISTRY.parse(ToolUse("call", name, given), step)
    assert isinstance(result, ToolResult)
    assert not result.ok
    return result


def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    result = refused("write_fiel", {})
    assert result.outcome == "refused"
    assert result.fields["error"] == "there is no tool 'write_fiel'"
    assert "write_file" in result.fields["hint"]
    assert "record_tasks" not in result.fields["hint"], "it is not offered in this step"


@pytest.mark.parametrize(
    ("name", "step", "said"),
    [
        (
            "record_tasks",
            Step.DETERMINE_DEPENDENCIES,
            "record_tasks belongs to step 5 (break_into_tasks); this is step 2 (determine_dependencies)",
        ),
        (
            "verify_module_completion",
            Step.DRAFT_SPECIFICATION,
            "verify_module_completion belongs to step 4 (select_next_component), 6 (iterate_through_tasks), "
            "7 (repeat); this is step 1 (draft_specification)",
        ),
    ],
)
def test_a_tool_out_of_its_step_is_an_error_that_names_both(name: str, step: Step, said: str) -> None:
    result = refused(name, {}, step)
    assert (result.outcome, result.fields["error"]) == ("refused", said)


def test_an_input_that_could_not_be_parsed_is_answered_with_why() -> None:
    given_input, why = parse_input('{"path": "a", ')
    assert given_input is None
    result = REGISTRY.parse(ToolUse("call", "read_file", given_input, why), BUILD)
    assert isinstance(result, ToolResult)
    assert str(result.fields["error"]).startswith("the input is not valid JSON: Expecting")
    assert result.fields["hint"] == "send the whole call again"


COMPONENT = {"name": "core", "description": "d"}


@pytest.mark.parametrize(
    ("name", "given", "field"),
    [
        ("read_file", {}, "path: field required"),
        ("read_file", {"path": 3}, "path: input should be a valid string"),
        ("read_file", {"path": "a", "offset": "1"}, "offset: input should be a valid integer"),
        ("read_file", {"path": "a", "offset": True}, "offset: input should be a valid integer"),
        ("read_file", {"path": "a", "offset": 0}, "offset: input should be greater than or equal to 1"),
        ("read_file", {"path": "a", "lines": 3}, "lines: extra inputs are not permitted"),
        ("write_file", {"path": "", "content": "x"}, "path: string should have at least 1 character"),
        ("edit_file", {"path": "a", "old_text": "x", "new_text": "y", "replace_all": "yes"}, "replace_all: "),
        (
            "run_command",
            {"command": "true", "timeout_s": 601},
            "timeout_s: input should be less than or equal to 600",
        ),
        ("search_files", {"pattern": ""}, "pattern: string should have at least 1 character"),
        ("update_task_status", {"task_id": "t", "status": "done"}, "status: input should be 'in_progress'"),
        ("update_subtask", {"task_id": "t", "subtask": 0, "done": True}, "subtask: "),
        (
            "update_subtask",
            {"task_id": "t", "subtask": 1, "done": 1},
            "done: input should be a valid boolean",
        ),
        ("add_task", {"component": "c", "name": "a\nb", "description": "d", "reason": "r"}, "name: "),
        ("add_task", {"component": "c", "name": "x" * 73, "description": "d", "reason": "r"}, "name: "),
        ("verify_tests", {"force": True}, "force: extra inputs are not permitted"),
    ],
)
def test_a_wrong_input_names_its_field(name: str, given: dict[str, Any], field: str) -> None:
    result = refused(name, given)
    assert str(result.fields["error"]).startswith(field)
    assert result.fields["hint"] == "correct the named fields and call again"


@pytest.mark.parametrize(
    ("step", "name", "given", "field"),
    [
        (Step.IDENTIFY_COMPONENTS, "record_components", {"components": []}, "components: "),
        (
            Step.IDENTIFY_COMPONENTS,
            "record_components",
            {"components": [COMPONENT, {**COMPONENT, "state": "finished"}]},
            "components.1.state: ",
        ),
        (
            Step.DETERMINE_DEPENDENCIES,
            "record_dependencies",
            {"dependencies": [{"name": "x", "kind": "library", "reason": "r"}]},
            "dependencies.0.available: field required",
        ),
        (Step.BREAK_INTO_TASKS, "record_tasks", {"component": "c", "tasks": {}}, "tasks: "),
    ],
)
def test_a_wrong_input_inside_a_list_names_its_place(
    step: Step, name: str, given: dict[str, Any], field: str
) -> None:
    assert str(refused(name, given, step).fields["error"]).startswith(field)


def test_of_many_wrong_fields_the_first_are_named() -> None:
    result = refused("edit_file", {"path": 1, "old_text": 2, "new_text": 3})
    assert [part.split(":")[0] for part in str(result.fields["error"]).split("; ")] == [
        "path",
        "old_text",
        "new_text",
    ]


# What a result looks like


def test_a_result_is_one_json_object_and_raw_text_follows_it_on_the_next_line() -> None:
    raw = 'first "line"\nsecond\\n'
    text = done(lines=2, raw=raw).text()
    first, _, rest = text.partition("\n")
    assert json.loads(first) == {"ok": True, "lines": 2}
    assert rest == raw
    assert json.loads(done(output="a\nb\u2028c").text()) == {"ok": True, "output": "a\nb\u2028c"}


def test_a_failure_says_what_and_what_to_do() -> None:
    assert json.loads(failed("no", "do this", missing=["x"]).text()) == {
        "ok": False,
        "error": "no",
        "hint": "do this",
        "missing": ["x"],
    }
    assert json.loads(failed("no").text()) == {"ok": False, "error": "no"}


def test_a_guardrail_s_word_stands_in_the_object() -> None:
    first = ToolResult(True, {"lines": 1}, raw="x", notice="read it less often").text().split("\n")[0]
    assert json.loads(first) == {"ok": True, "lines": 1, "notice": "read it less often"}


def test_a_schema_carries_no_titles_of_pydantic_s_but_keeps_a_field_of_that_name() -> None:
    class Book(Input):
        title: str
        pages: int | None = None

    schema = Tool("book", "d", Book, frozenset(), lambda _, __: done()).spec.input_schema
    assert set(schema["properties"]) == {"title", "pages"}
    assert "title" not in {k for k in schema if k != "properties"}
    assert schema["properties"]["title"] == {"type": "string"}
