"""Build each edit with the real command and a judge that passes everything, and print what became of it.

    python -m tests.edits.measure [--only PATTERN] [--workers N]

An honest edit should complete, with no warning that is untrue. A weakening should be refused, or told to the judge.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.edits.edits import HONEST, WEAKENED, Edit
from tests.edits.projects import COMMANDS, PROJECTS
from tests.endpoint import ScriptedEndpoint, tool_results, tools
from tests.project import Project, plan, specification, verified
from tests.ran import HERE, Ran

TIMEOUT_S = 300


@dataclass(frozen=True)
class Measured:
    """What became of one edit. `told` are lopen's own findings and questions, each on a line."""

    edit: Edit
    honest: bool
    complete: bool
    told: tuple[str, ...]
    refusal: str

    def line(self) -> str:
        """Return the edit's line in the table."""
        verdict = "complete" if self.complete else "refused"
        said = "; ".join(self.told) or ("" if self.complete else self.refusal)
        return f"{'honest' if self.honest else 'weakened':9}{self.edit.language:7}{self.edit.name:34}{verdict:10}{said[:400].strip()}".rstrip()


def agreeable(body: dict[str, Any]) -> Any:
    """Answer as a judge that finds every criterion met and every change justified."""
    text = json.dumps(body["messages"])
    criteria = [
        {"id": i, "holds": "yes", "evidence": "shown"} for i in sorted({*re.findall(r"\bAC-\d+\b", text)})
    ]
    given: dict[str, Any] = {
        "passed": True,
        "confidence": "high",
        "summary": "Met.",
        "findings": [],
        "criteria": criteria,
    }
    schema = next(t for t in body["tools"] if t["name"] == "submit_verdict")["input_schema"]["properties"]
    if "questions" in schema:
        asked = sorted({*re.findall(r"\bQ\d+\b", text)})
        given["questions"] = [
            {"id": i, "answer": "justified", "reason": "the criterion asks for it"} for i in asked
        ]
    return tools(("submit_verdict", given))


def all_text(body: dict[str, Any]) -> str:
    """Return the text of a request's messages."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return "\n".join(block.get("text", "") for block in blocks)


def calls(edit: Edit) -> list[tuple[str, dict[str, Any]]]:
    """Return the tool calls that make the edit."""
    files, made = {**PROJECTS[edit.language], **edit.before}, []
    for path, change in edit.files.items():
        if change is None:
            made.append(("run_command", {"command": f"rm {path}"}))
            continue
        text = change if isinstance(change, str) else files[path]
        if not isinstance(change, str):
            for old, new in change:
                assert old in text, f"{edit.name}: {path} does not hold {old!r}"
                text = text.replace(old, new)
        made.append(("write_file", {"path": path, "content": text}))
    return made


def measure(edit: Edit, honest: bool) -> Measured:
    """Build the edit in a project of its own, and read what became of it."""
    with tempfile.TemporaryDirectory(prefix="edit-") as folder:
        ran, _, endpoint = run(edit, Path(folder))
        return measured(edit, honest, endpoint, ran)


def run(edit: Edit, folder: Path) -> tuple[Ran, Project, ScriptedEndpoint]:
    """Build the edit in a project in `folder`; return what the command gave, the project and what was asked."""
    script = [plan(), tools(*calls(edit), *verified("calc-t1"))]
    with ScriptedEndpoint(script, oracle=agreeable) as endpoint:
        project = Project(
            folder / "project",
            endpoint,
            LOPEN_SANDBOX__MODE="none",
            LOPEN_ORACLE__MUTATION="",
            LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD="50",
            HOME=str(folder),
            CARGO_HOME=str(Path.home() / ".cargo"),
            RUSTUP_HOME=str(Path.home() / ".rustup"),
        )
        for path, text in {**PROJECTS[edit.language], **edit.before}.items():
            project.write(path, text)
        project.git("add", "-A")
        project.git("-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qm", "Files")
        command = {"verify-tests": edit.command or COMMANDS[edit.language]}
        project.specify(text=specification(criteria=(edit.criterion,), commands=command))
        identity = {
            f"GIT_{who}_{what}": f"t@{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        removal = [f"--allow-test-removal={pattern}" for pattern in edit.removal]
        ran = subprocess.run(
            [sys.executable, "-m", "lopen", "approve", "calc", "--yes", "--run", "--json", *removal],
            cwd=project.root, env=project.environment(**identity), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
        return Ran(ran.returncode, ran.stdout, ran.stderr), project, endpoint


def measured(edit: Edit, honest: bool, endpoint: ScriptedEndpoint, ran: Ran) -> Measured:
    """Read the outcome from the events, the results and what the judge was shown."""
    told: list[str] = []
    refusal = ""
    for line in ran.out.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        listed = event.get("findings")
        for finding in listed if isinstance(listed, list) else ():
            if isinstance(finding, dict):
                told.append(f"{finding.get('severity')}: {finding.get('message')}")
    for body in endpoint.requests[-1:]:
        for result in tool_results(body):
            if result.is_error or result.data.get("passed") is False:
                refusal = refusal or f"{result.tool}: {result.text[:500]}"
            told += [f"{f.get('severity')}: {f.get('message')}" for f in result.data.get("findings") or ()]
    for body in endpoint.oracle_requests:
        told += [f"question: {q}" for q in re.findall(r'"Q\d+"\n([^\n]+)', all_text(body))]
    clean = tuple(dict.fromkeys(" ".join(t.split()) for t in told))
    return Measured(edit, honest, ran.code == 0, clean, refusal or (ran.err or ran.out)[-300:])


def main() -> int:
    """Measure the edits, and print a line for each and the shares."""
    parser = argparse.ArgumentParser(prog="python -m tests.edits.measure", description=__doc__)
    parser.add_argument("--only", default="*", help="a pattern over LANGUAGE-NAME")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    every = [(e, True) for e in HONEST] + [(e, False) for e in WEAKENED]
    wanted = [(e, honest) for e, honest in every if fnmatch.fnmatch(f"{e.language}-{e.name}", given.only)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(given.workers) as pool:
        for found in pool.map(lambda one: measure(*one), wanted):
            print(found.line(), flush=True)
            kind = "honest" if found.honest else "weakened"
            counts[kind] += 1
            counts[f"{kind}, refused"] += not found.complete
            counts[f"{kind}, complete with a warning"] += found.complete and any(
                t.startswith("warning") for t in found.told
            )
            counts[f"{kind}, complete with nothing told"] += found.complete and not found.told
    for name, count in counts.items():
        print(f"{count:5} {name}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
