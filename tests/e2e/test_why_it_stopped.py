"""Why a build stopped: the run, `status`, `log` and `show` say it in one place, in a person's words."""

from __future__ import annotations

import socket

import pytest

from tests.e2e.behaviours import run
from tests.e2e.conftest import MakeProject
from tests.endpoint import status, text, tools, verdict
from tests.project import build, code, plan, specification, verified

AGAIN = [tools(*code(value="a + b" + " + 0" * n), *verified("calc-t1")[:2]) for n in range(3)]
REJECTED = [
    verdict(
        passed=False,
        summary="Not convinced.",
        findings=[{"severity": "error", "message": f"negative sums {n}", "path": "calc.py", "line": 2}],
    )
    for n in range(3)
]
CAUSE = "task calc-t1 (Write it) was not accepted in 3 attempts: Not convinced"
FINDING = "the judge, error: calc.py:2: negative sums 2"
WAYS = (
    "confirm 3 more attempts (--note TEXT tells the model what to do), skip the task (lopen skip calc-t1), "
    "or change specs/calc/SPECIFICATION.md (then: lopen approve calc --run)"
)
ACCEPTED = tools(*code(value="sum((a, b))"), *verified("calc-t1"))


def test_three_rejected_tries_of_one_conversation_ask_a_person(make_project: MakeProject) -> None:
    project = make_project([plan(), *AGAIN, ACCEPTED], oracle=[*REJECTED, verdict()])
    project.approve_module()
    ran = project.lopen("run", "calc", "--unattended")
    assert ran.code == 3
    assert (len(project.requests), len(project.oracle_requests)) == (4, 3)
    paused = ran.out.partition(" paused: ")[2].splitlines()
    assert [line.strip(" |") for line in paused[:4]] == [
        CAUSE,
        "verdict on module calc: rejected: Not convinced.",
        FINDING,
        WAYS,
    ]
    assert ran.last_line.startswith("next: lopen confirm calc")
    for said in ("look at `lopen log", "ended its turn", "cached", "1 finding"):
        assert said not in ran.out
    log, shown = project.lopen("log").out, project.lopen("status").out
    assert all(log.count(f"negative sums {n}") == 1 + (n == 2) for n in range(3))
    assert (shown.count(FINDING), shown.count(WAYS)) == (1, 1)
    assert FINDING in project.status()["waiting"]["cause"][1]
    assert project.lopen("resume").code == 3
    assert len(project.requests) == 4

    printed = project.lopen("pr", "--print").out
    assert printed.count("calc was rejected 3 times and has not passed: Not convinced.") == 1, printed

    assert project.lopen("confirm", "calc", "--note", "use sum()").code == 0
    assert project.lopen("resume", "calc").code == 0
    told = "\n".join(block["text"] for block in project.requests[4]["system"])
    assert all(words in told for words in ("use sum()", "must change your strategy", "negative sums 2"))
    told = project.lopen("show", "calc-t1").out  # of the task that passed: the earlier verdicts in full
    assert all(f"negative sums {n}" in told for n in range(3))


def test_a_rejected_attempt_counts_once_and_a_changed_specification_begins_anew(
    make_project: MakeProject,
) -> None:
    gives_up = [text("Done.")] * 3
    same = tools(*verified("calc-t1")[:2])  # its verdict is remembered; the attempt counts all the same
    script = [AGAIN[0], *gives_up, AGAIN[1], *gives_up, same, *gives_up, ACCEPTED]
    project = make_project([plan(), *script], oracle=[*REJECTED[:2], verdict(), verdict()])
    project.approve_module()
    ran = project.lopen("run", "calc")
    assert (ran.code, len(project.oracle_requests)) == (3, 2)
    assert CAUSE in ran.out
    path = project.root / "specs" / "calc" / "SPECIFICATION.md"
    path.write_text(path.read_text().replace("It computes.", "It computes sums."))
    assert project.lopen("approve", "calc", "--yes").code == 0
    resumed = project.lopen("resume", "calc")
    assert resumed.code == 0, resumed.out + resumed.err


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_is_killed_at_the_third_rejection_asks_when_it_is_resumed(
    moment: str, make_project: MakeProject
) -> None:
    project = make_project([plan(), *AGAIN, ACCEPTED], oracle=[*REJECTED, verdict()])
    project.approve_module()
    point = f"{moment}:lopen.tools.task_work:_fail"
    assert project.ended_at(point, "run", "calc").code == -9
    resumed = project.lopen("resume", "calc")
    assert (resumed.code, len(project.oracle_requests)) == (3, 3)
    for said in (CAUSE, FINDING, WAYS):
        assert said in resumed.out
    skipped = project.lopen("skip", "calc-t1")
    assert skipped.last_line == "next: lopen run calc --new"
    assert project.lopen("resume").last_line == skipped.last_line


