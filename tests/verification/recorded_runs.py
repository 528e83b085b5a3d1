"""Real runs of test runners with lopen's record of them."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lopen.sandbox.command import CommandResult, Room
from lopen.verification.run_record import RunRecord


def recorded_run(
    where: Path, files: Mapping[str, str], line: str, *options: str
) -> tuple[RunRecord, CommandResult]:
    """The record of the shell's `line` in a folder with these files, and what it printed."""
    for path, content in files.items():
        (where / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (where / "files" / path).write_text(content)
    record = RunRecord(Room(where / "files", where / "home"), files, mounted=False, options=options)
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # the tests' own HOME has no toolchain of rustup's
    kept = {"RUSTUP_HOME": str(home / ".rustup"), **{name: os.environ[name] for name in ("PATH", "HOME")}}
    ran = subprocess.run(
        ["/bin/sh", "-c", line], cwd=where / "files", env={**kept, **record.variables},
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    record.read()
    return record, CommandResult(ran.returncode, ran.stdout)
