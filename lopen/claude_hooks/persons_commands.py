"""The person's command of lopen that a shell command gives, in whichever spelling its text tells."""

from __future__ import annotations

import os

from lopen.claude_hooks.config import HOOK_FILE
from lopen.claude_hooks.protected_places import READERS, ResolvedCommand, reads_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The person's commands (docs/reference/workflow.md): verb → its subcommands that count; empty: all of it.
PERSONS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("approve", "confirm", "answer", "skip", "revert", "merge", "hooks"), frozenset()),
    "budget": frozenset({"extend", "reset"}),
    "circuit": frozenset({"ack", "reset"}),
    "config": frozenset({"set", "unset"}),
    "alerts": frozenset({"ack"}),
    "hook": frozenset(  # what a session is told of by Claude Code alone
        {"user-prompt-submit", "session-start", "session-end", "stop", "subagent-start", "subagent-stop"}
    ),
}
_UNINSTALLS = frozenset({"uninstall", "remove"})
# Few calls need the patterns, and `re`: they are loaded at their first use, for a hook has little time to start
_VERBS = (
    r"\b("
    + "|".join(rf"{verb}\W+({'|'.join(sorted(then))})" if then else verb for verb, then in PERSONS.items())
    + r")\b"
)
_PATTERN = frozenset("*?[")
_EXPANSION = r"\$(\{[^}]*\}|\(\)|\w+|[@*#?!-])"
# Programs that run the command behind them
_RUNNING = "env nohup time timeout nice sudo exec command builtin stdbuf setsid ionice xargs parallel"
_RUNNERS = frozenset(_RUNNING.split())
INTERPRETERS = ("python", "node", "perl", "ruby", "php", "deno", "bun")
_RUNS_INPUT = frozenset(
    {"make", "at", "batch", "ssh", "crontab", "expect", "docker", "nsenter", "chroot", "awk", "parallel"}
)
LONGEST_NAME = 4_096
_VALUED = frozenset({"-C", "--project"})


def persons_command(command: ResolvedCommand, *, named: bool) -> str:
    """The person's command of lopen that a command gives; empty if it gives none.

    `named`: the text around it names lopen, so a program that cannot be told may be lopen.
    """
    words = command.words
    if not words or command.name in READERS or reads_git(words):
        return ""
    if command.name.startswith(INTERPRETERS) and any(map(names_verb, (*words, command.fed))):
        return "through an interpreter"
    if command.name in _RUNS_INPUT and any(map(names_verb, (command.fed, *command.piped()))):
        return f"through {command.name}"
    if (
        command.name.startswith(INTERPRETERS)
        and set(words[1:]) <= {"-"}
        and any(map(names_verb, command.piped()))
    ):
        return "through an interpreter"
    if command.name == "parallel" and names_verb(" ".join(words)):
        return "through parallel"
    rest = _after_lopen(words)
    if rest is not None and not _UNINSTALLS.isdisjoint(words[1:5]):
        return "through a package manager"
    if named and not _name_pattern(words[0]).strip("*?") and (verb := _persons_verb(words[1:] or ("$@",))):
        return verb
    return _persons_verb(rest) if rest is not None else ""


def untold_program(words: Sequence[str], text: str) -> str:
    """The person's command that this is if its program, an expansion or a glob that cannot be told, is lopen.

    A variable that the text does not set, as `$GIT` in `$GIT merge`, is the environment's, and not lopen.
    """
    i = 0
    while i + 1 < len(words) and (words[i][:1] in "-0123456789" or "=" in words[i] or words[i] in _RUNNERS):
        i += 1  # an option, a duration, a variable
    if i + 1 >= len(words) or words[i + 1] not in PERSONS or not (verb := _persons_verb(words[i + 1 :])):
        return ""
    program = words[i]
    name = os.path.basename(program) if "${" not in program else program
    if "$" in name:
        import re

        variable = re.fullmatch(r"\$\{?(\w+)\}?", name)
        set_here = variable is None or re.search(rf"(?<![$\w{{]){variable[1]}\b", text)
        return f"{verb} of a program that cannot be told" if set_here else ""
    return verb if not _PATTERN.isdisjoint(name) and _may_be_lopen(name) else ""


def names_verb(text: str) -> bool:
    """The text names lopen, and a person's command behind it."""
    if "lopen" not in text:
        return False
    import re

    found = re.search(r"lopen\b", text)
    return found is not None and re.search(_VERBS, text[found.end() :]) is not None


def _name_pattern(word: str) -> str:
    """The name of a program as a pattern, expansions that are not resolved being `*`."""
    if "$" in word and len(word) < LONGEST_NAME:
        import re

        word = re.sub(_EXPANSION, "*", word)
    return os.path.basename(word)


def _persons_verb(rest: Sequence[str]) -> str:
    operands, skip = [], False
    for word in rest:
        if not skip and not word.startswith("-"):
            operands.append(word)
        skip = word in _VALUED
    verb = operands[0] if operands else ""
    following = operands[1] if len(operands) > 1 else ""
    if verb.startswith("$") or any(c in verb for c in "*?["):
        return "with a command that cannot be read"
    if verb not in PERSONS:
        return ""
    if not PERSONS[verb]:
        return verb
    return f"{verb} {following}" if following in PERSONS[verb] or following.startswith("$") else ""


def _after_lopen(words: Sequence[str]) -> Sequence[str] | None:
    for i, word in enumerate(words):
        option = words[i - 1] if i else ""
        module = word in ("lopen", "lopen.__main__") and option.startswith("-") and option.endswith("m")
        if module or word in ("-mlopen", "-Imlopen") or _is_lopen(word):
            return words[i + 1 :]
        if word.endswith("lopen/__main__.py"):
            return words[i + 1 :]
        if word.endswith(HOOK_FILE):
            return ("hook", *words[i + 1 :])
    return None


def _is_lopen(word: str) -> bool:
    """The word names the program lopen, or a pattern that is meant to become it."""
    name = _name_pattern(word)
    if name in ("lopen", "lopen.exe"):
        return True
    if not any(c in name for c in "*?[") or sum(c.isalpha() for c in name) < 3:
        return False
    return _may_be_lopen(name)


def _may_be_lopen(pattern: str) -> bool:
    from fnmatch import fnmatchcase  # read only for the rare pattern

    return fnmatchcase("lopen", pattern)
