"""The registry: whatever a model sends, it gets an answer that says what was wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lopen.models.messages import ToolUse, parse_input
from lopen.tools.calls import ToolResult, done
from lopen.tools.catalogue import Registry, catalogue
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


def test_an_input_that_could_not_be_parsed_is_answered_with_why() -> None:
    given_input, why = parse_input('{"path": "a", ')
    assert given_input is None
    result = REGISTRY.parse(ToolUse("call", "read_file", given_input, why), BUILD)
    assert isinstance(result, ToolResult)
    assert str(result.fields["error"]).startswith("the input is not valid JSON: Expecting")
    assert result.fields["hint"] == "send the whole call again"


def test_a_tool_out_of_its_step_is_an_error_that_names_both() -> None:
    result = refused("record_tasks", {}, Step.DETERMINE_DEPENDENCIES)
    assert (result.outcome, result.fields["error"]) == (
        "refused",
        "record_tasks belongs to step 5 (break_into_tasks); this is step 2 (determine_dependencies)",
    )


@pytest.mark.parametrize(
    ("name", "given", "field"),
    [
        ("read_file", {}, "path: field required"),
        ("read_file", {"path": "a", "offset": "1"}, "offset: input should be a valid integer"),
        ("read_file", {"path": "a", "lines": 3}, "lines: extra inputs are not permitted"),
        ("update_task_status", {"task_id": "t", "status": "done"}, "status: input should be 'in_progress'"),
        ("add_task", {"component": "c", "name": "a\nb", "description": "d", "reason": "r"}, "name: "),
        (
            "split_task",
            {"task_id": "t", "reason": "r", "tasks": [{"name": "a"}] * 2},
            "tasks.0.description: ",
        ),
    ],
)
def test_a_wrong_input_names_its_field(name: str, given: dict[str, Any], field: str) -> None:
    result = refused(name, given)
    assert str(result.fields["error"]).startswith(field)
    assert result.fields["hint"] == "correct the named fields and call again"


# What a result looks like


def test_a_result_is_one_json_object_and_raw_text_follows_it_on_the_next_line() -> None:
    raw = 'first "line"\nsecond\\n'
    text = done(lines=2, raw=raw).text()
    first, _, rest = text.partition("\n")
    assert json.loads(first) == {"ok": True, "lines": 2}
    assert rest == raw
    assert json.loads(done(output="a\nb\u2028c").text()) == {"ok": True, "output": "a\nb\u2028c"}
