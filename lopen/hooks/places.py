"""The places that only lopen and people change, `.lopen/` and `.claude/settings*`, and whether a command does.

(Contract §10.) A false alarm costs a session a call, so what only prints, searches or reads is left alone.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from lopen.hooks.shell import Command

# Commands whose arguments are text to show or to look for, and files they only read.
_READ = (
    "cat less more head tail ls ll stat file wc grep egrep fgrep rg ag diff cmp jq tree du echo printf test [ [["
    " realpath readlink basename dirname md5sum sha256sum sha1sum which type man true false pwd"
)
READERS = frozenset(_READ.split())
_GIT_READ = "log diff show status ls-files blame grep check-ignore rev-parse cat-file commit add tag"
_GIT_READS = frozenset(_GIT_READ.split())
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_COPYING = frozenset({"cp", "mv", "install", "ln", "rsync", "scp"})
_SWEEPING = frozenset({"find", "xargs", "git", "rsync"})
_WHOLE = re.compile(r"--recursive|--archive|-[A-Za-z]*[aRr][A-Za-z]*")
LONGEST = 200_000


def head_of(words: Sequence[str]) -> str:
    """The command's own name, behind assignments."""
    return next((w for w in words if not re.match(r"[A-Za-z_]\w*\+?=", w)), "")


def git_parts(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Of a git command: the folder it is told to work in, its subcommand, and what follows that."""
    rest = list(words[list(words).index(head_of(words)) + 1 :])
    folder = ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _GIT_VALUED and rest:
            value = rest.pop(0)
            folder = os.path.join(folder, value) if option == "-C" else folder
    return folder, rest[0] if rest else "", rest[1:]


def reads_git(words: Sequence[str]) -> bool:
    """A git command that changes no file, or a `gh`."""
    name = os.path.basename(head_of(words))
    return name == "gh" or (name == "git" and git_parts(words)[1] in _GIT_READS)


def protected(path: str, cwd: str) -> str:
    """`path` as it was given, if it is one of the protected places, also through a symbolic link or a glob."""
    path = os.path.expanduser(path)
    if "\0" in path or len(path) > 4_096:
        return ""
    joined = os.path.normpath(os.path.join(cwd, path))
    return path if _is_protected(joined) or _is_protected(os.path.realpath(joined)) else ""


def holds(word: str, cwd: str, root: str) -> bool:
    """The word names a folder with a protected place in it: the project's, one above it, or a `.claude`."""
    if word.startswith("-") or "\0" in word or len(word) > 4_096:
        return False
    path = os.path.realpath(os.path.join(cwd, os.path.expanduser(word)))
    return root == path or root.startswith(path.rstrip("/") + "/") or is_claude(path)


def is_claude(path: str) -> bool:
    """The path is a `.claude` folder, whose settings go and come with it."""
    return _may_be(os.path.basename(path.rstrip("/")).casefold(), ".claude")


def written(command: Command, before: Command | None, cwd: str, root: str) -> str:
    """The protected place that this command may change. `before`: the command that stands in front of it."""
    for target in command.writes:
        if hit := protected(target, cwd):
            return hit
    head = os.path.basename(head_of(command.words))
    if head in READERS or reads_git(command.words) or head in ("cd", "pushd", "lopen"):
        return ""
    words = command.words[:500]
    if head in _SWEEPING:
        from lopen.hooks import sweeping  # only for a command that may be one of these

        if head == "git":
            return sweeping.by_git(words, cwd, root)
        if head == "rsync" and (hit := sweeping.by_rsync(words, cwd, root)):
            return hit
        if head == "find":
            return sweeping.by_find(words, cwd, root)
        if head == "xargs" and command.piped and before and os.path.basename(head_of(before.words)) == "find":
            return sweeping.by_find((*before.words, "-exec", *words[1:], ";"), cwd, root)
    if head in _COPYING and (hit := _landing(words, cwd, root)):
        return hit
    gone = words[1:] if head in ("rm", "rmdir") else words[1:-1] if head == "mv" else ()
    if hit := next((w for w in gone if holds(w, cwd, root)), ""):
        return hit
    if head in ("cp", "rsync", "scp") and "--remove-source-files" not in words:
        words = words[-1:]  # the others are only read
    return next((hit for word in words if (hit := mentions(word, cwd))), "")


def mentions(word: str, cwd: str) -> str:
    """The protected place that a word names, alone or as a part of it (`of=.lopen/state.db`)."""
    for part in re.split(r"[=:,;'\"\s()]", word) if len(word) < LONGEST else ():
        if part and not part.startswith("-") and (hit := protected(part, cwd)):
            return hit
    return ""


def _landing(words: Sequence[str], cwd: str, root: str) -> str:
    """The protected place that a copied, moved or linked file would come to lie in."""
    operands = [w for w in words[1:] if not w.startswith("-")]
    into = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in ("-t", "--target-directory")), "")
    into = into or next((w.partition("=")[2] for w in words if w.startswith("--target-directory=")), "")
    sources = [w for w in operands if w != into] if into else operands[:-1]
    target = into or (operands[-1] if len(operands) > 1 else "")
    place = os.path.join(cwd, os.path.expanduser(target))
    if not target or not (is_claude(os.path.realpath(place)) or _inside(place, root)):
        return ""
    whole = words[0].endswith("mv") or any(_WHOLE.fullmatch(w) for w in words[1:])
    for source in sources:
        name = os.path.basename(source.rstrip("/"))
        lands = os.path.join(place, name)
        if protected(lands, cwd) or (whole and is_claude(lands)):
            return source
        if whole and is_claude(place) and ("." not in name.strip(".") or name in (".", "..")):
            return target  # a folder in its place, or all that lies in one
    return ""


def _inside(path: str, root: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{root}/")


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
