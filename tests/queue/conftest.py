"""Projects with several modules, whose endpoint knows from a request which module it is for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import Route, ScriptedEndpoint
from tests.project import Project, build, plan, specification

MakeProject = Callable[..., Project]


def asks_for(module: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return what tells the requests of a module's work."""

    def asks(body: Mapping[str, Any]) -> bool:
        judges = any(tool["name"] == "submit_verdict" for tool in body.get("tools", ()))
        return not judges and f"module: {module}\\n" in json.dumps(body)

    return asks


def two_turns(module: str) -> list[Any]:
    """Return the answers that plan and build a module."""
    return [plan(), build(f"{module}-t1", module)]


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[MakeProject]:
    """Make a project with modules; `routes` replace the answers to some of them."""
    with ExitStack() as stack:

        def make(*modules: str, after: Mapping[str, str] | None = None, **answers: Any) -> Project:
            routes: list[Route] = [(asks_for(m), answers.get(m, two_turns(m))) for m in modules]
            endpoint = stack.enter_context(ScriptedEndpoint(routes=routes))
            project = Project(tmp_path / "project", endpoint, LOPEN_SANDBOX__MODE="none")
            for module in modules:
                text = specification(module)
                if earlier := (after or {}).get(module):
                    text = text.replace("\n---\n#", f"\nafter: [{earlier}]\n---\n#", 1)
                project.specify(module, text)
            project.commit("Specify")
            return project

        yield make
