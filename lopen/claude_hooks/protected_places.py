"""The places that only lopen and people change, and words that name them.

They are `.lopen/`, `.claude/settings*`, lopen's configuration and data folders of the person, and lopen where it is
installed (a project that develops it has it elsewhere).
"""

from __future__ import annotations

import os

from lopen.core.person import config_folder, data_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Commands whose arguments are text to show or to look for, and files they only read.
_READ = (
    "cat less more head tail ls ll stat file wc grep egrep fgrep rg ag diff cmp jq tree du echo printf test [ [["
    " realpath readlink basename dirname md5sum sha256sum sha1sum which type man true false pwd"
)
READERS = frozenset(_READ.split())
_GIT_READ = "log diff show status ls-files blame grep check-ignore rev-parse cat-file commit add tag"
_GIT_READS = frozenset(_GIT_READ.split())
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish", "eval"})
LONGEST = 200_000
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSTALLED = os.path.basename(os.path.dirname(_PACKAGE)) in ("site-packages", "dist-packages")
_own: dict[tuple[str, ...], tuple[str, ...]] = {}  # the person's folders, by their names
_APART = str.maketrans("=:,;'\"()", " " * 8)


class ResolvedCommand:
    """One way in which a command may run: its words, the files it writes, its input, and what is piped into it."""

    __slots__ = ("fed", "sources", "subshell", "words", "writes")

    def __init__(self, words: tuple[str, ...], subshell: tuple[int, ...]) -> None:
        self.words = words
        self.subshell = subshell
        self.writes: tuple[str, ...] = ()
        self.fed = ""
        self.sources: list[ResolvedCommand] = []

    @property
    def name(self) -> str:
        """The program's name without its folder."""
        return os.path.basename(self.words[0]) if self.words else ""

    def piped(self) -> Iterator[str]:
        """Return what an echo, a printf or a here document prints into the command."""
        for source in self.sources:
            yield source.fed
            if source.name in ("echo", "printf"):
                yield " ".join(source.words[1:])


def git_parts(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Of a git command: the folder it is told to work in, its subcommand, and what follows that."""
    rest = list(words[1:])
    folder = ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _GIT_VALUED and rest:
            value = rest.pop(0)
            folder = os.path.join(folder, value) if option == "-C" else folder
    return folder, rest[0] if rest else "", rest[1:]


def reads_git(words: Sequence[str]) -> bool:
    """A git command that changes no file, or a `gh`."""
    name = os.path.basename(words[0]) if words else ""
    return name == "gh" or (name == "git" and git_parts(words)[1] in _GIT_READS)


def protected(path: str, cwd: str) -> str:
    """`path` as it was given, if it is one of the protected places, also through a symbolic link or a glob."""
    if "\0" in path or len(path) > 4_096:
        return ""
    path = _expanded(path)
    joined = os.path.normpath(os.path.join(cwd, path))
    return path if _is_protected(joined) or _is_protected(os.path.realpath(joined)) else ""


def holds(word: str, cwd: str, root: str) -> bool:
    """The word names a folder with a protected place in it: the project's, one above it, or a `.claude`."""
    if word.startswith("-") or "\0" in word or len(word) > 4_096:
        return False
    path = os.path.realpath(os.path.join(cwd, _expanded(word)))
    above = path.rstrip("/") + "/"
    return root == path or is_claude(path) or any(f.startswith(above) for f in (root, *own_folders()))


def _expanded(path: str) -> str:
    """The path with the home folder and the variables of this environment in it."""
    return os.path.expanduser(os.path.expandvars(path) if "$" in path else path)


def own_folders() -> tuple[str, ...]:
    """The person's own folders of lopen, as they are named and as they are."""
    named = (config_folder(), data_folder(), _PACKAGE if _INSTALLED else "")
    if named not in _own:
        _own[named] = tuple(
            dict.fromkeys(p for name in named if name for p in (name, os.path.realpath(name)))
        )
    return _own[named]


def is_claude(path: str) -> bool:
    """The path is a `.claude` folder, whose settings go and come with it."""
    return _may_be(os.path.basename(path.rstrip("/")).casefold(), ".claude")


def mentions(word: str, cwd: str) -> str:
    """The protected place that a word names, alone or as a part of it (`of=.lopen/state.db`)."""
    for part in dict.fromkeys(word.translate(_APART).split()) if len(word) < LONGEST else ():
        if part and not part.startswith("-") and (hit := protected(part, cwd)):
            return hit
    return ""


def _is_protected(path: str) -> bool:
    for folder in own_folders():
        if path == folder or path.startswith(folder + "/"):
            return True
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
