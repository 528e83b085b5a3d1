"""The wheel, installed into an environment of its own, is a whole lopen."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import venv
from pathlib import Path

from lopen import __version__
from scripts.check_package import build
from tests.e2e.test_demo import SUBJECTS
from tests.needs import lacking


def ran(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with next to nothing in its environment."""
    surroundings = {"PATH": os.defpath, "HOME": os.environ["HOME"], "LC_ALL": "C.UTF-8"} | variables
    line = [str(part) for part in command]
    return subprocess.run(
        line, env=surroundings, cwd=Path.home(), capture_output=True, text=True, timeout=300, check=False
    )


def test_the_installed_wheel_builds_the_demo(tmp_path: Path) -> None:
    wheel, _ = build(tmp_path / "built")
    environment, programs = tmp_path / "environment", tmp_path / "environment" / "bin"
    venv.create(environment, with_pip=False)
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        environment,
        "install",
        "--quiet",
        "--no-compile",
    ]
    own_home = pwd.getpwuid(os.getuid()).pw_dir  # pip's configuration names the package index
    installed = ran(*pip, wheel, HOME=own_home)
    if "Could not find a version" in installed.stderr and "ConnectionError" in installed.stderr:
        lacking("a package index")
    assert installed.returncode == 0, installed.stderr

    assert ran(programs / "lopen", "--version").stdout == f"lopen {__version__}\n"
    demo = ran(programs / "lopen", "demo", "--json", "--sandbox", "none", tmp_path / "demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    events = [json.loads(line) for line in demo.stdout.splitlines()]
    assert all({"ts", "event", "session"} <= event.keys() for event in events)
    refused = [e["summary"] for e in events if e["event"] == "tool_ended" and e["outcome"] == "refused"]
    assert refused == ["tariff-t3", "tariff-t3", "tariff-t5"]  # what rested on a verification that failed
    first, last = events[0], events[-1]
    assert (first["event"], first["sandbox"]) == ("demo_started", "none")
    assert (last["event"], last["recorded"]) == ("demo_complete", True)
    built = zip(last["commits"], SUBJECTS[2:], strict=True)  # without the approval
    assert all(f"complete {commit['task']} in " in subject for commit, subject in built)
    verdict = [event for event in events if event["event"] == "verdict_given"][-1]
    assert (verdict["scope"], verdict["passed"], verdict["confidence"]) == ("module", True, "high")
