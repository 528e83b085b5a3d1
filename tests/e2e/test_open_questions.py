"""A question and the gate are open for every shell while one terminal shows them, and stay open after Ctrl-C."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import Project, build, plan, specification
from tests.screen import Screen, lopen

ASKS = ("ask_user", {"question": "Which name?", "options": ["sum", "calc"], "default": "calc"})
PROMPT = "[calc] >"


def _screen(project: Project, *arguments: str) -> Screen:
    return Screen(project.root, lopen(*arguments), project.environment(), width=100)


def _asked(screen: Screen, text: str = PROMPT) -> list[str]:
    return screen.until(lambda rows: any(row.startswith(text) for row in rows))


def test_another_shell_sees_and_answers_the_question_that_a_terminal_shows(make_project: MakeProject) -> None:
    project = make_project([tools(ASKS), plan(), build("calc-t1")])
    project.approve_module()
    with _screen(project, "run", "calc") as screen:
        _asked(screen)
        status, shown = project.status(), project.lopen("status")
        assert (status["status"], status["waiting"]["kind"]) == ("waiting", "question")
        assert "waits: the model asks: Which name? [sum / calc] (default: calc)" in shown.out
        assert shown.last_line == f"next: lopen answer {status['session']} calc"
        follower = project.start("attach")
        assert follower.stdout is not None
        told = next(line for line in follower.stdout if "to answer it:" in line)
        assert "the model asks: Which name?" in told
        assert told.endswith(f"to answer it: lopen answer {status['session']} calc\n")
        beside = project.lopen("resume", LOPEN_ANTHROPIC_API_KEY="", ANTHROPIC_API_KEY="")
        assert "to follow it: lopen attach calc; to stop it: lopen pause calc" in beside.err
        refused = project.lopen("answer", "calc", "7")
        assert (refused.code, "no option 7; the options are: 1. sum, 2. calc" in refused.err) == (2, True)
        answered = project.lopen("answer", "calc", "1")
        assert "the run takes it and goes on" in answered.out, answered.err
        assert screen.until_end() == 0
        assert follower.wait(60) == 0
        assert any("question: Which name? [sum / calc]; answered: sum" in row for row in screen.everything())
    assert {"question": "Which name?", "answer": "sum"} in project.status()["answers"]
    assert project.lopen("replay", status["session"]).code == 0


def test_ctrl_c_leaves_the_question_open_and_resume_asks_it_again(make_project: MakeProject) -> None:
    project = make_project([tools(ASKS), plan(), build("calc-t1")])
    project.approve_module()
    with _screen(project, "run", "calc") as screen:
        _asked(screen)
        screen.type("C-c")
        assert screen.until_end() == 130
        command = f"lopen answer {project.status()['session']} calc"
        assert f"the question stays open; answer it with: {command}" in "\n".join(screen.everything())
    assert project.lopen("status").last_line == f"next: {command}"
    told = project.lopen("attach")
    assert (told.code, told.last_line, "the model asks: Which name?" in told.err) == (
        3,
        f"next: {command}",
        True,
    )
    with _screen(project, "resume") as screen:
        _asked(screen)
        screen.type("C-c")
        assert screen.until_end() == 130
    with _screen(project, "resume") as screen:
        _asked(screen)
        screen.type("9\n")
        _asked(screen, "there is no option 9")
        screen.type("1\n")
        assert screen.until_end() == 0
    assert len(project.requests) == 3
    assert "sum" in str(project.requests[1]["messages"])
    assert project.status()["answers"] == [{"question": "Which name?", "answer": "sum"}]


def test_a_killed_run_takes_the_answer_that_it_had_not_seen(make_project: MakeProject) -> None:
    project = make_project([tools(ASKS), plan(), build("calc-t1")])
    project.approve_module()
    arranged = lopen("run", "calc")
    with Screen(project.root, arranged, project.environment(), width=100) as screen:
        _asked(screen)
        assert project.lopen("pause").code == 0
        assert screen.until_end() == 3
    assert project.lopen("answer", "calc", "sum").code == 0
    assert project.lopen("resume").code == 0
    assert project.status()["answers"] == [{"question": "Which name?", "answer": "sum"}]


def test_the_gate_of_a_terminal_is_opened_from_another_shell(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify(text=specification())
    gate = "approve calc and build it? [y/N]"
    with _screen(project, "run", "calc") as screen:
        _asked(screen, gate)
        screen.type("maybe\n")
        screen.until(lambda rows: any(row.startswith("please answer y or n: approve calc") for row in rows))
        status = project.status()
        assert (status["status"], status["waiting"]["command"]) == ("waiting", "lopen approve calc --run")
        screen.type("C-c")
        assert screen.until_end() == 130
        assert any(
            "the approval stays open; give it with: lopen approve calc" in r for r in screen.everything()
        )
    with _screen(project, "run", "calc") as screen:
        _asked(screen, gate)
        approved = project.lopen("approve", "calc", "--yes", "--run")
        assert "the run that waits for it goes on" in approved.out
        assert screen.until_end() == 0
