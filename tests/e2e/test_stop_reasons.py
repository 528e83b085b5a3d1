"""How a turn may end, and what follows from it (docs/reference/model.md)."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, message, text, tools, verdict
from tests.fake_api import Message
from tests.project import Project, build, code, plan, verified
from tests.ran import Ran

Body = dict[str, Any]


def last_words(body: Body) -> str:
    """The text at the end of the last message, which is the person's side."""
    assert body["messages"][-1]["role"] == "user"
    return "".join(b.get("text", "") for b in body["messages"][-1]["content"])


def driven(make_project: MakeProject, *script: Message, **given: Any) -> tuple[Project, Ran, list[Body]]:
    """A planned module whose building goes by the script; the requests of the building."""
    project = make_project([plan(), *script], **given)
    project.specify()
    ran = project.drive()
    return project, ran, project.requests[1:]


def test_a_failing_step_keeps_its_cause_through_every_resume_and_is_not_to_be_skipped(
    make_project: MakeProject,
) -> None:
    project = make_project([text("Next I will look at the tests.")] * 9)
    project.specify()
    cause = "the model ended its turn 3 times without doing step 2, determine dependencies; "

    runs = [project.drive(), project.lopen("resume", "--json"), project.lopen("resume", "--json")]

    told = [ran.named("session_paused")[0]["message"] for ran in runs]
    assert told[0].startswith(cause), told[0]
    assert told == [told[0]] * 3
    assert ("result (" in told[0], "`lopen log -v` shows its words" in told[0]) == (False, True)
    session = project.status()["session"]
    assert "lopen skip" not in told[0]
    assert [ran.last_line for ran in runs] == [f"next: lopen confirm {session}"] * 3
    churn = [g for g in runs[0].named("guardrail") if g["guard"] == "churn"][-1]
    assert (churn["verdict"], "lopen skip" in churn["action"]) == ("block", False)
    assert project.lopen("confirm", session).code == 0


def test_an_answer_cut_by_max_tokens_goes_on(make_project: MakeProject) -> None:
    cut = tools(
        ("write_file", {"path": "one.txt", "content": "1"}),
        ("write_file", {"path": "two.txt", "content": "2"}),
        stop_reason="max_tokens",
    )
    spoken = message(
        {"type": "tool_use", "name": "write_file", "input": {"path": "three.txt", "content": "3"}},
        {"type": "text", "text": "and then"},
        stop_reason="max_tokens",
    )
    project, ran, requests = driven(
        make_project,
        text("I begin with", stop_reason="max_tokens"),
        cut,
        spoken,
        build("calc-t1"),
    )

    assert ran.code == 0, ran.err
    assert "cut by the token limit" in last_words(requests[1])
    assert project.holds("one.txt")
    assert not project.holds("two.txt")  # the one that was cut
    assert project.holds("three.txt")  # whole: what was cut came after it
    answer = last_result(requests[2])
    assert answer.is_error
    assert answer.data["ok"] is False
    assert "max_tokens" in answer.data["error"]


def test_a_paused_turn_goes_on_and_a_full_context_window_starts_again(make_project: MakeProject) -> None:
    late = ("write_file", {"path": "late.txt", "content": "x"})
    project, ran, requests = driven(
        make_project,
        text("Let me think it over.", stop_reason="pause_turn"),
        message(stop_reason="pause_turn"),
        tools(late, stop_reason="model_context_window_exceeded"),
        build("calc-t1"),
    )

    assert ran.code == 0, ran.err
    [thought] = requests[1]["messages"][-1]["content"]
    assert (requests[1]["messages"][-1]["role"], thought["text"]) == ("assistant", "Let me think it over.")
    assert [e["outcome"] for e in ran.named("iteration_ended")] == ["recorded", "overflow", "recorded"]
    assert not project.holds("late.txt")
    assert len(requests[-1]["messages"]) == 1
    assert len(str(requests[-1]["system"])) < len(str(requests[0]["system"]))


def test_a_refusal_fails_the_iteration_and_nothing_of_it_runs(make_project: MakeProject) -> None:
    refused = tools(("write_file", {"path": "evil.txt", "content": "x"}), stop_reason="refusal")
    project, ran, requests = driven(make_project, refused, build("calc-t1"))

    assert ran.code == 0, ran.err
    assert not project.holds("evil.txt")
    ended = ran.named("iteration_ended")[1]
    assert (ended["outcome"], ended["turns"]) == ("failed", 1)
    assert "refused" in ended["reason"]
    assert len(requests[1]["messages"]) == 1
    assert "refused" in str(requests[1]["system"])


def test_what_follows_the_recorded_result_in_the_same_turn_is_not_run(make_project: MakeProject) -> None:
    late = ("write_file", {"path": "late.txt", "content": "x"})
    planned = plan()
    ahead = {"type": "tool_use", "name": late[0], "input": {**late[1], "path": "ahead.txt"}}
    project = make_project(
        [
            message(*planned.content, ahead, stop_reason="tool_use"),
            tools(*code(), *verified("calc-t1"), late),
        ],
        oracle=verdict(),
    )
    ran = project.build_module()
    assert not project.holds("ahead.txt")
    assert not project.clone().exists()  # a clone with uncommitted work would be kept
    assert [t["outcome"] for t in ran.named("tool_ended") if "txt" in t["summary"]] == ["refused", "refused"]
