"""pytest's settings in any of its files: options that deselect, and places and names that are no longer looked at."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from lopen.core.untrusted_tables import PARSER_ERRORS, read_toml_table
from lopen.test_integrity.suite import FileChange, words
from lopen.verification.findings import Finding

_DESELECTING = re.compile(
    r"^(?:-k|-m|--deselect|--ignore|--ignore-glob|--co|--collect-only|--lf|--last-failed|--setup-only|--setup-plan"
    r"|--noconftest|--sw|--stepwise|--pyargs|--rootdir|-c)(?:=|$)|^-[km].|^@"
)
_LEFT_OUT_WITH = frozenset(
    {"python", "unittest", "doctest", "nose", "main", "runner", "session", "terminal"}
)  # pytest's own
_VALUED = words(
    "-k -m --deselect --ignore --ignore-glob -p -c -o -n -W --override-ini --rootdir --cov --confcutdir"
)
_BOOLEAN = words(
    "--strict-markers --strict-config --strict --verbose --quiet --exitfirst --showlocals --doctest-modules --no-header"
)
_OVERRIDDEN = re.compile(
    r"^(?:-o|--override-ini=?)?(?:addopts|testpaths|python_\w+|norecursedirs|collect_\w+)\b"
)
_PLACE = re.compile(r"/|\.py$|::")
_DEFAULTS = {
    "python_files": ("test_*.py", "*_test.py"),
    "python_functions": ("test",),
    "python_classes": ("Test",),
}
_USUAL_PLACE = re.compile(r"^(?:\./)?(?:tests?|src|\.)?/?$")
_PART = re.compile(r"^(?:\./)?tests?/[^/]")  # of the tests' folder
_NO_TESTS = re.compile(
    r"^[.*]|env$|egg|cache|^(?:build|dist|node_modules|docs?|data|fixtures|vendor|third_party|tmp|temp|target|out|site|benchmarks?|examples?|CVS|_darcs|\{arch\})\b"
)
_USUAL_FOLDER = re.compile(r"^\.?/?$|\btests?\b|\btesting\b|^src\b|^lib\b")

_REGISTERED = re.compile(r"(?:^[ \t]+|[\"'\[])([a-z_]\w*)[ ]?:[ ]", re.MULTILINE)  # `slow: takes a minute`
_USED = re.compile(r"\bmark\.(\w+)")
_ON = (("true",), ("True",), ("1",), ("yes",), ("on",))

FILES = re.compile(r"(?:^|/)(?:\.?pytest\.ini|\.?pytest\.toml|pyproject\.toml|tox\.ini|setup\.cfg)$")
Settings = Mapping[str, tuple[str, ...]]


def findings(change: FileChange, changes: Sequence[FileChange] = ()) -> Iterator[Finding]:
    """Errors for what the after side no longer runs. A file that does not parse is pytest's own to refuse.

    Settings that move between two files of a folder are compared with what they were in the other one.
    """
    before = read(change.path, change.before or "")
    after = read(change.path, change.after or "")
    if before is None or after is None:
        return
    if not before or not after:
        folder = change.path.rpartition("/")[0]
        beside = [
            c
            for c in changes
            if c is not change and c.path.rpartition("/")[0] == folder and FILES.search(c.path)
        ]
        sides = [(read(c.path, c.before or ""), read(c.path, c.after or "")) for c in beside]
        before = before or next((was for was, now in sides if was and not now), before)
        after = after or next((now for was, now in sides if now and not was), after)
    known = options(before.get("addopts", ()))
    for option in options(after.get("addopts", ())):
        of_new = option.startswith("-m not ") and option[7:] in new_marks(changes)
        if option not in known and not of_new:
            yield _error(change, f"pytest now runs with {option}, which leaves tests out")
    if before.get("xfail_strict") in _ON and after.get("xfail_strict") not in _ON:
        yield Finding("warning", "tests marked xfail may pass now (xfail_strict)", change.path)
    if "error" in before.get("filterwarnings", ()) and "error" not in after.get("filterwarnings", ()):
        yield Finding("warning", "warnings fail no test any more (filterwarnings)", change.path)
    if _reruns(after) and not _reruns(before):
        yield Finding("warning", "tests pass if one of several tries does (--reruns)", change.path)
    yield from _narrower_names(change, before, after)
    yield from _fewer_places(change, before, after)
    for folder in set(after.get("norecursedirs", ())) - set(before.get("norecursedirs", ())):
        if "test" in folder or folder.strip("/") in {"*", "**", "."}:
            yield _error(change, f"pytest no longer looks into {folder}")
        elif not _NO_TESTS.search(folder):
            yield Finding("warning", f"pytest no longer looks into {folder}", change.path)


def _reruns(settings: Settings) -> bool:
    given = (*settings.get("addopts", ()), *(f"--{key}" for key in settings if key in {"reruns", "retries"}))
    return any(
        word.startswith(("--reruns", "--retries", "--flake-finder", "--force-flaky")) for word in given
    )


def _narrower_names(change: FileChange, before: Settings, after: Settings) -> Iterator[Finding]:
    for key, default in _DEFAULTS.items():
        lost = set(before.get(key, default)) - set(after.get(key, default))
        covered = {
            n
            for n in lost
            if any(
                n.startswith(kept.rstrip("*")) for kept in after.get(key, default) if key != "python_files"
            )
        }
        if lost - covered and not {"*.py"} & set(after.get(key, default)):
            yield _error(change, f"pytest no longer collects {', '.join(sorted(lost - covered))} ({key})")


def _fewer_places(change: FileChange, before: Settings, after: Settings) -> Iterator[Finding]:
    was, now = before.get("testpaths", ()), after.get("testpaths", ())
    if not now:
        return
    lost = [path for path in was if not any(_within(path, kept) for kept in now)]
    if lost:
        yield _error(change, f"pytest no longer looks into {', '.join(lost)} (testpaths)")
    elif not was and all(path.endswith(".py") or "::" in path for path in now):
        yield _error(change, f"pytest now looks into {', '.join(now)} only (testpaths)")
    elif not was and not any(_USUAL_FOLDER.search(path) and not _PART.search(path) for path in now):
        yield Finding("warning", f"pytest now looks into {', '.join(now)} only (testpaths)", change.path)


def _within(path: str, folder: str) -> bool:
    folder = folder.strip("/").removeprefix("./")
    path = path.strip("/").removeprefix("./")
    return folder in {"", "."} or path == folder or path.startswith(f"{folder}/")


def _error(change: FileChange, message: str) -> Finding:
    return Finding("error", message, change.path)


def options(line: Sequence[str]) -> list[str]:
    """The deselecting options among command line words, each with its value."""
    found = []
    for index, word in enumerate(line):
        earlier = line[index - 1] if index else ""
        plugin = word if earlier == "-p" else word.removeprefix("-p") if word.startswith("-pno:") else ""
        if plugin.removeprefix("no:") in _LEFT_OUT_WITH and plugin.startswith("no:"):
            found.append(f"-p {plugin}")
        elif _DESELECTING.match(word) and earlier not in _VALUED:
            following = line[index + 1 : index + 2] if word in _VALUED else []
            found.append(" ".join([word, *following]))
        elif _OVERRIDDEN.match(word) and (earlier in {"-o", "--override-ini"} or word[0] == "-"):
            found.append(f"{earlier} {word}".strip())
        elif _is_place(word) and not _takes_value(earlier):
            found.append(f"the place {word} only")
    return found


def _is_place(word: str) -> bool:
    """Return True if a word names a part of the tests."""
    return bool(_PLACE.search(word)) and not word.startswith("-") and not _USUAL_PLACE.match(word)


def _takes_value(option: str) -> bool:
    """Return True if the word behind an option is its value."""
    return option in _VALUED or (option.startswith("--") and "=" not in option and option not in _BOOLEAN)


def read(path: str, text: str) -> Settings | None:
    """pytest's settings as words; None where the file does not parse."""
    name = path.rpartition("/")[2]
    if name.endswith(".toml"):
        return _toml(text, own=name != "pyproject.toml")
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except (configparser.Error, *PARSER_ERRORS):
        return None
    section = "tool:pytest" if name == "setup.cfg" else "pytest"
    if not parser.has_section(section):
        return {}
    return {key: tuple(_words(value or "")) for key, value in parser.items(section)}


def _toml(text: str, *, own: bool) -> Settings | None:
    table: object = read_toml_table(text)
    if table is None:
        return None
    for key in ("pytest",) if own else ("tool", "pytest"):
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if isinstance(table, dict) and isinstance(table.get("ini_options"), dict):
        table = table["ini_options"]
    if not isinstance(table, dict):
        return {}
    return {
        key: tuple(map(str, value)) if isinstance(value, list) else tuple(_words(str(value)))
        for key, value in table.items()
    }


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def new_marks(changes: Sequence[FileChange]) -> frozenset[str]:
    """Return the marks that the change itself registers, and puts on tests of new files alone."""
    texts = [c for c in changes if c.after and c.path.endswith((".py", ".toml", ".ini", ".cfg"))]
    was = {mark for c in texts for mark in _REGISTERED.findall(c.before or "")}
    now = {mark for c in texts for mark in _REGISTERED.findall(c.after or "")}
    before, new = (
        {mark for c in texts if bool(c.before) is old for mark in _USED.findall(c.after or "")}
        for old in (True, False)
    )
    return frozenset((now - was) & (new - before))
