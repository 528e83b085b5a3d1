"""The pages: every link leads somewhere, and the tables list what the code has."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from lopen.claude_hooks.answers import EVENTS
from lopen.cli.app import COMMANDS
from lopen.core.errors import ExitCode
from lopen.guardrails.pipeline import GUARDRAILS
from lopen.limits.circuits import RULES
from lopen.sandbox.choice import Mode
from lopen.tools.catalogue import FIXED
from lopen.workflow.next_step import TRANSITIONS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
MENTION = re.compile(r"docs/reference/[a-z-]+\.md")


def page(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8")


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_heading_that_exists(path: Path) -> None:
    for target, anchor in LINK.findall(path.read_text("utf-8")):
        there = (path.parent / target).resolve() if target else path
        assert there.is_file(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_the_index_names_every_page() -> None:
    for path in REFERENCE:
        assert path.stem == "index" or f"({path.name})" in page("index")


def test_the_page_of_the_architecture_names_what_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = text[text.index("## Where things are decided") : text.index("## Rooms")]
    named = re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`(?: \((`[^)]*)\))?", table)
    assert len(named) > 40
    for place, names in named:
        path = ROOT / "lopen" / place
        assert path.exists(), place
        tree = ast.parse(path.read_text("utf-8") if path.is_file() else "")
        at_top = {getattr(node, "name", "") for node in tree.body}
        at_top |= {ast.unparse(node.target) for node in tree.body if isinstance(node, ast.AnnAssign)}
        at_top |= {ast.unparse(t) for node in tree.body if isinstance(node, ast.Assign) for t in node.targets}
        for name in re.findall(r"`(\w+)`", names):
            assert name in at_top, f"{place} has no {name}"


def test_every_page_that_the_repository_mentions_exists() -> None:
    mentioned: set[str] = set()
    for folder in ("lopen", "tests", "bench", "scripts", "specs", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".sql", ".md"):
                mentioned |= set(MENTION.findall(path.read_text("utf-8")))
    assert mentioned
    assert [m for m in sorted(mentioned) if not (ROOT / m).is_file()] == []


def test_the_page_of_the_tools_lists_each_with_its_fields() -> None:
    rows = {name: row for row, name in re.findall(r"^(\| `(\w+)` .*)$", page("tools"), re.MULTILINE)}
    for tool in FIXED:
        assert tool.name in rows
        for field in tool.input.model_fields:
            assert re.search(rf"\b{field}\b", rows[tool.name]), (tool.name, field)


def test_the_page_of_the_workflow_has_every_transition() -> None:
    for row in TRANSITIONS:
        assert re.search(rf"`{row.source.value}` \|.*`{row.trigger.value}` → ", page("workflow"))


def test_the_page_of_the_guardrails_has_them_in_order() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| \w+ \| (yes|no) \|", page("guardrails"), re.MULTILINE)
    assert rows == [(str(g.order), g.name, "yes" if g.short_circuit else "no") for g in GUARDRAILS]


def test_the_page_of_the_circuits_has_every_rule_with_its_threshold() -> None:
    for rule in RULES:
        more = "more than " if rule.over else ""
        assert re.search(
            rf"^\| `{rule.name}` \| {more}{rule.threshold}\b", page("budgets-and-circuits"), re.MULTILINE
        )


def test_the_pages_of_the_command_line_and_the_hooks_name_all_there_is() -> None:
    for entry in COMMANDS.values():
        assert f"`lopen {entry.name}" in page("command-line"), entry.name
    for event in EVENTS:
        assert f"| `{event}` |" in page("claude-code-hooks")
    for code in (found for found in vars(ExitCode).values() if isinstance(found, ExitCode)):
        assert f"| {int(code)} |" in page("exit-codes")
    for mode in get_args(Mode):
        assert f"| `{mode}` |" in page("sandbox")
