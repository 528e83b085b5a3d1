"""What a repository lacks for its quality gates to hold: said to the model in planning, to people at the gate. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

HOOK = "pre-commit"
OFFER = "lopen init --pre-commit-hook writes a hook that runs lint and tests; commands are named under Skills & Hooks"


def lacking(
    commands: Mapping[str, str | None], hooks: Collection[str], *, commits: bool = True
) -> tuple[str, ...]:
    """Names of what is missing. `commands` are the approved verify commands, `hooks` the repository's own hooks.

    Where no commits are made (`commits` false) no hook is missed.
    """
    missing = []
    if not commands.get("verify-tests"):
        missing.append("a test runner (verify-tests is none)")
    if not commands.get("verify-lint"):
        missing.append("a linter (verify-lint is none)")
    if commits and HOOK not in hooks:
        missing.append("a pre-commit hook that runs the verify commands")
    return tuple(missing)


def advice(missing: Collection[str]) -> str:
    """What the planning model is told to do about it; empty where nothing is missing."""
    if not missing:
        return ""
    return (
        f"Missing here: {', '.join(missing)}. Where the module's scope leaves room, plan the configuration of the "
        "missing tools as part of a task. Verify commands and hooks themselves are a person's to add: name what "
        "you would add with report_progress, and go on without it."
    )
