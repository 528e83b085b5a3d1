"""Find the protected place that one command may change.

A false alarm costs a session a call, so commands that only print, search or read pass.
"""

from __future__ import annotations

import os

from lopen.claude_hooks.protected_places import (
    READERS,
    ResolvedCommand,
    holds,
    is_claude,
    mentions,
    protected,
    reads_git,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_COPYING = frozenset({"cp", "mv", "install", "ln", "rsync", "scp"})
_SWEEPING = frozenset({"find", "xargs", "git", "rsync"})


def written(command: ResolvedCommand, cwd: str, root: str) -> str:
    """The protected place that this command may change; empty where there is none."""
    for target in command.writes:
        if hit := protected(target, cwd):
            return hit
    head = command.name
    if head in READERS or reads_git(command.words) or head in ("cd", "pushd", "lopen"):
        return ""
    words = command.words
    if head in _SWEEPING:
        from lopen.claude_hooks import bulk_commands  # only for a command that may be one of these

        if head == "git":
            return bulk_commands.by_git(words, cwd, root)
        if head == "rsync" and (hit := bulk_commands.by_rsync(words, cwd, root)):
            return hit
        if head == "find":
            return bulk_commands.by_find(words, cwd, root)
        for source in command.sources if head == "xargs" else ():
            if source.name == "find":
                return bulk_commands.by_find((*source.words, "-exec", *words[1:], ";"), cwd, root)
            if READERS.isdisjoint(words[1:]) and (hit := _looked_through(source, cwd)):
                return hit
    if head in _COPYING and (hit := _landing(words, cwd, root)):
        return hit
    gone = words[1:] if head in ("rm", "rmdir") else words[1:-1] if head == "mv" else ()
    if hit := next((w for w in dict.fromkeys(gone) if holds(w, cwd, root)), ""):
        return hit
    if head in ("cp", "rsync", "scp") and "--remove-source-files" not in words:
        words = words[-1:]  # the others are only read
    return next((hit for word in dict.fromkeys(words) if (hit := mentions(word, cwd))), "")


def _looked_through(source: ResolvedCommand, cwd: str) -> str:
    """The protected place whose files a command lists; a pattern to look for is none."""
    operands = [word for word in source.words[1:] if not word.startswith("-")]
    skipped = 1 if "grep" in source.name or source.name == "rg" else 0
    return next((hit for word in operands[skipped:] if (hit := mentions(word, cwd))), "")


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
    whole = words[0].endswith("mv") or any(map(_is_whole, words[1:]))
    for source in sources:
        name = os.path.basename(source.rstrip("/"))
        lands = os.path.join(place, name)
        if protected(lands, cwd) or (whole and is_claude(lands)):
            return source
        if whole and is_claude(place) and ("." not in name.strip(".") or name in (".", "..")):
            return target  # a folder in its place, or all that lies in one
    return ""


def _is_whole(option: str) -> bool:
    """The option asks for whole folders."""
    letters = option[1:] if option[:1] == "-" else ""
    return option in ("--recursive", "--archive") or (letters.isalpha() and bool(set(letters) & set("aRr")))


def _inside(path: str, root: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{root}/")
