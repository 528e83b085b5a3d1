"""Verify commands: what a line may say, and everything that is refused."""

from __future__ import annotations

import pytest

from tests.specification.specs import changed, problems, read

LINE = "- **verify-tests**: `pytest -q`"


def with_line(line: str) -> str:
    return changed(LINE, line)


def command(line: str, name: str = "verify-tests") -> str | None:
    spec = read(with_line(line))
    assert spec.problems == ()
    found = spec.command(name)
    assert found is not None
    return found.command


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("- **verify-tests**: `pytest -q`", "pytest -q"),
        ("* **verify-tests:** `pytest -q`", "pytest -q"),
        ("1. __verify-tests__ : `pytest -q`  ", "pytest -q"),
        ("- **verify-tests**:\n  `pytest\n  -q`", "pytest -q"),
        ("- **verify-tests**: `` echo `date` ``", "echo `date`"),
        ('- **verify-tests**: `a  &&  b | c > "d" $HOME * \\n`', 'a  &&  b | c > "d" $HOME * \\n'),
        ("- **verify-tests**: none", None),
        ("- **verify-tests**: `none`", None),
    ],
)
def test_a_command_is_taken_from(line: str, text: str | None) -> None:
    assert command(line) == text


def test_a_standard_name_left_out_counts_as_none_with_a_warning() -> None:
    spec = read(with_line(""))
    assert spec.problems == ()
    assert spec.command_lines["verify-tests"] is None
    assert [str(w) for w in spec.warnings] == [
        "specs/shop/SPECIFICATION.md:27: verify-tests is missing, which counts as none"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- Use the typing skill",
        "- **Verify before you commit**: always",
        "- [a link](x): `code`",
        "> - **verify-tests**: `quoted`",
        "```\n- **verify-tests**: `code`\n```",
        "<!-- - **verify-tests**: `comment` -->",
        "\nThe tool `verify-tests` runs the tests.\n",
    ],
)
def test_lines_that_are_no_command_are_left_alone(line: str) -> None:
    assert command(line) is None


SHAPE = "write ``- **verify-tests**: `the command` `` or `- **verify-tests**: none`"
RULE = "use verify-, then lower-case letters, digits and hyphens, at most 64 characters"
REFUSED = [
    ("- verify-tests: `pytest`", f"invalid verify command: {SHAPE}"),
    ("- `verify-tests`: pytest", f"invalid verify command: {SHAPE}"),
    ("- **verify-tests**: pytest", f"invalid command of verify-tests: {SHAPE}"),
    ("- **verify-tests**: `a` (quick)", f"invalid command of verify-tests: {SHAPE}"),
    ("- **verify-tests**: ` `", "the command of verify-tests is empty; write `none` if there is none"),
    ("- **verify-tests**: `a\x1b[2K`", "the command of verify-tests contains invisible characters"),
    ("- **verify-tests**: `a\u202eb`", "the command of verify-tests contains invisible characters"),
    ("- **Verify-Tests**: `a`", f"invalid verify command name 'Verify-Tests': {RULE}"),
    ("- **verify-a b**: `a`", f"invalid verify command name 'verify-a b': {RULE}"),
    (f"- **verify-{'a' * 58}**: `a`", f"invalid verify command name 'verify-{'a' * 58}': {RULE}"),
    (
        "- **verify-task-completion**: `a`",
        "verify-task-completion is reserved for lopen; choose another name",
    ),
    ("- **verify-tests**: `cd it's`", "unclosed quote in the command of verify-tests: cd it's"),
    ("- **verify-build**: `make`", "duplicate verify-build (first on line 30)"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_problems_of_commands(line: str, message: str) -> None:
    assert problems(with_line(line)) == [f"31: {message}"]


def test_a_command_in_a_paragraph_is_refused() -> None:
    assert problems(with_line("\n**verify-tests**: `pytest`\n")) == [
        f"32: a verify command must be a list item: {SHAPE}"
    ]


@pytest.mark.parametrize(
    "line",
    [
        *("echo 'a \"b'", "pytest # don't stop", "echo \\'", "echo $'it\\'s'", 'test "$(echo "it\'s")"'),
        *("cat <<E\nit's\nE".replace("\n", " "), "echo it\\'s"),
    ],
)
def test_quotes_that_a_shell_takes_are_no_problem(line: str) -> None:
    assert problems(with_line(f"- **verify-tests**: `{line}`")) == []
