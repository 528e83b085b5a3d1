"""The SQL that lopen writes, against the oldest SQLite that it takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lopen
from lopen.store.database import OLDEST_SQLITE

SOURCES = Path(lopen.__file__).parent
SQL = re.compile(
    r"\b(?:SELECT|INSERT|REPLACE INTO|UPDATE \w+ SET|DELETE FROM|CREATE|ALTER|json_extract|strftime)\b"
)
# https://www.sqlite.org/changes.html, from 3.35 on
NEWER = re.compile(
    r"\bRETURNING\b|\bDROP COLUMN\b|\bMATERIALIZED\b|\) *STRICT\b|, *STRICT\b|->>?|\b(?:RIGHT|FULL)(?: OUTER)? JOIN\b"
    r"|\bIS (?:NOT )?DISTINCT FROM\b"
    r"|\b(?:unixepoch|format|unhex|octet_length|timediff|concat|concat_ws|string_agg|jsonb\w*|json_pretty"
    r"|json_array_insert|if|ceil|ceiling|floor|trunc|ln|log|log10|log2|exp|pow|power|sqrt|mod|sign|median|percentile)\(",
    re.IGNORECASE,
)


def statements() -> Iterator[tuple[str, str]]:
    """Every text with SQL in it: of the migrations, and the strings of the code."""
    for file in SOURCES.rglob("*.sql"):
        yield file.name, re.sub(r"--.*", "", file.read_text("utf-8"))
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value):
                yield f"{file.name}:{node.lineno}", node.value


def test_no_statement_needs_a_newer_sqlite() -> None:
    assert OLDEST_SQLITE == (3, 34)
    found = list(statements())
    assert len(found) > 100
    assert [place for place, text in found if NEWER.search(text)] == []


@pytest.mark.parametrize(
    "text",
    ["SELECT unixepoch(at)", "DELETE FROM a RETURNING b", "SELECT a->>'$.b'", "CREATE TABLE a (b) STRICT"],
)
def test_what_is_newer_is_found(text: str) -> None:
    assert NEWER.search(text)
