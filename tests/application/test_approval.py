"""Who approved: the person's name, or what stands for it where the machine knows none."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from lopen.application.decisions import record
from lopen.specification.spec import load_specification
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.project import specification


@pytest.mark.parametrize("failure", [KeyError("uid not found"), OSError("No username set")])
def test_a_person_without_a_name_approves_by_number(
    failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise failure

    monkeypatch.setattr(getpass, "getuser", nameless)
    path = tmp_path / "specs" / "calc" / "SPECIFICATION.md"
    path.parent.mkdir(parents=True)
    path.write_text(specification(), "utf-8")
    store = SessionStore(Database(tmp_path / "state.db"))
    assert record(store, load_specification(path, module="calc"), "").who == f"user {os.getuid()}"
    store.database.close()
