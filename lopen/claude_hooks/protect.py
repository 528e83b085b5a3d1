"""What a Claude Code session may not do: a person's commands of lopen, and edits of `.claude/settings*` and `.lopen/`.

A way in that this misses is still refused by the person's commands themselves and by the
sandbox; a false alarm costs a session a call, so what only prints or searches is left alone.
"""

from __future__ import annotations

import os
import re

from lopen.claude_hooks.command_writes import written
from lopen.claude_hooks.protected_places import LONGEST, READERS, head_of, is_claude, protected, reads_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lopen.claude_hooks.shell import Command

# The person's commands (docs/reference/workflow.md): verb → its subcommands that count; empty: all of it.
PERSONS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("approve", "confirm", "answer", "skip", "revert", "hooks"), frozenset()),
    "budget": frozenset({"extend", "reset"}),
    "circuit": frozenset({"ack", "reset"}),
    "config": frozenset({"set"}),
}
_VERBS = (
    r"(?s)lopen\b.*?\b(approve|confirm|answer|skip|revert|hooks|budget\W+(extend|reset)|circuit\W+(ack|reset)"
    r"|config\W+set)\b"
)
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish", "eval"})
INTERPRETERS = ("python", "node", "perl", "ruby", "php", "deno", "bun")
READ_TOOLS = frozenset(
    {"Read", "Glob", "Grep", "LS", "NotebookRead", "read_file", "list_files", "search_files"}
)
# Tools whose strings are text, but for those named as paths
_TEXT_TOOLS = frozenset(
    {"Write", "Edit", "MultiEdit", "NotebookEdit", "Task", "Agent", "Skill", "SlashCommand", "ExitPlanMode"}
    | {"WebFetch", "WebSearch", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "BashOutput"}
)
_TEXTS = frozenset(
    [
        "content",
        "contents",
        "text",
        "body",
        "message",
        "prompt",
        "query",
        "pattern",
        "title",
        "description",
        "comment",
        "summary",
        "old_string",
        "new_string",
        "oldtext",
        "newtext",
        "old_text",
        "new_text",
    ]
)
_READING_TOOL = re.compile(
    r"(?i)(read|list|get|search|find|stat|view|show|tree|directory_tree|head|tail|grep|glob)(_|$|(?-i:[A-Z]))"
)
_WRITING = re.compile(r"(?i)replace|write|edit|update|set|delete|remove|move")
_REMOVING_TOOL = re.compile(r"(?i)delete|remove|move|rename|rmdir|unlink")
# Files that a shell may be given to run: those without an ending, scripts, and what a shell reads at its start
_SCRIPT = re.compile(r"(?i)^(?!/dev/).*?((^|/)[^/.]+|\.(sh|bash|zsh|ksh|fish|command|mk)|rc|profile)$")
DEEPEST_ARGUMENT = 50
_VALUED = frozenset({"-C", "--project"})


def forbidden(tool: str, arguments: Any, cwd: str, root: str) -> str:
    """Why this call is not allowed; empty where it is."""
    if not isinstance(arguments, dict):
        return ""
    if tool in READ_TOOLS:
        return ""
    command = arguments.get("command")
    if isinstance(command, str):
        return in_shell(command, cwd, root)
    own = tool.rpartition("__")[2]
    if _READING_TOOL.match(own) and not _WRITING.search(own):
        return ""
    removing = tool not in _TEXT_TOOLS and _REMOVING_TOOL.search(own)
    for name, value in _strings(arguments, "", 0):
        if "path" not in name.lower() and (tool in _TEXT_TOOLS or name.lower() in _TEXTS):
            continue
        if name.lower() in ("command", "cmd", "script"):
            if reason := in_shell(value, cwd, root):
                return reason
            continue
        path = value.removeprefix("file://")
        if (
            "\n" not in path
            and "://" not in path
            and ((hit := protected(path, cwd)) or (removing and is_claude(path)))
        ):
            return _no_edit(hit or path)
    return ""


