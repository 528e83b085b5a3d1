"""A project to run the real command in: a temporary git repository, specifications, and `lopen` as a process."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lopen.core.hashing import content_hash
from tests.endpoint import ScriptedEndpoint, tools
from tests.fake_api import Message
from tests.preloaded.shared import run_lopen, start_lopen
from tests.preloaded.started import StartedCommand
from tests.ran import HERE, SHELL_PYTHON, Ran

TIMEOUT_S = 120

UNITTEST = f"{SHELL_PYTHON} -m unittest -q"


def specification(
    module: str = "calc",
    *,
    criteria: Sequence[str] = ("add(1, 2) is 3",),
    commands: Mapping[str, str] | None = None,
    extra: str = "",
) -> str:
    """A small specification that passes `lopen check`."""
    given = {
        "verify-setup": "none",
        "verify-build": "none",
        "verify-tests": f"`{UNITTEST}`",
        "verify-lint": "none",
        "verify-commit": "none",
    }
    given |= {name: line if line == "none" else f"`{line}`" for name, line in (commands or {}).items()}
    lines = [
        "---",
        f"name: {module}",
        f"description: The module {module}",
        "---",
        f"# {module}",
        "",
        "## Overview",
        "It computes.",
        "",
        "## Acceptance Criteria",
        *(f"- [ ] {c}" for c in criteria),
        "",
        "## Behaviour",
        "Functions live in one file.",
        "",
        "### Rounding",
        "Nothing is rounded.",
        "",
        "## Dependencies",
        "None.",
        "",
        "## Skills & Hooks",
        *(f"- **{name}**: {line}" for name, line in given.items()),
        "",
    ]
    return "\n".join(lines) + extra


@cache
def _begun() -> Path:
    """A repository with one commit, made once in a test process: a copy needs no processes."""
    folder = Path(tempfile.mkdtemp(prefix="begun-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "README.md").write_text("A project.\n", "utf-8")
    (folder / ".gitignore").write_text("__pycache__/\n", "utf-8")
    for line in ("init -q -b main", "add -A", "commit -q -m Begin"):
        subprocess.run(["git", *line.split()], cwd=folder, check=True, timeout=TIMEOUT_S)
    folder.chmod(0o755)
    return folder


class Project:
    """A git repository with one commit, and the command to run in it."""

    def __init__(self, root: Path, endpoint: ScriptedEndpoint | None = None, **variables: str) -> None:
        self.root = root
        self.endpoint = endpoint
        self.variables = variables
        shutil.copytree(_begun(), root, symlinks=True, dirs_exist_ok=True)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests that the endpoint was sent for the work."""
        assert self.endpoint is not None
        return self.endpoint.requests

    @property
    def oracle_requests(self) -> list[dict[str, Any]]:
        """The requests that the endpoint was sent for verdicts."""
        assert self.endpoint is not None
        return self.endpoint.oracle_requests

    def write(self, path: str, text: str) -> Path:
        """Write a file of the project."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def read(self, path: str) -> str:
        """A file's text in the checkout."""
        return (self.root / path).read_text("utf-8")

    def clone(self, module: str = "calc") -> Path:
        """The files of lopen's clone, in which a session of the module works."""
        cache = Path(self.environment().get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "lopen" / "clones" / content_hash(str(self.root))[:12] / module / self.root.name

    def built(self, path: str, module: str = "calc") -> str:
        """A file's text on the module's branch."""
        return self.git("show", f"lopen/{module}:{path}") + "\n"

    def holds(self, path: str, module: str = "calc") -> bool:
        """Return True if the module's branch holds the file."""
        return path in self.git("ls-tree", "-r", "--name-only", "-z", f"lopen/{module}").split("\0")

    def specify(self, module: str = "calc", text: str | None = None) -> Path:
        """Write a module's specification."""
        return self.write(f"specs/{module}/SPECIFICATION.md", text or specification(module))

    def git(self, *arguments: str) -> str:
        """git in the project; its output, stripped."""
        ran = subprocess.run(
            ["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True, timeout=TIMEOUT_S
        )
        return ran.stdout.strip()

    def environment(self, **variables: str) -> dict[str, str]:
        """What the command runs with; a variable given as empty is not there at all."""
        own = self.endpoint.environment if self.endpoint else {}
        quick = {"LOPEN_MODEL__RETRY_BASE_S": "0.01", "LOPEN_ORACLE__MUTATION": "off"}
        every = {**os.environ, "PYTHONPATH": str(HERE), **quick, **own, **self.variables, **variables}
        return {name: value for name, value in every.items() if value}

    def lopen(
        self,
        *arguments: str,
        stdin: str | None = None,
        arrange: Sequence[Sequence[Any]] = (),
        **variables: str,
    ) -> Ran:
        """Run the command to its end, in a fork of a process that has it imported.

        `arrange` are calls that are made in the fork first (`tests.crash.faults`).
        """
        return run_lopen(self.root, self.environment(**variables), arguments, stdin, arrange)

    def ended_at(self, point: str, *arguments: str, signal_name: str = "SIGKILL") -> Ran:
        """Run the command until the signal ends it at the point, such as `before:lopen.loop.startup:start`."""
        when, _, effect = point.partition(":")
        return self.lopen(*arguments, arrange=[["tests.crash.faults:die", effect, when, 1, signal_name]])

    def spawned(self, *arguments: str, **variables: str) -> Ran:
        """Run the command to its end as a process of its own, as a shell starts it."""
        done = subprocess.run(
            [sys.executable, "-m", "lopen", *arguments],
            cwd=self.root,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **variables: str) -> StartedCommand:
        """Start the command, in a fork as `lopen` does; the caller ends it."""
        return start_lopen(self.root, self.environment(**variables), arguments)

    def subjects(self, ref: str = "lopen/calc") -> list[str]:
        """Commit subjects, oldest first; none where the branch does not exist."""
        if ref not in ("HEAD", *self.git("for-each-ref", "--format=%(refname:short)").splitlines()):
            ref = "HEAD"
        return self.git("log", "--reverse", "--format=%s", ref).splitlines()

    def status(self, module: str = "calc") -> dict[str, Any]:
        """`lopen status --json` of a module."""
        ran = self.lopen("status", module, "--json")
        assert ran.code == 0, ran.err
        return ran.named("status")[0]

    def commit(self, subject: str) -> None:
        """Commit everything in the checkout, as the person."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)

    def approve_module(self, text: str | None = None) -> None:
        """Specify the module calc and approve it."""
        self.specify(text=text)
        approved = self.lopen("approve", "calc", "--yes")
        assert approved.code == 0, approved.err

    def run_module(self, *arguments: str, text: str | None = None, code: int = 0) -> Ran:
        """Specify the module calc, approve it and run it, which ends with `code`."""
        self.approve_module(text)
        ran = self.lopen("run", "calc", *arguments)
        assert ran.code == code, ran.out + ran.err
        return ran

    def build_module(self, text: str | None = None, code: int = 0) -> Ran:
        """As `run_module`, approved and run by one command, whose output is events."""
        self.specify(text=text)
        ran = self.drive()
        assert ran.code == code, ran.out + ran.err
        return ran

    def approved_run(self, module: str = "calc", *arguments: str) -> Ran:
        """Approve a specification and run it."""
        approved = self.lopen("approve", module, "--yes")
        assert approved.code == 0, approved.err
        return self.lopen("run", module, *arguments)

    def drive(self, module: str = "calc", **variables: str) -> Ran:
        """Approve and run in one process, its output as events."""
        return self.lopen("approve", module, "--yes", "--run", "--json", **variables)

    def resume(self, *arguments: str, **variables: str) -> Ran:
        """Go on with the latest session, the output as events."""
        return self.lopen("resume", "--json", *arguments, **variables)


class Meanwhile:
    """A turn during which the test does something to the process that waits for it."""

    def __init__(self) -> None:
        self.process: StartedCommand | None = None
        self.seen: list[Any] = []

    def run(self, project: Project, *arguments: str) -> Ran:
        self.process = project.start(*arguments)
        try:
            out, err = self.process.communicate(timeout=TIMEOUT_S)
        finally:
            self.process.kill()
            code = self.process.wait(TIMEOUT_S)
        return Ran(code, out, err)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


def billed(*turns: Mapping[str, Any]) -> int:
    """Return the tokens of `turn_ended` events as budgets count them."""
    return sum(
        e["input_tokens"] + e["output_tokens"] + e["cache_write_tokens"] + round(e["cache_read_tokens"] * 0.1)
        for e in turns
    )


def plan(
    *components: Mapping[str, Any], tasks: Sequence[str] = ("Write it",), dependencies: Sequence[Any] = ()
) -> Message:
    """One turn that records steps 2 to 5; without components, one that covers AC-1."""
    given = list(components) or [component("core", "AC-1")]
    return tools(
        ("record_dependencies", {"dependencies": list(dependencies)}),
        ("record_components", {"components": given}),
        ("select_component", {"name": given[0]["name"], "reason": "it comes first"}),
        ("record_tasks", {"component": given[0]["name"], "tasks": [task(name) for name in tasks]}),
    )


def component(name: str, *criteria: str, depends_on: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A component as the model records it."""
    return {
        "name": name,
        "description": f"The part {name}.",
        "acceptance_criteria": list(criteria),
        "depends_on": list(depends_on),
        **more,
    }


def task(name: str, **more: Any) -> dict[str, Any]:
    """A task as the model records it."""
    return {"name": name, "description": f"{name}, with its tests.", **more}


def code(name: str = "calc", value: str = "a + b") -> list[tuple[str, dict[str, Any]]]:
    """The calls that write a function and a passing test for it."""
    test = (
        f"import unittest\n\nfrom {name} import add\n\n\nclass Test{name.title()}(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
    )
    return [
        ("write_file", {"path": f"{name}.py", "content": f"def add(a, b):\n    return {value}\n"}),
        ("write_file", {"path": f"test_{name}.py", "content": test}),
    ]


def verified(task_id: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that verify a task and complete it."""
    return [
        ("verify_tests", {}),
        ("verify_task_completion", {"task_id": task_id}),
        ("update_task_status", {"task_id": task_id, "status": "complete"}),
    ]


def build_calls(task_id: str = "calc-t1", name: str = "calc") -> list[tuple[str, dict[str, Any]]]:
    """The calls that do a whole task."""
    return [*code(name), *verified(task_id)]


def build(task_id: str, name: str = "calc") -> Message:
    """One turn that does a whole task."""
    return tools(*build_calls(task_id, name))
