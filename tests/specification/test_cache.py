"""Documents read once, and at a bounded cost."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from lopen.specification.modules import UnreadableSource
from lopen.store.database import Database
from lopen.store.project_documents import Specifications
from lopen.store.sessions import SessionStore
from tests.specification.specs import SOUND, changed


def test_an_unchanged_specification_is_parsed_once_and_a_change_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "specs" / "shop" / "SPECIFICATION.md"
    file.parent.mkdir(parents=True)
    file.write_text(SOUND)
    before = file.stat()
    with closing(Database(tmp_path / "state.db")) as database:
        specifications = Specifications(tmp_path, SessionStore(database))
        assert specifications.load("shop") is specifications.load("shop")

        file.write_text(changed("Half up", "Half dn"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert "Half dn" in specifications.load("shop").text

        file.unlink()
        with pytest.raises(UnreadableSource):
            specifications.load("shop")
