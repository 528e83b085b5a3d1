"""pytest's settings in any of its files: options that deselect, and places and names that are no longer looked at."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from lopen.oracle.tampering.suite import FileChange
from lopen.oracle.verdict import Finding

_DESELECTING = re.compile(
    r"^(?:-k|-m|--deselect|--ignore|--ignore-glob|--co|--collect-only|--lf|--last-failed|--setup-only|--setup-plan)(?:=|$)|^-[km]."
)
_VALUED = frozenset({"-k", "-m", "--deselect", "--ignore", "--ignore-glob", "-p", "-c", "-o", "-n", "-W"})
_DEFAULTS = {
    "python_files": ("test_*.py", "*_test.py"),
    "python_functions": ("test",),
    "python_classes": ("Test",),
}
_USUAL_FOLDER = re.compile(r"^\.?/?$|\btests?\b|\btesting\b|^src\b|^lib\b")

Settings = Mapping[str, tuple[str, ...]]


def findings(change: FileChange) -> Iterator[Finding]:
    """Errors for what the after side no longer runs. A file that does not parse is pytest's own to refuse."""
    before = read(change.path, change.before or "")
    after = read(change.path, change.after or "")
    if before is None or after is None:
        return
    known = options(before.get("addopts", ()))
    for option in options(after.get("addopts", ())):
        if option not in known:
            yield _error(change, f"pytest now runs with {option}, which leaves tests out")
    yield from _narrower_names(change, before, after)
    yield from _fewer_places(change, before, after)
    for folder in set(after.get("norecursedirs", ())) - set(before.get("norecursedirs", ())):
        if "test" in folder:
            yield _error(change, f"pytest no longer looks into {folder}")


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
    elif not was and not any(_USUAL_FOLDER.search(path) for path in now):
        yield Finding("warning", f"pytest now looks into {', '.join(now)} only (testpaths)", change.path)


def _within(path: str, folder: str) -> bool:
    folder = folder.strip("/").removeprefix("./")
    path = path.strip("/").removeprefix("./")
    return folder in {"", "."} or path == folder or path.startswith(f"{folder}/")


def _error(change: FileChange, message: str) -> Finding:
    return Finding("error", message, change.path)


def options(words: Sequence[str]) -> list[str]:
    """The deselecting options among command line words, each with its value."""
    found = []
    for index, word in enumerate(words):
        if _DESELECTING.match(word) and (index == 0 or words[index - 1] not in _VALUED):
            following = words[index + 1 : index + 2] if word in _VALUED else []
            found.append(" ".join([word, *following]))
    return found


def read(path: str, text: str) -> Settings | None:
    """pytest's settings as words; None where the file does not parse."""
    name = path.rpartition("/")[2]
    if name.endswith(".toml"):
        return _toml(text)
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    section = "tool:pytest" if name == "setup.cfg" else "pytest"
    if not parser.has_section(section):
        return {}
    return {key: tuple(_words(value or "")) for key, value in parser.items(section)}


def _toml(text: str) -> Settings | None:
    try:
        table: object = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    for key in ("tool", "pytest"):
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
