"""One preloaded process for all the commands of a test process, started with the first of them."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.preloaded.launcher import VARIABLE
from tests.preloaded.runs import Preloaded
from tests.preloaded.started import StartedCommand
from tests.ran import HERE, Ran

SCRIPT_S = 120.0


@cache
def _shared() -> Preloaded:
    preloaded = Preloaded()
    atexit.register(preloaded.__exit__, None, None, None)
    return preloaded


def run_lopen(
    cwd: Path,
    environment: Mapping[str, str],
    arguments: Sequence[str],
    stdin: str | None = None,
    arrange: Sequence[Sequence[Any]] = (),
) -> Ran:
    """Run the command to its end: the whole of it, but for the start of Python and the imports."""
    run = _shared().run
    return run(cwd, environment, arguments, orphans="left", stdin=stdin or "", arrange=arrange).ran


def start_lopen(
    cwd: Path, environment: Mapping[str, str], arguments: Sequence[str], streams: Sequence[int] = ()
) -> StartedCommand:
    """Start the command; the caller ends it. Its output goes into pipes, or where its three `streams` lead."""
    return _shared().start(cwd, environment, arguments, streams)


@cache
def _launcher() -> Path:
    """A folder with a `lopen` that runs in a fork of the preloaded process."""
    folder = Path(tempfile.mkdtemp(prefix="launcher-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = HERE / "tests" / "preloaded" / "launcher.py"
    (folder / "lopen").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(program))} "$@"\n'
    )
    (folder / "lopen").chmod(0o755)
    return folder


def run_script(script: str, cwd: Path, environment: Mapping[str, str]) -> Ran:
    """Run a shell script, as a person or CI does, with `lopen` on PATH."""
    requests = _shared().descriptor
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=cwd,
        env={
            **environment,
            "PATH": f"{_launcher()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            VARIABLE: str(requests),
        },
        pass_fds=[requests],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SCRIPT_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
