"""Templates: a missing, malformed or outdated one fails at once, by its name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lopen.prompts
from lopen.prompts.templates import VERSIONS, TemplateError, check_templates, template

BUNDLED = Path(lopen.prompts.__file__).parent / "templates"


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
    path.write_text("<!-- lopen-template role v1 -->\nYou are terse.\n", "utf-8")
    check_templates(str(folder))
    assert template("role", str(folder)) == "You are terse."


@pytest.mark.parametrize("name", VERSIONS)
def test_a_missing_one_is_named_before_any_work(folder: Path, name: str) -> None:
    (folder / f"{name}.md").unlink()
    with pytest.raises(TemplateError, match=f"prompt template {name} cannot be read") as failed:
        check_templates(str(folder))
    assert "workflow.templates" in failed.value.hint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!-- lopen-template role v0 -->\nOld.\n", "prompt template role is version 0, this lopen wants 1"),
        (b"<!-- lopen-template role v2 -->\nNew.\n", "prompt template role is version 2, this lopen wants 1"),
        (b"You are terse.\n", "prompt template role has no header `<!-- lopen-template role vN -->`"),
        (b"<!-- lopen-template constraints v1 -->\nx\n", "prompt template role has no header"),
        (b"\n<!-- lopen-template role v1 -->\nx\n", "prompt template role has no header"),
        (b"<!-- lopen-template role v1 -->\n\xff\xfe", "prompt template role cannot be read"),
    ],
)
def test_an_outdated_or_malformed_one_is_named(folder: Path, content: bytes, said: str) -> None:
    (folder / "role.md").write_bytes(content)
    with pytest.raises(TemplateError) as failed:
        check_templates(str(folder))
    assert said in failed.value.message
