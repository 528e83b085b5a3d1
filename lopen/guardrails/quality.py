"""Order 300: what must have passed before something may be called complete (docs/reference/completion.md)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from lopen.guardrails.answers import GuardResult, GuardVerdict, passing
from lopen.guardrails.facts import Boundary, Claim, GuardFacts
from lopen.guardrails.wording import listing, one_line, resume_command

NAME = "quality_gate"

REQUIRED: Mapping[Boundary, tuple[str, ...]] = {
    "task": ("verify_tests", "verify_task_completion"),
    "component": ("verify_tests", "verify_lint", "verify_component_completion"),
    "module": ("verify_build", "verify_tests", "verify_lint", "verify_module_completion"),
}
STANDARD = frozenset({"verify_setup", "verify_build", "verify_tests", "verify_lint", "verify_commit"})
JUDGED = frozenset({"verify_task_completion", "verify_component_completion", "verify_module_completion"})


def tool_name(command_name: str) -> str:
    """The tool for a command of `Skills & Hooks`: `verify-tests` becomes `verify_tests`."""
    return command_name.replace("-", "_")


def required(boundary: Boundary, commands: Mapping[str, str | None]) -> tuple[str, ...]:
    """The tools that `boundary` wants, in the order to call them: the oracle's judgement last.

    `commands` are the approved verify commands by name, None where the specification says there is none;
    one that is none, or left out, is not required. The oracle's tools always are. A component also wants
    every `verify-*` of the specification that has no standard name.
    """
    there = {tool_name(name) for name, command in commands.items() if command}
    ruled = [t for t in REQUIRED[boundary] if t not in JUDGED and t in there]
    own = [t for t in map(tool_name, commands) if t in there and t not in STANDARD | JUDGED]
    judged = [t for t in REQUIRED[boundary] if t in JUDGED]
    return (*ruled, *(own if boundary == "component" else ()), *judged)


def missing(
    boundary: Boundary, commands: Mapping[str, str | None], fresh: Collection[str]
) -> tuple[str, ...]:
    """Required tools that are not in `fresh`: those that succeeded **since the last change** to the work tree."""
    return tuple(t for t in required(boundary, commands) if t not in fresh)


def unproven(claim: Claim) -> str:
    """What is wrong with a claim, for people."""
    subject = f"{claim.boundary} {one_line(claim.subject, 80)}"
    return f"{subject} is claimed complete without {listing(claim.missing, 20)}"


def rejection(claim: Claim) -> str:
    """What a refused completion says: which tools, in which order, and what then. Empty if nothing is missing."""
    if not claim.missing:
        return ""
    subject = f"{claim.boundary} {one_line(claim.subject, 80)}"
    return (
        f"Cannot mark {subject} as complete: {listing(claim.missing, 20)} did not succeed since the last change "
        "to the work tree. Run them now, in this order, mend what they find, then retry."
    )


def check(facts: GuardFacts) -> GuardResult:
    """Block a completion that stands without its verifications."""
    claim = facts.claim
    if claim is None:
        return passing(NAME)
    if not claim.missing:
        return passing(NAME, f"{claim.boundary} {one_line(claim.subject, 80)} has its verifications")
    return GuardResult(
        NAME,
        GuardVerdict.BLOCK,
        unproven(claim),
        rejection(claim),
        resume_command(facts.session),
        "guardrail",
        action="pauses; nothing is recorded as complete",
    )


LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "javascript",
    ".tsx": "javascript",
    ".mts": "javascript",
    ".cts": "javascript",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
}
TEST_FOLDERS = {
    "python": {"tests", "test"},
    "javascript": {"tests", "test", "__tests__", "e2e", "cypress"},
    "go": set[str](),
    "rust": {"tests"},
    "java": {"test", "androidTest", "integrationTest"},
}
TEST_NAMES = {
    "python": re.compile(r"(test_.*|.*_test|tests?|conftest)\.py$"),
    "javascript": re.compile(r".*[._-](test|spec)\.[cm]?[jt]sx?$|(test|spec)\.[cm]?[jt]sx?$"),
    "go": re.compile(r".*_test\.go$"),
    "rust": re.compile(r"(.*_)?tests?\.rs$"),
    "java": re.compile(r"(Test[A-Z].*|.*(Test|Tests|TestCase|IT))\.java$"),
}
# Files that carry no behaviour of their own to be tested.
NO_BEHAVIOUR = re.compile(
    r"(__init__|__main__|setup|noxfile|_version)\.py$"
    r"|.*\.d\.[cm]?ts$|.*\.config\.[cm]?[jt]s$|.*rc\.[cm]?js$"
    r"|doc\.go$|build\.rs$|mod\.rs$|(package|module)-info\.java$"
)
RUST_INLINE_TEST = re.compile(r"#\[\s*(cfg\(\s*(all\()?test\b|(\w+::)*test\b)")


def is_test(path: str) -> bool:
    """Whether the file is a test by its language's customs."""
    file = PurePosixPath(path)
    language = LANGUAGES.get(file.suffix)
    if language is None:
        return False
    return bool(TEST_NAMES[language].match(file.name)) or bool(TEST_FOLDERS[language] & set(file.parts[:-1]))


def is_source(path: str) -> bool:
    """Whether the file holds code that wants a test."""
    file = PurePosixPath(path)
    return file.suffix in LANGUAGES and not is_test(path) and not NO_BEHAVIOUR.match(file.name)


def holds_inline_tests(path: str, content: str) -> bool:
    """Whether a source file carries tests of its own, as Rust's do."""
    return path.endswith(".rs") and RUST_INLINE_TEST.search(content) is not None


def untested(added: Iterable[str], changed: Iterable[str], inline: Collection[str] = ()) -> str:
    """What to say where source files were added and no test was touched; empty where all is well.

    `changed` are all paths that were added or modified, `inline` those that hold tests of their own.
    """
    new = tuple(sorted(p for p in added if is_source(p) and p not in inline))
    if not new or inline or any(is_test(p) for p in changed):
        return ""
    return f"New code without a test: {listing(new)}. Add or change a test that fails without this code."


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