def test_an_error_that_the_judge_named_beside_its_yes_is_the_reason(make_project: MakeProject) -> None:
    torn = verdict(
        summary="The work meets its requirements.",
        findings=[{"severity": "error", "message": "zero is added twice", "path": "calc.py", "line": 2}],
    )
    first = tools(*code(value="0 + a + b"), *verified("calc-t1")[:2])
    project = make_project([plan(), first, build("calc-t1")], oracle=[torn, verdict()])
    log = project.run_module().out
    assert "verdict on module calc: rejected: zero is added twice" in log
    assert "meets its requirements" not in log


def test_a_tripped_circuit_is_one_line_in_a_person_s_words(make_project: MakeProject) -> None:
    project = make_project([plan(), *[tools(run("echo once; false"))] * 5, build("calc-t1")])
    told = project.run_module(code=3)
    lines = [line for line in told.out.splitlines() if "5 times in a row" in line]
    (line,) = lines
    assert "run_command was called 5 times in a row with the same arguments (echo once; false)" in line
    assert "task calc-t1 has cost $0." in line
    assert "acknowledge it, then resume" in line
    assert "Instead" not in told.out
    shown = project.lopen("status").out
    assert shown.count("5 times in a row") == 1
    assert shown.count("circuit ack") == 1


def test_max_cost_names_the_least_that_goes_on(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    stopped = project.run_module("--max-cost", "0.018", code=3)
    assert "it may, and another request may cost $0.0" in stopped.out
    assert (
        float(stopped.last_line.rpartition(" ")[2]) <= 0.05
    )  # not what the longest possible answer would cost
    assert project.lopen(*stopped.last_line.removeprefix("next: lopen ").split()).code == 0


def test_a_refused_key_is_one_message(make_project: MakeProject) -> None:
    project = make_project([status(401, "invalid x-api-key")])
    assert project.run_module(code=1).err.splitlines() == [
        "lopen: the model endpoint refused the key (HTTP 401): invalid x-api-key",
        "  to set a key: export ANTHROPIC_API_KEY=sk-ant-...; to try it: lopen doctor --online",
    ]


def test_a_dead_host_is_told_once_with_its_count_and_no_fallback_is_asked(make_project: MakeProject) -> None:
    project = make_project([])
    project.approve_module()
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = project.start("run", "calc", LOPEN_MODEL__BASE_URL=f"http://{address}", ANTHROPIC_BASE_URL="")
        out, _ = ran.communicate(timeout=60)
    lines = [line for line in out.splitlines() if address in line]
    assert len(lines) == 2
    assert "trying again up to 4 times within 1 s" in lines[0]
    assert "tried 5 times" in lines[1]
    assert "using claude" not in out


def test_wrong_input_is_named_as_it_was_given(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    assert "lopen: /nonexistent.md does not exist" in project.lopen("check", "/nonexistent.md").err
    refused = project.lopen("check", "/etc/passwd").err
    assert refused.startswith("lopen: /etc/passwd is a file, and no specification")
    assert "Did you mean 'run'?" in project.lopen("rnu").err
    assert "[OPTIONS] {MODULE}" in project.lopen("plan", "--help").out
    refused = project.lopen("config", "set", "sandbox.mode", "none").err
    assert refused.startswith('lopen: config set: sandbox.mode = "none" may not be set by a project; ')
    project.run_module()
    assert project.lopen("diff", "calc", "--stat").out.splitlines()[-2:] == [
        "calc.py: +2 -0",
        "test_calc.py: +8 -0",
    ]
    assert "external calls: 0/" in project.lopen("circuit", "status").out  # of a model on this machine
    project.specify(text=specification(criteria=("TODO",)))
    assert (project.lopen("check", "calc").code, project.lopen("approve", "calc", "--yes").code) == (1, 1)
