"""What lopen says to somebody who types a wrong name, has no key, or does not know that a command costs money."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeProject
from tests.project import build, plan, specification
from tests.terminal import on_a_terminal

NO_KEY = {
    "ANTHROPIC_API_KEY": "",
    "ANTHROPIC_AUTH_TOKEN": "",
    "LOPEN_MODEL__BASE_URL": "http://example.invalid",
}

NO_KEY_SAID = [
    "lopen: no key for the model endpoint was found",
    "  to set a key: export ANTHROPIC_API_KEY=sk-ant-...; to try it: lopen doctor --online",
]


def test_a_name_nearly_right_is_answered_with_the_right_one(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.run_module()
    session = project.status()["session"]
    modules = ("approve clac --yes", "run clac", "spec clac", "merge clac")
    more = ("status clac", "revert clac", "resume clac")
    cases = [(line, "calc") for line in (*modules, *more)]
    cases += [(f"{command} {session[:-3]}1-1", session) for command in ("log", "replay")]
    cases += [("confirm " + session[:-3] + "1-1", session), (f"answer {session[:-3]}1-1 x", session)]
    cases += [
        (line, "calc-t1") for line in ("show calc-t11", "diff clac-t1", "skip clac-t1", "revert --to calc-tl")
    ]
    for line, right in cases:
        ran = project.lopen(*line.split())
        assert ran.code in (1, 2), line
        assert f"did you mean {right}?" in ran.out + ran.err, (line, ran.out + ran.err)
    assert project.lopen("session", "list").out.count("\n") == 1


def test_a_draft_is_offered_before_it_costs_anything(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    refused = project.lopen("spec", "report")
    assert (refused.code, "report has no specification yet" in refused.err) == (2, True)
    assert "lopen spec report -p 'what it should do'" in refused.err
    code, shown = on_a_terminal(project, "spec", "report", answers=[(b"[y/N]", b"n\n")])
    assert (code, b"in a paid conversation with claude-sonnet" in shown) == (1, True)
    assert project.requests == []
    assert not (project.root / ".lopen").exists()


@pytest.mark.parametrize("arguments", [["run", "calc"], ["approve", "calc", "--run"]])
def test_a_missing_key_is_said_before_the_approval_is_asked(
    make_project: MakeProject, arguments: list[str]
) -> None:
    project = make_project()
    project.specify()
    code, shown = on_a_terminal(project, *arguments, answers=[(b"[y/N]", b"y\n")], columns=120, **NO_KEY)
    assert (code, b"no key for the model endpoint was found" in shown) == (1, True), shown
    assert b"[y/N" not in shown


def test_without_a_key_nothing_is_made(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    for line in ("spec report -p x", "run calc", "run calc --unattended", "plan calc", "run new -p x"):
        ran = project.lopen(*line.split(), **NO_KEY)
        waits = "; calc also waits for your approval: lopen approve calc" if "n calc" in line else ""
        assert (ran.code, ran.err.splitlines()) == (1, [NO_KEY_SAID[0] + waits, NO_KEY_SAID[1]]), line
        assert ran.out == "", "a gate that nobody can answer"
    code, shown = on_a_terminal(project, "run", "calc", answers=(), columns=120, **NO_KEY)
    assert (code, b"lopen approve calc" in shown) == (1, True), shown
    assert not (project.root / ".lopen").exists()
    assert project.lopen("run", "calc", "--dry-run", **NO_KEY).code == 0  # it sends nothing


def test_what_is_not_written_is_not_approved(make_project: MakeProject) -> None:
    project = make_project()
    assert project.lopen("init", "report").code == 0
    project.specify(
        text=specification(criteria=("`scan` prints every TODO comment.", "TODO: what of a wrong input?"))
    )
    for module, line in (
        ("report", "specs/report/SPECIFICATION.md:1: this is still the template of lopen init"),
        ("calc", "specs/calc/SPECIFICATION.md:12: AC-2 still says TODO: TODO: what of a wrong input?"),
    ):
        checked = project.lopen("check", module)
        assert (checked.code, line in checked.out) == (1, True)
        for command in ("approve M --yes", "approve M --expect 0123456789abcdef", "approve M", "run M"):
            ran = project.lopen(*command.replace("M", module).split())
            assert (ran.code, line in ran.err) == (1, True), (command, ran.err)
            assert f"write what is missing, then: lopen approve {module}" in ran.err
            assert "AC-1" not in ran.err
    assert project.lopen("session", "list").out.startswith("no sessions yet")
    *listed, last = project.lopen("status").out.splitlines()
    assert [line.partition(", no tasks yet")[0] for line in listed] == [
        "calc: not written",
        "report: not written",
    ]
    assert last == "no sessions yet; to start one: lopen run MODULE"
    found = project.lopen("status", "--json").named("status")[0]["modules"]
    assert [(each["module"], each["state"]) for each in found] == [
        ("calc", "not written"),
        ("report", "not written"),
    ]
    assert project.requests == []


def test_status_fits_a_screen_however_long_the_plan_is(make_project: MakeProject) -> None:
    project = make_project([plan(tasks=tuple(f"Part {number}" for number in range(1, 41))), build("calc-t1")])
    project.approve_module()
    assert project.lopen("run", "calc", "--max-iterations", "2").code == 3
    shown, whole = project.lopen("status"), project.lopen("status", "-v")
    assert shown.out.count("\n") <= 24
    for text in (
        "components 0/1 · tasks 1/40",
        "core 1/40",
        "calc-t2 Part 2",
        "more: lopen status calc -v",
        "spent: $",
    ):
        assert text in shown.out, shown.out
    assert shown.last_line == whole.last_line
    for text in ("calc-t1 Part 1", "calc-t40 Part 40", "module:calc"):
        assert text in whole.out, whole.out
