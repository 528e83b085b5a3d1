"""Two processes on one module: whose turn it is."""

from __future__ import annotations

import socket
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.fake_api import Answer
from tests.project import (
    Meanwhile,
    build,
    plan,
    specification,
)


def test_a_second_process_is_told_whose_turn_it_is(make_project: MakeProject) -> None:
    meanwhile = Meanwhile()

    def busy(_: dict[str, Any]) -> Answer:
        project.specify("tax", specification("tax"))
        session = project.lopen("status", "calc", "--json").named("status")[0]["session"]
        meanwhile.seen += [
            project.lopen(*arguments)
            for arguments in (
                ("run", "calc", "--new"),
                ("resume",),
                ("revert", "calc"),
                ("confirm", session),
            )
        ]
        meanwhile.seen += [project.lopen("run", "tax"), project.lopen("log", "calc", "--json")]
        return plan(tasks=("Add",))

    project = make_project([busy, build("calc-t1")])
    project.approve_module()

    ran = meanwhile.run(project, "run", "calc")

    assert ran.code == 0, ran.out + ran.err
    *refused, another_module, log = meanwhile.seen
    for other in refused:
        assert other.code == 1
        assert f"process {meanwhile.pid} on {socket.gethostname()}" in other.err
        assert "to follow it: lopen attach calc; to stop it: lopen pause calc" in other.err
    assert (another_module.code, another_module.last_line) == (3, "next: lopen approve tax --run")
    assert log.code == 0
    assert log.named("session_started")
    modules = [s["session"].rpartition("-2")[0] for s in project.lopen("session", "list", "--json").events]
    assert sorted(modules) == ["calc", "tax"]
