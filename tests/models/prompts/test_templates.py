"""Templates and the prompts that they give."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import lopen.models.prompts
from lopen.models.prompts.parts import Part
from lopen.models.prompts.prompt import Prompt, TaskFiles
from lopen.models.prompts.templates import VERSIONS, TemplateError, check_templates, template
from lopen.workflow.steps import Step
from tests.models.prompts.examples import around, planned, prompt
from tests.workflow.examples import APPROVAL, session

BUNDLED = Path(lopen.models.prompts.__file__).parent / "templates"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A person's own templates, as good as the bundled ones."""
    return Path(shutil.copytree(BUNDLED, tmp_path / "templates"))


def test_the_bundle_is_whole_and_holds_nothing_else() -> None:
    check_templates()
    assert {p.stem for p in BUNDLED.glob("*.md")} == set(VERSIONS)
    for name in VERSIONS:
        assert "lopen-template" not in template(name)


def test_a_folder_of_one_s_own_replaces_the_bundle(folder: Path) -> None:
    path = folder / "role.md"
    path.write_text("<!-- lopen-template role v2 -->\nYou are terse.\n", "utf-8")
    check_templates(str(folder))
    assert template("role", str(folder)) == "You are terse."


def test_a_missing_one_is_named_before_any_work(folder: Path) -> None:
    (folder / "research.md").unlink()
    with pytest.raises(TemplateError, match="prompt template research cannot be read") as failed:
        check_templates(str(folder))
    assert "workflow.templates" in failed.value.hint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!-- lopen-template role v0 -->\nOld.\n", "prompt template role is version 0, this lopen wants 2"),
        (b"You are terse.\n", "prompt template role has no header `<!-- lopen-template role vN -->`"),
        (b"<!-- lopen-template role v2 -->\n\xff\xfe", "prompt template role cannot be read"),
    ],
)
def test_an_outdated_or_malformed_one_is_named(folder: Path, content: bytes, said: str) -> None:
    (folder / "role.md").write_bytes(content)
    with pytest.raises(TemplateError) as failed:
        check_templates(str(folder))
    assert said in failed.value.message


FOLDER = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("UPDATE_SNAPSHOTS") == "1"


def interrupted() -> Prompt:
    """Step 6 after a crash in the second attempt at a task, with all that may be told."""
    work = planned().tree.components[0].tasks
    again = replace(work[0], failures=1, reasons=("two tests failed",))
    return prompt(
        planned(
            again,
            work[1],
            corrections=("The file calc.py was read 3 times unchanged.",),
            notes=("The last run was interrupted.",),
            answers=(("Is 1/3 rounded?", "no"),),
            refused=("calc-t1", "verify_tests: exit code 1\n2 failed"),
        ),
        surroundings=around(
            conventions=(("AGENTS.md", "Use tabs.\n"),),
            research=(("rounding", "IEEE 754 rounds half to even."),),
            task_files=TaskFiles((Part("File: calc.py", "def add(a, b):\n    pass\n", 4, data=True),)),
            warnings=("calc.py:1: add has no docstring",),
            work_in_progress="diff --git a/calc.py b/calc.py\n+def add(a, b):\n",
        ),
        request="Mind the docstrings.",
    )


CASES: dict[str, Callable[[], Prompt]] = {
    "draft_specification_refined": lambda: prompt(session(), request="Say what divide(1, 0) does."),
    "identify_components": lambda: prompt(session(step=Step.IDENTIFY_COMPONENTS, approval=APPROVAL)),
    "iterate_through_tasks_interrupted": interrupted,
}


def written(wanted: Prompt) -> str:
    """A prompt as its snapshot."""
    blocks = [
        f"<!-- system block {n}{', cached' if block.cached else ''} -->\n{block.text}"
        for n, block in enumerate(wanted.system, 1)
    ]
    return "\n\n".join([*blocks, f"<!-- the first message -->\n{wanted.opening}"]) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_the_prompt_is_the_recorded_one(name: str) -> None:
    path, text = FOLDER / f"{name}.md", written(CASES[name]())
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), "UPDATE_SNAPSHOTS=1 records it anew"