def _strings(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every string in a call's arguments, with the name that it or its list stands under."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict) and depth < DEEPEST_ARGUMENT:
        for key, inner in value.items():
            yield from _strings(inner, str(key), depth + 1)
    elif isinstance(value, list) and depth < DEEPEST_ARGUMENT:
        if name.lower() in ("command", "cmd") and all(isinstance(v, str) for v in value):
            yield name, " ".join("'" + v.replace("'", "'\\''") + "'" for v in value)
        for inner in value:
            yield from _strings(inner, name, depth + 1)


def in_shell(text: str, cwd: str, root: str) -> str:
    """Why this shell text is not allowed; empty where it is."""
    if len(text) > LONGEST:
        return _no_person("a command that long") if re.search(_VERBS, text) else ""
    here, before = cwd, None
    for command in _all(text, 0):
        verb = persons_command(command.words, text)
        if verb:
            return _no_person(f"lopen {verb}")
        hit = written(command, before, here, root)
        if hit:
            return _no_edit(hit)
        here, before = _moved(command, here), command
    return ""


def simple_commands(text: str) -> list[Command]:
    """Every simple command of a text, those inside `bash -c` and its kin too."""
    return _all(text, 0) if len(text) <= LONGEST else []


def persons_command(words: Sequence[str], whole: str = "") -> str:
    """The person's command of lopen that these words give; empty if they give none."""
    head = head_of(words)
    if not head or os.path.basename(head) in READERS or reads_git(words):
        return ""
    if os.path.basename(head).startswith(INTERPRETERS):
        code = next((w for w in words if re.search(_VERBS, w)), "")
        if code:
            return "through an interpreter"
    rest = _after_lopen(words)
    if rest is None and head.startswith("$") and "lopen" in whole:
        rest = list(words[list(words).index(head) + 1 :])
    return _persons_verb(rest) if rest is not None else ""


def _persons_verb(rest: Sequence[str]) -> str:
    operands, skip = [], False
    for word in rest:
        if not skip and not word.startswith("-"):
            operands.append(word)
        skip = word in _VALUED
    verb = operands[0] if operands else ""
    following = operands[1] if len(operands) > 1 else ""
    if verb.startswith("$"):
        return "with a command that cannot be read"
    if verb not in PERSONS:
        return ""
    if not PERSONS[verb]:
        return verb
    return f"{verb} {following}" if following in PERSONS[verb] or following.startswith("$") else ""


def _moved(command: Command, cwd: str) -> str:
    operands = [w for w in command.words[1:] if not w.startswith("-")]
    if command.words[:1] in (("cd",), ("pushd",)) and operands:
        return os.path.normpath(os.path.join(cwd, os.path.expanduser(operands[0])))
    return cwd


def _all(text: str, depth: int) -> list[Command]:
    """The commands of a text, with those of the shells that it starts or feeds."""
    from lopen.claude_hooks.shell import DEEPEST, commands  # read only for calls that run a command

    found: list[Command] = []
    before: Command | None = None
    for command in commands(text):
        found.append(command)
        if depth < DEEPEST:
            for inner in _inner(command, before):
                found += _all(inner, depth + 1)
        before = command
    return found


_ALIAS = re.compile(r"(?s)(?:alias\.[\w-]+=)?!(.*)")  # `!` before a git alias: a shell runs the rest


def _inner(command: Command, before: Command | None) -> Iterator[str]:
    """Texts that a shell in this command will run."""
    names = [os.path.basename(w) for w in command.words]
    shell = next((i for i, name in enumerate(names) if name in SHELLS), None)
    if names and names[0] in ("git", "git.exe"):
        yield from (found[1] for w in command.words if (found := _ALIAS.match(w)))
    if names and names[0] not in READERS and not reads_git(command.words):
        yield from (w for w in command.words if "lopen" in w and any(c.isspace() for c in w.strip()))
    yield from _scripts(command, before)
    if shell is None:
        return
    if names[shell] == "eval":
        yield " ".join(command.words[shell + 1 :])
        return
    rest = command.words[shell + 1 :]
    for i, word in enumerate(rest):
        if word.startswith("-") and not word.startswith("--") and "c" in word and i + 1 < len(rest):
            yield rest[i + 1]
    if command.fed:
        yield command.fed
    if command.piped and before is not None:
        yield before.fed or " ".join(before.words[1:])


def _scripts(command: Command, before: Command | None) -> Iterator[str]:
    """Text that is put into a file which a shell may run later."""
    names = [os.path.basename(w) for w in command.words[:1]]
    if names in (["echo"], ["printf"]) and any(_SCRIPT.match(t) for t in command.writes):
        yield _said(command)
    if names == ["cat"] and command.fed and any(_SCRIPT.match(t) for t in command.writes):
        yield command.fed
    into = [w for w in command.words[1:] if not w.startswith("-")] if names == ["tee"] else []
    if any(_SCRIPT.match(t) for t in into):
        yield command.fed or (_said(before) if command.piped and before is not None else "")


def _said(command: Command) -> str:
    """What an echo or printf prints."""
    return " ".join(command.words[1:]).replace("\\n", "\n")


def _after_lopen(words: Sequence[str]) -> list[str] | None:
    for i, word in enumerate(words):
        module = (
            word in ("lopen", "lopen.__main__")
            and i
            and words[i - 1].endswith("m")
            and words[i - 1].startswith("-")
        )
        if os.path.basename(word) in ("lopen", "lopen.exe") or module or word in ("-mlopen", "-Imlopen"):
            return list(words[i + 1 :])
    return None


def _no_person(what: str) -> str:
    return f"{what} is a person's command: ask the person to give it in a terminal of their own."


def _no_edit(path: str) -> str:
    return (
        f"{path[:200]} is protected: .claude/settings* and .lopen/ are changed by lopen and by people alone."
        " Leave it as it is, or tell the person what should change."
    )
