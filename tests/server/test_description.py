"""The OpenAPI description holds: schemathesis sends cases made from it to the running server, with all checks on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.project import build, plan
from tests.server.serving import serving

EXAMPLES = os.environ.get("LOPEN_TEST_API_EXAMPLES", "2")  # of each operation
TIMEOUT_S = 600


def test_the_server_answers_as_it_is_described(make_project: MakeProject, tmp_path: Path) -> None:
    """No failure of the server, no status or content that is not described, no wrong request accepted.

    The event streams are left out: they do not end.
    """
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.drive().code == 0
    session = project.status()["session"]
    known = {
        "session_id": session,
        "budget_id": f"session:{session}",
        "circuit_id": f"session:{session}",
        "module": "calc",
        "task": "calc-t1",
    }
    settings = tmp_path / "schemathesis.toml"
    lines = [f'"path.{name}" = "{value}"\n' for name, value in known.items()]
    settings.write_text("[parameters]\n" + "".join(lines), "utf-8")
    with serving(project) as server:
        description = server.get("/openapi.json")
        assert description["openapi"].startswith("3.1.")
        for path, methods in description["paths"].items():
            for method, operation in methods.items():
                assert operation["description"], (method, path)
        ran = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(settings)),
                *("run", f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {server.token}"),
                *("--checks", "all", "--exclude-path-regex", "/events$", "--seed", "1", "--no-color"),
                *("--phases", "fuzzing"),
                *("--max-examples", EXAMPLES, "--continue-on-failure"),
            ],
            cwd=tmp_path,
            env=project.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    found = re.search(r"(\d+) generated", ran.stdout)
    assert ran.returncode == 0, ran.stdout[-6_000:] + ran.stderr
    assert found is not None
    assert int(found[1]) >= len(description["paths"]), found[0]
