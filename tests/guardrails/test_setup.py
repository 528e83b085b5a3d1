"""What a repository lacks for its quality gates."""

from __future__ import annotations

from lopen.guardrails.completion import advice, missing_gates

ALL = {"verify-tests": "pytest", "verify-lint": "ruff check"}


def test_a_repository_with_everything_lacks_nothing() -> None:
    assert missing_gates(ALL, {"pre-commit"}) == ()
    assert advice(()) == ""


def test_what_is_none_or_left_out_is_missing_by_its_name() -> None:
    missing = missing_gates({"verify-tests": None}, ())
    assert [name.split(" (")[0] for name in missing] == [
        "a test runner",
        "a linter",
        "a pre-commit hook that runs the verify commands",
    ]
    assert all(name in advice(missing) for name in missing)


def test_no_hook_is_missed_where_lopen_makes_no_commits() -> None:
    assert missing_gates(ALL, (), commits=False) == ()
