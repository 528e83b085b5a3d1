"""What a model sends: tool inputs and verdicts. Each becomes a call, or an error that it can mend."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from lopen.core.shell import simple_commands
from lopen.files.paths import split
from lopen.files.protection import ToolRefused
from lopen.judge.submission import TOOL, UnreadableVerdict, read_verdict
from lopen.models.messages import Response, ToolUse, Usage, parse_input
from lopen.tools.calls import ToolResult
from lopen.tools.catalogue import Registry, catalogue
from lopen.verification.compared_tests import compare_tests, text_questions
from lopen.verification.junit import UnreadableReport, read_report
from lopen.verification.runners import plain, tail
from lopen.verification.test_files import FileChange
from lopen.workflow.steps import Step
from tests.fuzz.inputs import (
    ANY_TEXT,
    JSON_VALUES,
    READABLE,
    as_json,
    bounded,
    damaged,
    one_line,
    pieces,
    told,
)
from tests.judge.samples import EVIDENCE

REGISTRY = Registry(catalogue({"verify-tests": "true", "verify-docs": "true"}))
NAMES = sorted({tool.name for step in Step for tool in REGISTRY.offered(step)})
FIELDS = sorted(
    {field for name in NAMES if (tool := REGISTRY.get(name)) for field in tool.input.model_fields}
)
REPORT = b'<?xml version="1.0"?><testsuites><testsuite><testcase name="a"><failure/></testcase></testsuite></testsuites>'


@given(
    st.sampled_from(NAMES) | ANY_TEXT,
    st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, JSON_VALUES, max_size=6),
    st.sampled_from(list(Step)),
)
@bounded(90)
def test_any_input_is_a_call_or_an_error_for_the_model(name: str, given_: dict[str, Any], step: Step) -> None:
    parsed = REGISTRY.parse(ToolUse("id", name, given_), step)
    if isinstance(parsed, ToolResult):
        assert not parsed.ok
        head = json.loads(parsed.text().split("\n")[0])
        assert head["ok"] is False
        assert head["error"]
        assert len(parsed.text()) < 20_000


@given(JSON_VALUES.map(as_json) | pieces("{", "}", '"', ":", ",", "[", "]", "\\ud800", "1e999", "NaN", "0"))
@example("[" * 100_000)
@example('{"a":' * 50_000)
@example('{"a": ' + "9" * 5_000 + "}")
@example('{"a": 1, "a": 2}')
@bounded(110)
def test_any_json_is_an_object_or_a_line_of_why_not(raw: str) -> None:
    value, why = parse_input(raw)
    assert (value is None) == bool(why)
    assert not why or one_line(why)


@given(JSON_VALUES)
@bounded(90)
def test_any_verdict_is_one_or_is_unreadable(value: Any) -> None:
    block = {"type": "tool_use", "id": "x", "name": TOOL, "input": value}
    use = ToolUse("x", TOOL, value if isinstance(value, dict) else None, "not an object")
    response = Response("id", "m", [block], [use], "tool_use", Usage())
    try:
        verdict = read_verdict(response, EVIDENCE)
    except UnreadableVerdict as error:
        told(str(error))
    else:
        assert verdict.passed in (True, False)


@given(READABLE | pieces("../", "/", ".", "..", "\0", "\ud800", "a" * 300, ".git", "-", "~", "\\"))
@bounded(90)
def test_any_path_is_split_or_refused(path: str) -> None:
    try:
        parts = split(path)
    except ToolRefused as refused:
        told(repr(refused.error))
    else:
        assert not {"..", ".", ""} & set(parts)


@given(
    pieces(
        "$(", ")", "`", "'", '"', "\\", "<<E\n", "E\n", ";", "&&", "|", ">", "${", "}", "rm -rf /", "((", "#"
    )
)
@example("$(" * 5_000)
@example("`" * 5_001)
@example("<<a <<b <<c\n" * 10_000)
@bounded(110)
def test_any_line_of_shell_is_read(line: str) -> None:
    simple_commands(line)


@given(damaged([REPORT, REPORT * 3]) | st.binary(max_size=100))
@example(b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
@example(b"<a>" * 100_000)
@bounded(90)
def test_any_report_is_counted_or_refused(data: bytes) -> None:
    try:
        report = read_report(data)
    except UnreadableReport as error:
        told(str(error))
    else:
        assert set(report.failed) <= {*report.ran, *report.skipped}


DEEP = "[" * 5_000
PATHS = [
    "pyproject.toml",
    "package.json",
    "setup.cfg",
    "tests/test_a.py",
    "conftest.py",
    "a_test.go",
    "Cargo.toml",
]


@given(
    st.sampled_from(PATHS),
    READABLE
    | st.just(DEEP)
    | pieces("def test_a():\n", "    assert ", "[tool.pytest]\n", "x = 1\n", "{", "}", '"""'),
    READABLE | st.sampled_from([f"a = {DEEP}", "a." * 3_000 + "b = 1", f'{{"a": {DEEP}', f"x = {DEEP}"]),
)
@bounded(90)
def test_any_change_of_a_test_s_file_is_looked_over(path: str, before: str, after: str) -> None:
    for question in text_questions(compare_tests([FileChange(path, before, after)])):
        assert question.text


@given(ANY_TEXT)
@bounded(60)
def test_any_output_is_shown_plainly(output: str) -> None:
    assert "\x1b[31m" not in plain(f"{output}\x1b[31m")
    assert len(tail(output, 50)) <= max(len(output), 300)
