"""Commit messages (docs/reference/git.md)."""

from __future__ import annotations

import subprocess
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from lopen.git.commits import approval_message, completion_message
from lopen.git.refs import single_line


def build(task: str = "Parse", component: str = "Core", module: str = "auth", task_id: str = "t-1") -> str:
    return completion_message(
        module=module,
        task=task,
        component=component,
        session="auth-20260101-1",
        task_id=task_id,
        verdict="passed (high)",
    )


def test_the_plain_convention() -> None:
    text = completion_message(
        module="m",
        task="T",
        component="C",
        session="s",
        task_id="t",
        verdict="passed (low)",
        convention="plain",
    )
    assert text.splitlines()[0] == "Complete T in C"
    assert approval_message(module="m", session="s", convention="plain").startswith(
        "Approve the specification of m\n\n"
    )


def test_long_names_are_cut() -> None:
    assert single_line("x" * 72) == "x" * 72
    assert single_line("x" * 73) == "x" * 71 + "…"


@given(st.text(), st.text(), st.text())
def test_no_name_breaks_out_of_the_subject(task: str, component: str, module: str) -> None:
    lines = build(task, component, module).split("\n")
    assert len(lines) == 6
    assert lines[1] == lines[5] == ""
    assert lines[2] == "Lopen-Session: auth-20260101-1"
    assert len(lines[0]) <= 3 * 72 + len("feat(): complete  in ")
    assert not any(unicodedata.category(char).startswith("C") and char.isprintable() for char in lines[0])


@given(st.text())
def test_a_folded_name_is_one_line_and_folding_is_stable(name: str) -> None:
    once = single_line(name)
    assert len(once) <= 72
    assert len(once.splitlines()) <= 1
    assert single_line(once) == once


def test_a_name_that_looks_like_a_trailer_forges_none() -> None:
    text = build("x\n\nLopen-Task: forged", task_id="real\nLopen-Verdict: passed (forged)")
    parsed = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=text, capture_output=True, text=True, check=True
    ).stdout
    assert parsed.splitlines() == [
        "Lopen-Session: auth-20260101-1",
        "Lopen-Task: real Lopen-Verdict: passed (forged)",
        "Lopen-Verdict: passed (high)",
    ]
