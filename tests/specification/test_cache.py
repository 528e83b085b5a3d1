"""Documents read once, and at a bounded cost."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lopen.specification.modules import UnreadableSource
from lopen.store.project_documents import SpecificationCache
from tests.specification.specs import SOUND, changed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "SPECIFICATION.md"
    file.write_text(SOUND)
    return file


def test_an_unchanged_specification_is_parsed_once(path: Path) -> None:
    cache = SpecificationCache()
    assert cache.load(path, module="shop") is cache.load(path, module="shop")


def test_a_change_within_one_clock_tick_is_seen(path: Path) -> None:
    cache = SpecificationCache()
    cache.load(path, module="shop")
    before = path.stat()
    path.write_text(changed("Half up", "Half dn"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert "Half dn" in cache.load(path, module="shop").text


def test_a_change_through_a_memory_map_is_seen(path: Path) -> None:
    cache = SpecificationCache()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        at = mapped.find(b"Half up")
        for word in (b"Half dn", b"Half no"):
            mapped[at : at + 7] = word
            assert word.decode() in cache.load(path, module="shop").text


def test_a_file_replaced_by_another_is_seen(path: Path) -> None:
    cache = SpecificationCache()
    cache.load(path, module="shop")
    other = path.with_name("other.md")
    other.write_text(changed("Half up", "Half dn"))
    other.replace(path)
    assert "Half dn" in cache.load(path, module="shop").text


def test_a_file_that_is_gone_is_an_error_and_no_answer(path: Path) -> None:
    cache = SpecificationCache()
    cache.load(path, module="shop")
    path.unlink()
    with pytest.raises(UnreadableSource):
        cache.load(path, module="shop")


def test_other_ids_are_another_specification(path: Path) -> None:
    cache = SpecificationCache()
    assert cache.load(path, module="shop").criteria[1].id == "AC-1"
    assert cache.load(path, module="shop", known_ids={"Totals add up": "AC-7"}).criteria[1].id == "AC-7"
    assert cache.load(path, module="shop").criteria[1].id == "AC-1"


def test_the_one_used_longest_ago_is_dropped(tmp_path: Path) -> None:
    cache = SpecificationCache(size=2)
    paths = [tmp_path / name for name in "abc"]
    for file in paths:
        file.write_text(SOUND)
    first, second = (cache.load(p, module="m") for p in paths[:2])
    assert cache.load(paths[0], module="m") is first
    cache.load(paths[2], module="m")
    assert cache.load(paths[0], module="m") is first
    assert cache.load(paths[1], module="m") is not second


def test_several_threads_may_ask_at_once(path: Path) -> None:
    cache = SpecificationCache(size=1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: cache.load(path, module=f"m{n % 3}").module, range(30)))
    assert found == [f"m{n % 3}" for n in range(30)]


def test_importing_the_room_loads_no_parser() -> None:
    code = (
        "import sys, lopen.store.project_documents, lopen.specification.drift, lopen.specification.plan_file\n"
        "print(sorted({'markdown_it', 'mdit_py_plugins', 'yaml'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
