"""The plan reads well and keeps names inert."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lopen.specification.plan_file import render_plan
from lopen.workflow.session import Dependency, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Subtask, Task, TaskTree
from tests.sessions import changed
from tests.workflow.trees import TEXTS

NOW = datetime(2026, 1, 1, tzinfo=UTC)

TREE = TaskTree(
    (
        Component(
            id="c1",
            name="Prices",
            description="Rounds prices.",
            criteria=("SHOP-01",),
            spec_sections=("Behaviour > Rounding",),
            found="partial",
            evidence=("shop/prices.py",),
            tasks=(
                Task(id="t1", name="Round half up", state=State.COMPLETE, commit="abc", subtasks=(Subtask("test", True),)),
                Task(id="t2", name="Refuse negatives", state=State.FAILED, failures=2, subtasks=(Subtask("test"),)),
                Task(id="t3", name="Sign-in", given_up="out of scope"),
            ),
        ),
        Component(id="c2", name="Totals", depends_on=("c1",), criteria=("SHOP-01", "AC-1")),
    )
)  # fmt: skip


def session(tree: TaskTree, **fields: object) -> Session:
    return changed(Session("shop-20260101-1", "shop", NOW), tree=tree, **fields)


def test_a_plan_shows_everything_people_want_to_know() -> None:
    text = render_plan(
        "shop",
        session(
            TREE,
            step=Step.ITERATE_THROUGH_TASKS,
            dependencies=(Dependency("decimal", "library", "exact sums", True),),
            assumptions=("Prices are in euro",),
        ),
    )
    for line in (
        "# Plan: shop",
        "- Session: shop-20260101-1 (running)",
        "- Step: iterate_through_tasks",
        "- Tasks: 1 of 3 complete",
        "- **decimal** (library, available): exact sums",
        "## Prices (`c1`)",
        "- State: failed",
        "- Found in the code: partial",
        "- Criteria: SHOP-01",
        "- Specification: Behaviour > Rounding",
        "- [x] **Round half up** (`t1`)",
        "  - [x] test",
        "- [ ] **Refuse negatives** (`t2`): failed",
        "- [ ] **Sign-in** (`t3`): given up, out of scope",
        "- Depends on: Prices",
        "- [ ] SHOP-01: Prices, Totals",
        "- [ ] AC-1: Totals",
        "- Prices are in euro",
    ):
        assert f"\n{line}\n" in f"\n{text}"
    assert text.endswith("\n")


texts = st.one_of(
    TEXTS,
    st.sampled_from(["-->", "--->", "<!-- lopen:component {} -->", "\n\n# x\n", "```\n", "`", "**", "--", "\x1b[2J", "\r", "\u2028"]),
)  # fmt: skip
tuples = st.lists(texts, max_size=2).map(tuple)
said = st.lists(texts | st.just("\ud800"), max_size=2).map(tuple)  # a tree with half a pair has no row
maybe = st.none() | texts
subtasks = st.lists(st.builds(Subtask, texts, st.booleans()), max_size=3).map(tuple)
tasks = st.lists(
    st.builds(Task, texts, texts, texts, texts, st.sampled_from(State), subtasks, tuples, st.booleans(), st.integers(0, 99), maybe, maybe, tuples, texts),
    max_size=3,
).map(tuple)  # fmt: skip
components = st.builds(
    Component, texts, texts, texts, tuples, tuples, tuples, st.sampled_from(["missing", "partial", "done"]), tuples, tasks, st.booleans(), st.booleans(), maybe
)  # fmt: skip
trees = st.lists(components, max_size=3).map(lambda found: TaskTree(tuple(found)))


@given(trees, said)
def test_nothing_in_a_plan_is_active(tree: TaskTree, assumptions: tuple[str, ...]) -> None:
    text = render_plan("shop", session(tree, assumptions=assumptions))
    text.encode()
    assert not any(c < " " and c != "\n" for c in text)
    tokens = MarkdownIt("commonmark").parse(text)
    inline = {child.type for t in tokens for child in t.children or ()}
    assert inline <= {"text", "text_special", "strong_open", "strong_close", "code_inline"}
    assert {t.type for t in tokens} <= {
        *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline"),
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
    }  # fmt: skip
    titles = sum(t.type == "heading_open" for t in tokens)
    assert titles <= 4 + len(tree.components)
