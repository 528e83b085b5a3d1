"""Projects with a scripted endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import ScriptedEndpoint
from tests.project import Project

MakeProject = Callable[..., Project]


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[MakeProject]:
    """Makes a project whose endpoint answers with a script; the endpoint ends with the test.

    Keyword arguments in lower case go to the endpoint, in upper case into the command's environment. Commands
    run without a sandbox unless the test says otherwise: what a sandbox does has tests of its own.
    """
    with ExitStack() as stack:

        def make(script: Any = (), *, name: str = "project", **given: Any) -> Project:
            variables = {k: v for k, v in given.items() if k.isupper()}
            own = {k: v for k, v in given.items() if not k.isupper()}
            endpoint = stack.enter_context(ScriptedEndpoint(script, **own))
            variables.setdefault("LOPEN_SANDBOX__MODE", "none")
            return Project(tmp_path / name, endpoint, **variables)

        yield make
