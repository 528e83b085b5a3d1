"""The commands of the pages: those of the tutorial in their order, those of the workflow files for CI."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tools
from tests.preloaded.shared import run_script
from tests.project import Project, build, component, plan, verified
from tests.ran import HERE, Ran

DOCS = HERE / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shell(script: str, project: Project, **variables: str) -> Ran:
    """Run a script as CI does; both output streams are in `out`."""
    environment = project.environment(**variables)
    for name in ("GIT_DIR", "PYTHONPATH"):
        environment.pop(name, None)
    return run_script(f"exec 2>&1\n{script}", project.root, environment)


def shown_in(wanted: str, output: str) -> bool:
    """Tell if the lines that a page shows occur in the output, in their order; `…` stands for anything."""
    lines = [re.escape(line).replace("…", ".*") for line in wanted.splitlines() if line != "…"]
    return re.search("(?:.*\n)*?".join(f"{line}\n" for line in lines), output) is not None


SLUGS = {
    "slugs.py": (
        "import re\n\n\ndef slug(title):\n    name = re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')\n"
        "    if not name:\n        raise ValueError(title)\n    return name\n"
    ),
    "test_slugs.py": (
        "import unittest\n\nfrom slugs import slug\n\n\nclass TestSlug(unittest.TestCase):\n"
        "    def test_words(self):\n        self.assertEqual(slug('Hello World'), 'hello-world')\n"
    ),
}


def test_the_tutorial_runs_as_written(make_project: MakeProject) -> None:
    project = make_project(
        [
            plan(component("core", "SLUG-1", "SLUG-2", "SLUG-3"), tasks=["Write slug"]),
            tools(
                *(("write_file", {"path": path, "content": content}) for path, content in SLUGS.items()),
                *verified("slugs-t1"),
            ),
        ]
    )
    blocks = FENCE.findall((DOCS / "tutorial.md").read_text("utf-8"))
    # All blocks in one shell, as a reader types them; a line divides what they print
    script = "".join(f"{block}\necho '<<<>>>'\n" for kind, block in blocks if kind == "sh")
    ran = shell(script, project)
    assert ran.code == 0, ran.out[-3000:]
    printed, at = ran.out.split("<<<>>>\n"), -1
    for kind, block in blocks:
        at += kind == "sh"
        if kind == "text":
            assert shown_in(block, printed[at]), f"not printed:\n{block}\nbut:\n{printed[at]}"
    assert {kind for kind, _ in blocks} == {"sh", "text"}


def test_the_scripted_endpoint_builds_as_its_page_says(make_project: MakeProject) -> None:
    project = make_project()
    for name in ("scripted_endpoint.py", "scripted_answers.json"):
        project.write(name, (DOCS / "examples" / name).read_text("utf-8"))
    [block] = [b for k, b in FENCE.findall((DOCS / "endpoints.md").read_text("utf-8")) if k == "sh"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ran = shell("trap 'kill $! || true' EXIT\n" + block.replace("8765", port), project)
    assert ran.code == 0, ran.out[-3000:]
    assert "slugs: complete, 2 of 2 criteria met" in ran.out
    assert project.subjects("lopen/slugs")[-2:] == [
        "feat(slugs): complete Write slug in core",
        "feat(slugs): complete Write words in core",
    ]
    assert project.read("requests.txt").count("--- request ") == 3


STAND_IN = '#!/bin/sh\nprintf "%s " "$(basename "$0")" "$@" >> "$ASKED"; echo >> "$ASKED"\n'


def github(variables: dict[str, str]) -> str:
    """Return the steps of the workflow file that run lopen, as one script; each has the variables that it names."""
    steps = _workflow(0)["jobs"]["build"]["steps"]
    wanted = {step["name"]: step["run"] for step in steps if "run" in step and step["name"] != "Install"}
    variables["GITHUB_ACTOR"] = "ada"
    build, pull_request, log = wanted.values()
    read = 'export CODE="$(sed -n s/^code=//p "$GITHUB_OUTPUT")"'
    return f"({build})\n{read}\n({pull_request}) || failed=$?\n{log}\nexit ${{failed:-0}}"


def gitlab(variables: dict[str, str]) -> str:
    """Return the script of the pipeline file."""
    job = _workflow(1)["lopen"]
    variables |= {
        "GITLAB_USER_LOGIN": "ada",
        "CI_COMMIT_REF_NAME": "main",
        "LOPEN_PUSH_TOKEN": "push-1234567",
    }
    variables["CI_PROJECT_URL"] = "https://gitlab.example/group/project"
    return "git switch -q --detach\n(" + "\n".join(job["script"]) + ")\n" + "\n".join(job["after_script"])


def _workflow(number: int) -> Any:
    found = [block for kind, block in FENCE.findall((DOCS / "ci.md").read_text("utf-8")) if kind == "yaml"]
    return yaml.safe_load(found[number])


@pytest.mark.parametrize("service", [github, gitlab])
def test_a_pipeline_builds_and_opens_a_pull_request(
    service: Callable[[dict[str, str]], str], make_project: MakeProject, tmp_path: Path
) -> None:
    project = make_project([plan(), build("calc-t1"), text("nothing more")])
    project.specify()
    project.commit("Specify")
    remote, programs, asked = tmp_path / "remote.git", tmp_path / "bin", tmp_path / "asked"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    project.git("remote", "add", "origin", str(remote))
    address = "https://oauth2:push-1234567@gitlab.example/group/project.git"
    project.git("config", "--global", f"url.{remote}.insteadOf", address)
    programs.mkdir()
    stand_in = programs / ("gh" if service is github else "glab")
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    refused = project.lopen("approve", "calc")
    spec_hash = re.findall(r"^specification hash: (\w+)", refused.out, re.MULTILINE)[0]

    variables = {"MODULE": "calc", "SPEC_HASH": spec_hash, "MAX_COST": "2", "ASKED": str(asked)}
    variables["GITHUB_OUTPUT"] = str(tmp_path / "output")
    script = f'export PATH="{programs}:$PATH"\n' + service(variables)
    ran = shell(script, project, **variables)

    assert ran.code == 0, ran.out[-3000:]
    assert "calc is complete" in ran.out
    assert "push-1234567" not in ran.out
    opened = asked.read_text()
    assert re.search(r"(pr|mr) create .*feat\(calc\): build calc", opened)
    assert "--draft" not in opened
    pushed = ["git", "-C", str(remote), "log", "-1", "--format=%s", "lopen/calc"]
    found = subprocess.run(pushed, capture_output=True, text=True, check=True)
    assert found.stdout == "feat(calc): complete Write it in core\n"
    assert "complete" in project.read("lopen.log")
