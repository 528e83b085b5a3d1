"""Commands that name a whole folder and change what lies in it: find, git, rsync. Read only where one is given.

Whether they reach a protected place depends on what is there, so the project's files are looked at, and git is
asked where only git knows.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from itertools import pairwise

from lopen.claude_hooks.protected_places import (
    READERS,
    git_parts,
    holds,
    is_claude,
    mentions,
    own_folders,
    protected,
)
from lopen.claude_hooks.work_tree import git_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_LOOKED_AT = 2_000
GIT_WITHIN_S = 1.0
_ALWAYS = (".lopen/config.toml", ".lopen/state.db", ".lopen/logs/lopen.jsonl", ".lopen/logs/hooks.jsonl")
_OWN = ("config.toml", "seal.key")
_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FILES = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})
_CHANGE = "rm rmdir unlink mv cp ln shred truncate dd tee chmod chown install sed perl"
_CHANGING = frozenset(_CHANGE.split())
_PATTERNS = {"-name", "-iname", "-path", "-wholename", "-ipath"}


def by_rsync(words: Sequence[str], cwd: str, root: str) -> str:
    """`rsync --delete` empties the folder it fills; what is excluded stays."""
    deleting = any(w.startswith("--del") for w in words)
    if not deleting or {"-n", "--dry-run"} & set(words):
        return ""
    spared = [w for w in words if "exclude" in w or not w.startswith("-")]
    if all(any(name in w for w in spared) for name in (".lopen", ".claude")):
        return ""
    return words[-1] if holds(words[-1], cwd, root) else ""


def by_find(words: Sequence[str], cwd: str, root: str) -> str:
    """Return what `find … -delete`, or a command that it runs over what it finds, would change."""
    first = next((i for i, w in enumerate(words[1:], 1) if w[:1] in ("-", "(", "!")), len(words))
    starts, tests, wholes = list(words[1:first]) or ["."], list(words[first:]), False
    for i, word in enumerate(tests):
        if word in _FILES and (hit := mentions(tests[i + 1] if i + 1 < len(tests) else "", cwd)):
            return hit
    changing = "-delete" in tests
    for i, word in enumerate(tests):
        if word in _RUNS:
            run = tests[i + 1 : _end(tests, i + 1)]
            if os.path.basename(run[0] if run else "") not in READERS:
                if hit := next((hit for w in run if (hit := mentions(w, cwd))), ""):
                    return hit
                named = {os.path.basename(w) for part in run for w in re.split(r"[\s;|&]+", part)}
                changing, wholes = changing or bool(named & _CHANGING), wholes or bool(named & _CHANGING)
    if not changing:
        return ""
    for start in starts:
        if protected(start, cwd):
            return start
        if holds(start, cwd, root):
            found = list(_candidates(start, cwd, root, folders=wholes))
            if hit := next(iter(_matched(tests, start, found)), ""):
                return hit
    return ""


def _end(tests: Sequence[str], start: int) -> int:
    return next((i for i in range(start, len(tests)) if tests[i] in (";", "+")), len(tests))


def _candidates(start: str, cwd: str, root: str, *, folders: bool) -> Iterator[str]:
    """The protected files below `start`, as find names them; with `folders` those too, ending in a slash."""
    top = os.path.realpath(os.path.join(cwd, os.path.expanduser(start)))
    inside = {os.path.join(root, name) for name in (*_ALWAYS, *_SETTINGS)}
    inside |= {os.path.join(folder, name) for folder in own_folders() for name in _OWN}
    if folders:
        inside |= {os.path.join(root, ".lopen", ""), os.path.join(root, ".claude", "")}
    for folder, below, files in os.walk(os.path.join(root, ".lopen")):
        inside.update(os.path.join(folder, name) for name in files)
        if folders:
            inside.update(os.path.join(folder, name, "") for name in below)
        if len(inside) > MOST_LOOKED_AT:
            break
    for path in sorted(inside):
        if path.startswith(top.rstrip("/") + "/"):
            yield os.path.join(start, path[len(top.rstrip("/")) + 1 :])


def _matched(tests: Sequence[str], start: str, candidates: list[str]) -> list[str]:
    """Those of the candidates that the tests let through; a test that is not known lets all through."""
    depth = next((w for t, w in pairwise(tests) if t == "-maxdepth"), "")
    alive = [c for c in candidates if not depth.isdecimal() or _depth(c, start) <= int(depth)]
    branch: list[str] = []
    for word in [*(t for t in tests if t not in ("(", ")")), "-o"]:
        if word not in ("-o", "-or"):
            branch.append(word)
            continue
        found = [c for c in alive if _passes(branch, c)]
        if "-prune" not in branch:
            if found:
                return found
        else:
            pruned = tuple(c.rstrip("/") + "/" for c in found)
            named = [branch[i + 1] for i, t in enumerate(branch[:-1]) if t in _PATTERNS]
            alive = [c for c in alive if not c.startswith(pruned) and not _below(c, named)]
        branch = []
    return []


def _below(candidate: str, patterns: list[str]) -> bool:
    """A folder above the candidate has a name that is passed over."""
    parts = candidate.split("/")
    above = [*parts[:-1], *("/".join(parts[:i]) for i in range(1, len(parts)))]
    return any(fnmatchcase(name, pattern) for name in above for pattern in patterns)


def _depth(candidate: str, start: str) -> int:
    return candidate[len(start) :].strip("/").count("/") + 1


def _passes(branch: Sequence[str], candidate: str) -> bool:
    path, name = candidate.rstrip("/"), os.path.basename(candidate.rstrip("/"))
    for i, test in enumerate(branch[:-1]):
        value, negated = branch[i + 1], (branch[i - 1] in ("!", "-not") if i else False)
        if test in _PATTERNS:
            seen = name if test in ("-name", "-iname") else path
            if test.startswith("-i"):
                seen, value = seen.casefold(), value.casefold()
            said = fnmatchcase(seen, value)
        elif test == "-type":
            said = candidate.endswith("/") if value == "d" else value == "f" and not candidate.endswith("/")
        else:
            continue
        if said is negated:
            return False
    return True


def by_git(words: Sequence[str], cwd: str, root: str) -> str:
    """Return what a git command takes from the work tree, or puts there."""
    folder, verb, rest = git_parts(words)
    here = os.path.join(cwd, folder)
    if verb == "clean":
        return _cleaned(rest, here, root)
    if verb == "stash":
        return _stashed(rest, here, root)
    operands = [w for w in rest if not w.startswith("-")]
    if verb in ("rm", "mv") and "--cached" not in rest:
        gone = operands if verb == "rm" else operands[:-1]
        if hit := next((w for w in gone if holds(w, here, root)), ""):
            return hit
    if verb in ("checkout", "restore"):
        return _restored(verb, rest, here, root)
    return next((hit for word in words if (hit := mentions(word, here))), "")


def _letters(rest: Sequence[str]) -> str:
    return "".join(w[1:] for w in rest if w.startswith("-") and not w.startswith("--"))


def _cleaned(rest: Sequence[str], here: str, root: str) -> str:
    """git itself says what it would remove; where it cannot, everything ignored is taken for reached."""
    if "n" in _letters(rest) or "--dry-run" in rest:
        return ""
    asked = [w if w.startswith("--") or not w.startswith("-") else w.translate(_QUIET) for w in rest]
    said = _git(here, "clean", "-n", *(w for w in asked if w not in ("-", "--quiet", "--interactive")))
    if said is None:
        paths = [w for w in rest if not w.startswith("-")] or ["."]
        reached = [w for w in paths if holds(w, here, root) or protected(w, here)]
        return reached[0] if reached and set("xX") & set(_letters(rest)) else ""
    names = [
        line.removeprefix("Would remove ").strip('"') for line in said if line.startswith("Would remove ")
    ]
    return next((n for n in names if protected(n, here) or is_claude(n)), "")


_QUIET = str.maketrans("", "", "qi")


def _stashed(rest: Sequence[str], here: str, root: str) -> str:
    if rest and rest[0] not in ("push", "save") and not rest[0].startswith("-"):
        return ""  # list, show, pop, …
    paths = list(rest[rest.index("--") + 1 :]) if "--" in rest else []
    if paths and not any(holds(p, here, root) or protected(p, here) for p in paths):
        return ""
    if "--all" in rest or "a" in _letters(rest):
        return ".lopen"
    if "--include-untracked" in rest or "u" in _letters(rest):
        said = _git(root, "ls-files", "--others", "--exclude-standard", "--", *_SETTINGS)
        return said[0] if said else ""
    return ""


def _restored(verb: str, rest: Sequence[str], here: str, root: str) -> str:
    """The settings file that another version would replace."""
    source, paths = _asked_for(verb, rest, here)
    if verb == "restore" and ({"--staged", "-S"} & set(rest)) and not ({"--worktree", "-W"} & set(rest)):
        return ""
    if hit := next((p for p in paths if protected(p, here) or is_claude(os.path.join(here, p))), ""):
        return hit
    wide = [p for p in paths if p.startswith(":") or p == "*" or holds(p, here, root)]
    if not wide:
        return ""
    said = _git(root, "diff", "--name-only", "--no-ext-diff", "--no-textconv", *source, "--", *_SETTINGS)
    if said is None:
        return wide[0] if source else ""
    return said[0] if said else ""


def _asked_for(verb: str, rest: Sequence[str], here: str) -> tuple[list[str], list[str]]:
    """The version and the paths that a checkout or restore names."""
    source, operands, skip = [], [], ""
    before = rest[: list(rest).index("--")] if "--" in rest else rest
    for word in before:
        if skip:
            source, skip = [word], ""
        elif verb == "restore" and word in ("-s", "--source"):
            skip = word
        elif verb == "restore" and word.startswith("--source="):
            source = [word.partition("=")[2]]
        elif verb == "restore" and re.fullmatch(r"-s.+", word):
            source = [word[2:]]
        elif not word.startswith("-"):
            operands.append(word)
    if verb == "checkout" and operands and ("--" in rest or not _is_path(operands[0], here)):
        source, operands = operands[:1], operands[1:]
    after = list(rest[list(rest).index("--") + 1 :]) if "--" in rest else []
    return [s for s in source if not s.startswith("-")], [*operands, *after]


def _is_path(word: str, here: str) -> bool:
    return word.startswith(":") or os.path.lexists(os.path.join(here, word))


def _git(folder: str, *arguments: str) -> list[str] | None:
    return git_lines(folder, *arguments, within_s=GIT_WITHIN_S)
