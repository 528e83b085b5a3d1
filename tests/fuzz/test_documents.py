"""Specifications and plans: whatever they hold is parsed, and what is wrong with it is said in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lopen.core.errors import LopenError
from lopen.specification.drift import spec_hash
from lopen.specification.modules import UnreadableSource, read_source
from lopen.specification.spec import parse_specification
from tests.fuzz.inputs import bounded, damaged, one_line, pieces, told
from tests.project import specification

WHOLE = specification(extra="\n## Notes\n```sh\n# no heading\n```\n\n<!-- a\n## b\n-->\n\n- x\n  - y\n")
MARKDOWN = pieces(
    *("---\n", "name: x\n", "description: &a [*a]\n", "# x\n", "## Overview\n", "## Acceptance Criteria\n"),
    *(
        "- [ ] [AUTH-01] x\n",
        "- [x] y\n",
        "* [ ]\n",
        "## Skills & Hooks\n",
        "- **verify-tests**: `x`\n",
        "=====\n",
    ),
    *(
        "- **verify-tests**: none\n",
        "```\n",
        "~~~~ x\n",
        "<!--",
        "-->",
        "<div>\n",
        "    ",
        "> ",
        "\r\n",
        "\t- ",
        "1) ",
    ),
)


def looked_at(text: str) -> None:
    spec = parse_specification(text, module="calc", path=Path("specs/calc/SPECIFICATION.md"))
    lines = text.count("\n") + text.count("\r") + 2
    for remark in (*spec.problems, *spec.warnings):
        assert one_line(remark.message), remark
        assert 1 <= remark.line <= lines
    assert spec.problems or (
        spec.criteria and len({c.id.casefold() for c in spec.criteria}) == len(spec.criteria)
    )
    again = parse_specification(text, module="calc", path=spec.path)
    assert spec_hash(spec.outline) == spec_hash(again.outline)
    for address in (s.address for s in spec.outline.sections):
        try:
            spec.outline.full_text(spec.outline.find(address))
        except LopenError as error:
            told(*error.message.split("\n"))


@given(MARKDOWN)
@example("---\n" * 50)
@example("- [ ] " * 500)
@example("> " * 2_000 + "x")
@example("[" * 5_000 + "\n" + "*" * 5_000 + "\n" + "`" * 5_000)
@example("---\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n---\n# x\n")
@bounded(90)
def test_any_markdown_is_a_specification_with_problems_at_worst(text: str) -> None:
    looked_at(text)


@given(damaged([WHOLE.encode()]))
@bounded(90)
def test_a_damaged_specification_is_parsed(data: bytes) -> None:
    looked_at(data.decode("utf-8", "replace"))


@given(st.binary(max_size=300) | damaged([WHOLE.encode()]))
@bounded(60)
def test_any_file_is_read_or_refused_in_a_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "SPECIFICATION.md"
    path.write_bytes(data)
    try:
        assert read_source(path).encode() == data
    except UnreadableSource as error:
        told(error.message)


@pytest.mark.parametrize("sign", ["[", "(", "<", "*", "`", "- ", "> ", "#", "|", "!["])
def test_depth_is_no_way_to_end_the_parser(sign: str) -> None:
    looked_at(f"# x\n\n## Overview\n{sign * 20_000}\n")
