"""What a Claude Code session may not do: a person's commands of lopen, and edits of `.claude/settings*` and `.lopen/`.

(Contract §10.) A way in that this misses is still refused by the person's commands themselves and by the
sandbox; a false alarm costs a session a call, so what only prints or searches is left alone.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lopen.hooks.shell import Command

# The person's commands (contract, Words): verb → its subcommands that count; empty: all of it.
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
# Commands whose arguments are text to show or to look for, and files they only read.
_READ = (
    "cat less more head tail ls ll stat file wc grep egrep fgrep rg ag diff cmp jq tree du echo printf test [ [["
    " realpath readlink basename dirname md5sum sha256sum sha1sum which type man true false pwd"
)
READERS = frozenset(_READ.split())
_GIT_READ = "log diff show status ls-files blame grep check-ignore rev-parse cat-file commit add"
_GIT_READS = frozenset(_GIT_READ.split())
READ_TOOLS = frozenset(
    {"Read", "Glob", "Grep", "LS", "NotebookRead", "read_file", "list_files", "search_files"}
)
LONGEST = 200_000
_VALUED = frozenset({"-C", "--project"})


def forbidden(tool: str, arguments: Any, cwd: str, root: str) -> str:
    """Why this call is not allowed; empty where it is."""
    if not isinstance(arguments, dict):
        return ""
    command = arguments.get("command")
    if isinstance(command, str) and tool not in READ_TOOLS:
        return in_shell(command, cwd, root)
    if tool in READ_TOOLS:
        return ""
    for name, value in arguments.items():
        if isinstance(value, str) and "path" in name.lower() and (hit := protected(value, cwd)):
            return _no_edit(hit)
    return ""


def in_shell(text: str, cwd: str, root: str) -> str:
    """Why this shell text is not allowed; empty where it is."""
    if len(text) > LONGEST:
        return _no_person("a command that long") if re.search(_VERBS, text) else ""
    here = cwd
    for command in _all(text, 0):
        verb = persons_command(command.words, text)
        if verb:
            return _no_person(f"lopen {verb}")
        hit = _written(command, here, root)
        if hit:
            return _no_edit(hit)
        here = _moved(command, here)
    return ""


def simple_commands(text: str) -> list[Command]:
    """Every simple command of a text, those inside `bash -c` and its kin too."""
    return _all(text, 0) if len(text) <= LONGEST else []


def persons_command(words: Sequence[str], whole: str = "") -> str:
    """The person's command of lopen that these words give; empty if they give none."""
    head = _head(words)
    if not head or os.path.basename(head) in READERS or _reads_git(words):
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


def protected(path: str, cwd: str) -> str:
    """`path` as it was given, if it is one of the protected places, also through a symbolic link or a glob."""
    path = os.path.expanduser(path)
    if "\0" in path or len(path) > 4_096:
        return ""
    joined = os.path.normpath(os.path.join(cwd, path))
    return path if _is_protected(joined) or _is_protected(os.path.realpath(joined)) else ""


def _is_protected(path: str) -> bool:
    parts = path.casefold().split("/")
    for i, part in enumerate(parts):
        if _may_be(part, ".lopen"):
            return True
        if (
            _may_be(part, ".claude")
            and i + 1 < len(parts)
            and _may_be(parts[i + 1], "settings.json", "settings")
        ):
            return True
    return False


def _may_be(part: str, name: str, start: str = "") -> bool:
    """`part` is the name (or begins so), or a shell pattern or brace list that may become it."""
    if part == name or (start and part.startswith(start)):
        return True
    wild = any(c in part for c in "*?[")
    if not wild and "{" not in part:
        return False
    from fnmatch import fnmatchcase  # read only for the rare pattern

    return (wild and part.strip("*") != "" and fnmatchcase(name, part)) or ("{" in part and name in part)


def _written(command: Command, cwd: str, root: str) -> str:
    """The protected place that this command may change."""
    for target in command.writes:
        if hit := protected(target, cwd):
            return hit
    head = os.path.basename(_head(command.words))
    if head in READERS or _reads_git(command.words) or head in ("cd", "pushd", "lopen"):
        return ""
    if head == "find" and not {"-delete", "-exec", "-execdir", "-fprint", "-ok"} & set(command.words):
        return ""
    words = command.words[-1:] if head == "cp" else command.words[:500]
    gone = command.words[1:] if head in ("rm", "rmdir") else command.words[1:-1] if head == "mv" else ()
    if hit := next((w for w in gone if _holds(w, cwd, root)), ""):
        return hit
    return next((hit for word in words if (hit := _mentions(word, cwd))), "")


def _mentions(word: str, cwd: str) -> str:
    for part in re.split(r"[=:,;'\"\s()]", word) if len(word) < LONGEST else ():
        if part and not part.startswith("-") and (hit := protected(part, cwd)):
            return hit
    return ""


def _holds(word: str, cwd: str, root: str) -> bool:
    """The word names the project's folder, or one above it."""
    if word.startswith("-"):
        return False
    path = os.path.realpath(os.path.join(cwd, os.path.expanduser(word)))
    return root == path or root.startswith(path.rstrip("/") + "/")


def _moved(command: Command, cwd: str) -> str:
    operands = [w for w in command.words[1:] if not w.startswith("-")]
    if command.words[:1] in (("cd",), ("pushd",)) and operands:
        return os.path.normpath(os.path.join(cwd, os.path.expanduser(operands[0])))
    return cwd


def _all(text: str, depth: int) -> list[Command]:
    """The commands of a text, with those of the shells that it starts or feeds."""
    from lopen.hooks.shell import DEEPEST, commands  # read only for calls that run a command

    found: list[Command] = []
    before: Command | None = None
    for command in commands(text):
        found.append(command)
        if depth < DEEPEST:
            for inner in _inner(command, before):
                found += _all(inner, depth + 1)
        before = command
    return found


def _inner(command: Command, before: Command | None) -> Iterator[str]:
    """Texts that a shell in this command will run."""
    names = [os.path.basename(w) for w in command.words]
    shell = next((i for i, name in enumerate(names) if name in SHELLS), None)
    if names and names[0] not in READERS and not _reads_git(command.words):
        yield from (w for w in command.words if "lopen" in w and any(c.isspace() for c in w.strip()))
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


def _head(words: Sequence[str]) -> str:
    """The command's own name, behind assignments."""
    return next((w for w in words if not re.match(r"[A-Za-z_]\w*\+?=", w)), "")


def _reads_git(words: Sequence[str]) -> bool:
    if os.path.basename(_head(words)) not in ("git", "gh"):
        return False
    return any(w in _GIT_READS for w in words[1:4]) or os.path.basename(_head(words)) == "gh"


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
