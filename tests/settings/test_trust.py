"""Confirmations are kept outside the repository and hold for exactly what was confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.settings.trust import confirm, is_confirmed, trust_file


def test_a_confirmation_holds_for_that_project_key_and_value_alone(project: Path, tmp_path: Path) -> None:
    confirm(project, "models.building", "m")
    assert is_confirmed(project, "models.building", "m")
    assert not is_confirmed(project, "models.building", "n")
    assert not is_confirmed(project, "models.planning", "m")
    assert not is_confirmed(tmp_path, "models.building", "m")


def test_a_project_reached_through_a_link_is_the_same_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    confirm(tmp_path / "link", "models.fallback", ["a", "b"])
    assert is_confirmed(project, "models.fallback", ["a", "b"])


def test_the_file_is_the_person_s_alone(project: Path) -> None:
    confirm(project, "models.building", "m")
    assert trust_file().stat().st_mode & 0o777 == 0o600
    assert project not in trust_file().parents


@pytest.mark.parametrize("text", ["", "{", "[]", '{"/p": 3}', '{"/p": {"k": "v"}}'])
def test_a_file_that_makes_no_sense_confirms_nothing(project: Path, text: str) -> None:
    trust_file().parent.mkdir(parents=True)
    trust_file().write_text(text)
    assert not is_confirmed(project, "models.building", "m")
    confirm(project, "models.building", "m")
    assert is_confirmed(project, "models.building", "m")
