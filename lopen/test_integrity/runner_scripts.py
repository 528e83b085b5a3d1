"""Scripts and make files that run the tests: their commands, what their targets run, what make reads besides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lopen.test_integrity.python.pytest_settings import options
from lopen.test_integrity.runner_commands import (
    DELEGATING,
    REWRITING,
    RUNNER,
    beside_a_whole_one,
    command_findings,
    command_name,
    divides,
    no_longer_runs,
    split_command,
)
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_PROGRAM = re.compile(r"(?m)(?:^|[\s@])(?:\./|[\w.-]+/)*[\w.-]+\.(?:sh|py|[cm]?js|pl|rb)\b|(?:^|[\s@])\./\w")
_NOT_RUN = re.compile(r"^\s*(?:#|//|@?echo\b|@?printf\b|\.PHONY|deps\b|pip\b|@?which\b|@?command -v)")
_SETTING = re.compile(r"\binstall\b|^\s*(?:import|from)\b|^\[|^\w[\w-]*\s*=\s*\"?$")
_VARIABLE = re.compile(r"^(?:export\s+)?(?P<name>[\w.]+)\s*[:?+]?=\s*(?P<value>.*)$")
_TARGET = re.compile(
    r"^ *(?P<names>[\w./-]+(?: +[\w./-]+)*)\s*::?(?!=)\s*(?P<needs>[^;#=]*)(?:;\s*(?P<recipe>.*)|#.*)?$"
)
_TEST_TARGET = re.compile(r"^(?:test|tests|check|verify|ci|all)$|test|spec|unit|integration|e2e")
_MARKED = r"(?:(?:export|override|private)[ \t]+)*"
_SHELLS = r"[ \t]*(?:/(?:[\w.+@-]+/)*bin/(?:env[ \t]+)?)?(?:ba|da|z|k|a)?sh(?![\w./-])|[ \t]*\$\(shell[ \t][^)\n]*sh\b|[ \t]*(?:pwsh|cmd)\b"
INCLUDED = re.compile(r"^(?:-|s)?include[ \t]+(.+)$", re.MULTILINE)
_ADDED_OPTIONS = re.compile(r"\bPYTEST_ADDOPTS[\"']?[ \t]*[:+?]?[=:][ \t]*(.*)$", re.MULTILINE)


def script_findings(change: FileChange) -> Iterator[Finding]:
    """Lines of scripts and make files that run the tests."""
    was, now = _runner_lines(change.before), _runner_lines(change.after)
    known = set(was.values())
    for line, text in now.items():
        if text not in known:
            closest = next((old for old in was.values() if command_name(old) == command_name(text)), "")
            what = f"`{text.strip()[:80]}`"
            safe = "pipefail" in (change.after or "")
            if _is_additional(change, closest, text, now.values()):
                continue
            divided = divides(closest, [other for other in now.values() if other not in known])
            for each in command_findings(change.path, what, closest, text, line=line, pipes_fail=safe):
                if not (divided and " runs only " in each.message):
                    yield each
    if was and not now:
        first = next(iter(was.values())).strip()[:80]
        yield Finding("error", f"`{first}` is gone: the tests are no longer run", change.path)
    elif re.search(r"[Mm]akefile$|\.mk$", change.path):
        yield from _make_findings(change)
    yield from _environment_findings(change)
    if "ignore_outcome" in (change.after or "") and "ignore_outcome" not in (change.before or ""):
        yield Finding("error", "tox passes even if tests fail (ignore_outcome)", change.path)


def _is_additional(change: FileChange, closest: str, text: str, now: Iterable[str]) -> bool:
    """Return True for a command of its own beside one that still runs all, in a target that ran no tests before."""
    if change.path.endswith("tox.ini"):
        return False  # there the same word is a dependency, too
    if not beside_a_whole_one(closest, text, now):
        return bool(REWRITING.search(text)) and not closest
    old, new = _targets(change.before or ""), _targets(change.after or "")
    tested = {name for name, (_, recipe) in old.items() if RUNNER.search(recipe)}
    tested |= {need for name in tested for need in new.get(name, ((), ""))[0]}
    return not any(text.strip() in new[name][1] for name in tested if name in new)


def _make_findings(change: FileChange) -> Iterator[Finding]:
    """What a make file says about all its commands, and what its targets no longer do."""
    before, after = change.before or "", change.after or ""
    for pattern, why in (
        (r"^\.IGNORE\s*:.*$", "ignores failures"),
        (
            rf"^{_MARKED}(?:GNU)?MAKEFLAGS[ \t]*[:+?]?=(?:.*(?:[ \t]|=)-?\w*[intq]\w*\b.*"
            r"|.*--(?:ignore-errors|dry-run|just-print|touch|question).*)$",
            "passes even if tests fail",
        ),
        (
            rf"^{_MARKED}(?:[\w.-]+[ \t]*:[ \t]*)?SHELL[ \t]*:*[?]?=(?!{_SHELLS}).*$"
            r"|^\.SHELLFLAGS[ \t]*[:?+]?=(?!.*c[ \t]*$).*$",
            "runs no command, or through a program that is not a shell",
        ),
    ):
        known = re.findall(pattern, before, re.MULTILINE)
        for found in re.finditer(pattern, after, re.MULTILINE):
            if found.group() not in known:
                line = after.count("\n", 0, found.start()) + 1
                yield Finding("error", f"`{found.group().strip()[:80]}` {why}", change.path, line)
    yield from _other_files(change)
    yield from _preferred_findings(change)
    old, new = _targets(before), _targets(after)
    for name, (needs, recipe) in old.items():
        if not _TEST_TARGET.search(name):
            continue
        kept, now = new.get(name, ((), ""))
        lost = [
            each
            for each in needs
            if each not in kept and RUNNER.search(old.get(each, ((), ""))[1]) and not RUNNER.search(now)
        ]
        if lost:
            yield Finding("error", f"the target {name} no longer runs {', '.join(lost)}", change.path)
        elif no_longer_runs(recipe, now) and not any(
            RUNNER.search(new.get(each, ((), ""))[1]) for each in kept
        ):
            yield Finding("error", f"the target {name} no longer runs the tests", change.path)


def _other_files(change: FileChange) -> Iterator[Finding]:
    """Make files that are now read too, or in place of another: what a target runs may be written there."""
    known = set(INCLUDED.findall(change.before or ""))
    for names in INCLUDED.findall(change.after or ""):
        if names not in known:
            yield Finding(
                "warning",
                f"make now reads {names.strip()[:80]} too, which can change what targets run",
                change.path,
            )
    if re.search(r"^\.ONESHELL\b", change.after or "", re.MULTILINE) and ".ONESHELL" not in (
        change.before or ""
    ):
        message = "make now runs each recipe as one script (.ONESHELL), of which the last command's exit code counts"
        yield Finding("warning", message, change.path)


def _preferred_findings(change: FileChange) -> Iterator[Finding]:
    """A new file that make reads in place of `Makefile`: an error where its target for the tests runs none."""
    name = change.path.rpartition("/")[2]
    if change.before is not None or name not in {"GNUmakefile", "makefile"}:
        return
    targets = _targets(change.after or "")
    for target in sorted({"test", "tests", "check", "verify"} & set(targets)):
        needs, recipe = targets[target]
        recipes = [recipe, *(targets.get(each, ((), ""))[1] for each in needs)]
        if not any(
            RUNNER.search(each) or DELEGATING.search(each) or _PROGRAM.search(each) for each in recipes
        ):
            message = f"make reads {name} in place of Makefile, and its target {target} runs no tests"
            yield Finding("error", message, change.path)
            return
    if re.search(r"^%\s*::?(?!=)", change.after or "", re.MULTILINE) and not DELEGATING.search(
        change.after or ""
    ):
        message = f"make reads {name} in place of Makefile, and its rule for any target runs no tests"
        yield Finding("error", message, change.path)
    elif name == "GNUmakefile":
        yield Finding("warning", "make reads GNUmakefile in place of Makefile, if there is one", change.path)


def _environment_findings(change: FileChange) -> Iterator[Finding]:
    """Options that pytest takes from its environment, where a file sets it."""
    known = _ADDED_OPTIONS.findall(change.before or "")
    for found in _ADDED_OPTIONS.finditer(change.after or ""):
        left_out = options(split_command(found[1].strip("\"' ")))
        if left_out and found[1] not in known:
            line = (change.after or "").count("\n", 0, found.start()) + 1
            message = f"PYTEST_ADDOPTS has {left_out[0]}, which leaves tests out"
            yield Finding("error", message, change.path, line)


def _targets(text: str) -> Mapping[str, tuple[Sequence[str], str]]:
    """Targets of a make file: what each needs, and its recipe: the last one, but for rules with two colons."""
    found: dict[str, tuple[Sequence[str], str]] = {}
    names: list[str] = []
    earlier: set[str] = set()  # whose recipe is of a rule above
    for line in _expanded(text):
        if line.startswith("\t"):
            for name in names:
                recipe = "" if name in earlier else found[name][1]
                found[name] = (found[name][0], recipe if _NOT_RUN.match(line) else f"{recipe}\n{line}")
            earlier.difference_update(names)
        elif target := _TARGET.match(line):
            names = target["names"].split()
            for name in names:
                needs, recipe = found.get(name, ((), ""))
                if recipe.strip() and "::" not in line:
                    earlier.add(name)
                found[name] = ([*needs, *target["needs"].split()], f"{recipe}\n{target['recipe'] or ''}")
        elif line.strip() and not line.startswith((" ", "#")):
            names = []
    return found


def _expanded(text: str) -> list[str]:
    """Lines with the variables that the text defines replaced by their values, and continued lines joined.

    The lines keep their numbers: a continued line's rest is empty.
    """
    lines = text.splitlines()
    for at in range(len(lines) - 2, -1, -1):
        if lines[at].endswith("\\"):
            lines[at], lines[at + 1] = f"{lines[at][:-1].rstrip()} {lines[at + 1].strip()}", ""
    values = {found["name"]: found["value"] for line in lines if (found := _VARIABLE.match(line))}
    for _ in range(3):
        lines = [
            re.sub(r"\$[({](\w+)[)}]", lambda m: values.get(m[1], m[0])[:200], line)[:2000] for line in lines
        ]
    return lines


def _runner_lines(text: str | None) -> dict[int, str]:
    return {
        number: line
        for number, line in enumerate(_expanded(text or ""), 1)
        if RUNNER.search(line) and not _NOT_RUN.match(line) and not _SETTING.search(line)
        and not (_VARIABLE.match(line) and not line.startswith((" ", "\t", "commands")))
    }  # fmt: skip
