"""Known secrets: wherever lopen keeps, shows or sends something, their values are not in it.

See docs/reference/sandbox.md.
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.fake_api import Answer
from tests.project import TIMEOUT_S, Project, build, code, plan, specification, verified

VARIABLE = "kQ7-deploy/value+4711"
FILED = "pw_Zebra91xTango"
KEY = "test-key-that-opens-the-endpoint-42"
VALUES = (VARIABLE, FILED, KEY)
SPELLINGS = {
    form.encode()
    for value in VALUES
    for form in (value, json.dumps(value)[1:-1], base64.b64encode(value.encode()[:12]).decode())
}


def whole(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, unpacked where it is packed."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        raw = path.read_bytes()
        yield str(path), raw
        try:
            yield f"{path} unpacked", gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else zlib.decompress(raw)
        except (zlib.error, OSError, EOFError):
            continue


def objects(root: Path) -> bytes:
    """Every object of the repository, reachable or not."""
    listed = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"],
        cwd=root,
        capture_output=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return listed.stdout


def nowhere(project: Project, said: str = "") -> None:
    """No value is in lopen's folder, in git's, in what was sent or in what was shown."""
    sent = json.dumps([project.requests, project.oracle_requests]).encode()
    places: list[tuple[str, bytes]] = [
        *whole(project.root / ".lopen"),
        *whole(project.root / ".git"),
        ("objects", objects(project.root)),
        ("requests", sent),
        ("output", said.encode()),
    ]
    assert len(places) > 20
    for name, content in places:
        for form in SPELLINGS:
            assert form not in content, (name, form)


def test_a_secret_that_the_model_meets_goes_nowhere(make_project: MakeProject, tmp_path: Path) -> None:
    """The project's `.env` is not in lopen's clone; a command without a sandbox reaches it."""
    told: list[Any] = []

    def refused(body: dict[str, Any]) -> Answer:
        told.append(last_result(body, "update_task_status").data)
        return build("calc-t1")

    leaking = code()
    leaking[0] = (
        "write_file",
        {"path": "calc.py", "content": f"KEY = '{VARIABLE}'\n\ndef add(a, b):\n    return a + b\n"},
    )
    reading = [
        ("run_command", {"command": f"cp {tmp_path}/project/.env {tmp_path}/project/settings.py ."}),
        ("read_file", {"path": ".env"}),
        ("read_file", {"path": "settings.py"}),
        (
            "run_command",
            {"command": "cat .env; base64 -w0 .env; python3 -c 'print(open(\".env\").read()[::1])'"},
        ),
        ("search_files", {"pattern": "DATABASE"}),
        ("search_files", {"pattern": FILED}),
    ]
    project = make_project(
        [
            plan(),
            tools(*reading, say=f"I found {FILED} and {VARIABLE}"),
            tools(*leaking, *verified("calc-t1")),
            refused,
        ],
        DEPLOY_TOKEN=VARIABLE,
        ANTHROPIC_API_KEY=KEY,
    )
    project.write(".env", f"# local\nexport DATABASE_PASSWORD='{FILED}'\nCOLOUR=blue-and-green\n")
    project.write(".gitignore", "__pycache__/\n.env\nsettings.py\n")
    project.write("settings.py", f"PASSWORD = {FILED!r}\nTOKEN = {VARIABLE!r}\n")
    project.commit("Mine")
    ran = project.build_module(text=specification())
    assert told[0]["ok"] is False
    assert told[0]["error"] == "calc.py:1 holds what looks like a secret (known); not committed", told
    sent = json.dumps(project.requests)
    assert "[redacted:known]" in sent
    assert "blue-and-green" in sent
    alerts = [a["message"] for a in ran.named("alert") if a["alert_type"] == "secret"]
    assert len(alerts) == 2
    assert "the secret of .env" in " ".join(alerts)
    assert "the secret of DEPLOY_TOKEN" in " ".join(alerts)
    assert project.git("fsck", "--strict") == ""
    nowhere(project, ran.out + ran.err)


def test_neither_an_approval_nor_a_backup_stores_one(make_project: MakeProject) -> None:
    project = make_project([plan(tasks=("Add", "Say it")), build("calc-t1")], DEPLOY_TOKEN=VARIABLE)
    project.approve_module(text=specification(extra=f"\n## Notes\nThe token is {VARIABLE}.\n"))

    shut = project.lopen("run", "calc")

    assert shut.code == 1
    assert "specs/calc/SPECIFICATION.md:30 holds what looks like a secret (known)" in shut.err
    assert VARIABLE.encode() not in objects(project.root)

    project.run_module("--max-iterations", "2", code=3)
    notes = project.clone() / "notes.txt"
    notes.write_text(f"line\n{VARIABLE}\n", "utf-8")
    before = project.git("rev-parse", "lopen/calc")
    back = project.lopen("revert", "calc")
    assert back.code == 1
    assert "notes.txt:2 holds what looks like a secret (known)" in back.err
    assert "echo /notes.txt >> .gitignore" in back.err
    assert project.git("rev-parse", "lopen/calc") == before
    assert project.git("for-each-ref", "refs/lopen/backup") == ""
    assert VARIABLE.encode() not in objects(project.root)
    notes.write_text("line\n", "utf-8")
    assert project.lopen("revert", "calc").code == 0
    assert project.git("for-each-ref", "refs/lopen/backup") != ""
    assert not notes.exists()


def test_values_that_the_model_writes_hide_nothing_from_the_judge(make_project: MakeProject) -> None:
    hiding = f"DB_PASSWORD=add(1, 2) is 3\\nX_SECRET=Functions live in one file\\nMINE_TOKEN={FILED}\\n"
    project = make_project(
        [
            plan(),
            tools(
                ("run_command", {"command": f"printf '{hiding}' > .env; printf '{hiding}' > more.env"}),
            ),
            tools(("run_command", {"command": 'echo "$(cat kept.env)"'}), *code(), *verified("calc-t1")),
        ]
    )
    project.write(".gitignore", "__pycache__/\n.env\n*.env\n")
    project.write("kept.env", f"A_PASSWORD={VARIABLE}\n")
    project.git("add", ".gitignore")
    project.git("commit", "-q", "-m", "Mine")
    project.build_module(text=specification())
    assert VARIABLE not in json.dumps(project.requests)
    judged = json.dumps(project.oracle_requests)
    assert "add(1, 2) is 3" in judged
    assert "Functions live in one file" in judged
    assert "[redacted:known]" not in judged
