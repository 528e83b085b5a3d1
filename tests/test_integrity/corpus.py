"""The labelled diffs in `corpus/`, read into changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from lopen.test_integrity import FileChange
from lopen.verification.findings import Severity

FOLDER = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Example:
    """`worst` is the severity of the worst finding (None: there must be none); `says` is part of a message.

    `known`: why the detection is wrong here, for an accepted exception.
    """

    title: str
    changes: tuple[FileChange, ...]
    worst: Severity | None
    says: str = ""
    known: str = ""


def examples() -> dict[str, list[Example]]:
    """The entries of each file of the corpus."""
    return {path.stem: list(read(path.read_text("utf-8"))) for path in sorted(FOLDER.glob("*.diff"))}


def read(text: str) -> Iterator[Example]:
    """The entries of one file."""
    for entry in ("\n" + text).split("\n# ")[1:]:
        head, *files = entry.split("\n@@ ")
        title, label, *more = head.splitlines()
        severity, _, says = label.partition(": ")
        worst = None if severity == "silent" else cast("Severity", severity)
        known = next((line.removeprefix("known: ") for line in more if line.startswith("known: ")), "")
        yield Example(title, tuple(map(_change, files)), worst, says, known)


def _change(text: str) -> FileChange:
    head, *lines = text.rstrip("\n").split("\n")
    kind, _, path = head.rpartition(" ")
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
    after = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
    assert all(line[:1] in {"", " ", "+", "-"} for line in lines), text
    return FileChange(path, None if kind == "new" else before, None if kind == "deleted" else after)
