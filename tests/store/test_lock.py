"""One process at a time: the other one is named, and a dead one's lock is there to take."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lopen.store.folder import exclusive_lock, is_running, lock_holder

CODE = """
import sys
from pathlib import Path
from lopen.store.folder import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), "module-calc", "module calc"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock; ended at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_it_is_let_go_at_the_end_and_after_an_exception(tmp_path: Path) -> None:
    def fail() -> None:
        with exclusive_lock(tmp_path, "module-calc", "module calc"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with (
        exclusive_lock(tmp_path, "module-calc", "module calc"),
        exclusive_lock(tmp_path, "checkout", "this checkout"),
    ):
        assert is_running(lock_holder(tmp_path, "module-calc"))
    assert not is_running(lock_holder(tmp_path, "module-calc"))  # though this process lives on
    with another_process(tmp_path):
        assert is_running(lock_holder(tmp_path, "module-calc"))


def test_a_holder_that_this_person_s_lopen_did_not_write_is_nobody(tmp_path: Path) -> None:
    file = tmp_path / "module-calc.holder"
    with exclusive_lock(tmp_path, "module-calc", "module calc"):
        written = json.loads(file.read_text("utf-8"))
    for change in ({"seal": ""}, {"seal": 1}, {"pid": 1}, {"host": "x"}, {"more": 1}):
        file.write_text(json.dumps(written | change), "utf-8")
        assert lock_holder(tmp_path, "module-calc") == {}
    file.replace(tmp_path / "module-other.holder")
    (tmp_path / "module-other.holder").write_text(json.dumps(written), "utf-8")
    assert lock_holder(tmp_path, "module-other") == {}
