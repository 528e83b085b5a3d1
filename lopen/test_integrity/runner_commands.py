"""Commands that run tests, in make files, scripts and `package.json`: options that leave tests out, failures that pass."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from lopen.oracle.verdict import Finding
from lopen.test_integrity.python.pytest_settings import options
from lopen.test_integrity.suite import FileChange, words

RUNNER = re.compile(
    r"\b(?:pytest|unittest|nose2|tox|nox|jest|vitest|mocha|ava|tap|jasmine|karma|playwright|cypress|ctest|rspec|phpunit|pest|paratest)\b"
    r"|\bnode\s+--test|\b(?:manage\.py|django-admin)\s+test\b|\b(?:npm|pnpm|yarn|bun|go|cargo|deno|dotnet|gradle|gradlew|mvn|mvnw)\b.{0,100}\b(?:test|verify|check)\b"
)
_TOLERANT = re.compile(
    r"\|\|\s*(?:true\b|:|exit\s+0|echo\b|printf\b|/bin/true)|;\s*(?:true|:|exit\s+0|echo\b.*)\s*;?[\"']?$|^\s*@?-|=\s*-\s+\w"
    r"|\bset\s+\+e\b|(?<!\|)\|\s*(?:tee|cat|head|tail|grep|sed|awk|xargs)\b|(?:^|\bif\s+|\s)!\s+\w|(?<!&)&\s*$"
    r"|\bsuccess_codes\s*=|-Dmaven\.test\.failure\.ignore|\s(?:-fn|--fail-never|--exit-zero)\b|\bexit\s+0\s*[\"']?$"
)
_REWRITING = re.compile(
    r"\bINSTA_(?:UPDATE=(?:always|unseen|force)|FORCE_PASS=1)|\bUPDATE_EXPECT=1|\bTRYBUILD=overwrite|\s-update\b"
)
_LEAVING_OUT = re.compile(
    r"(?<=\s)(?:--(?:deselect|ignore|ignore-glob|skip|exclude|testPathIgnorePatterns|passWithNoTests|pass-with-no-tests|collect-only"
    r"|co|no-run|list|lf|last-failed|testNamePattern|testPathPatterns?|grep|fgrep|invert|selectProjects|onlyChanged|changed(?:Since)?|testsuite|exclude-group|group|only-failures"
    r"|related|filter|tag|tests|lib|bins|doc|noconftest|override-ini|test-(?:name|skip)-pattern|dry-run|listTests)\b"
    r"|(?<!-workspaces )(?<!-ws )(?<!-r )--if-present\b(?!.*\s(?:--workspaces|-ws|-r)\b)"  # npm may pass over members without tests
    r"|-k(?=[\s=\"'])|-m(?=\s+[\"']?(?:not|\w+[\"']?(?:\s+(?:and|or|not)\b|\s*$)))|-t(?=[\s=])|-g(?=[\s=])|-run[\s=]|-skip[\s=]|-short\b"
    r"|-o(?=\s+(?:addopts|testpaths|python_)))|-DskipTests|-Dmaven\.test\.skip|-Dtest=|-DexcludedGroups=|-Dgroups=|--tag[ =]~|-x\s+test\b|\bPYTEST_ADDOPTS="
)
_FAILING = re.compile(r"\bexit\b|\bfalse\b|\breturn\b|\bdie\b|=\s*\$+[{(]?\?|\bfail")
_ASKED = re.compile(r"(?:^|[\s@;])(?:\[\[?|test)\s[^;|&]{0,300}(?:\|\||&&)[\w./ =-]{0,300}$")
_LAUNCHER = re.compile(
    r"\bpython[\d.]*\s+-m\s+|\b(?:poetry|uv|hatch|pdm|npx|bunx|pnpm|yarn|xvfb-run|coverage)\s+(?:run\s+|exec\s+)?(?:-m\s+)?"
)
_WHOLE = re.compile(
    r"^(?:\.|\./|\./\.\.\.|\.\.\.|(?:\./)?(?:tests?|spec|__tests__|src|e2e|lib)/?(?:\*\*.*)?)$"
)
_PATH = re.compile(r"/|\.(?:py|[cm]?[jt]sx?|go|rs|java)$|::|^tests?\b")
_VALUED = words(
    "-c --config --configfile --project -p --reporter -r --require --import --junitxml --junit-xml --cov --rootdir -n "
    "--outputFile --coverprofile -coverprofile -o --output --setup -C --manifest-path --features -f --file --tsconfig --loader"
)
_DELEGATING = re.compile(
    r"\$\(MAKE\)|\b(?:run|make|just|sh|bash|node|python\d?|turbo|nx|lerna|wireit|c8|nyc|bun|tsx)\b"
)
_PROGRAM = re.compile(r"(?m)(?:^|[\s@])(?:\./|[\w.-]+/)*[\w.-]+\.(?:sh|py|[cm]?js|pl|rb)\b|(?:^|[\s@])\./\w")
_NOT_RUN = re.compile(r"^\s*(?:#|//|@?echo\b|@?printf\b|\.PHONY|deps\b|pip\b|@?which\b|@?command -v)")
_SAID = re.compile(r"\b(?:echo|printf)\s+(?:\"[^\"]*\"|'[^']*'|[^&|;]*)")
_SETTING = re.compile(r"\binstall\b|^\s*(?:import|from)\b|^\[|^\w[\w-]*\s*=\s*\"?$")
_VARIABLE = re.compile(r"^(?:export\s+)?(?P<name>[\w.]+)\s*[:?+]?=\s*(?P<value>.*)$")
_TARGET = re.compile(
    r"^ *(?P<names>[\w./-]+(?: +[\w./-]+)*)\s*::?(?!=)\s*(?P<needs>[^;#=]*)(?:;\s*(?P<recipe>.*))?$"
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
            closest = next((old for old in was.values() if _command(old) == _command(text)), "")
            what = f"`{text.strip()[:80]}`"
            safe = "pipefail" in (change.after or "")
            if _REWRITING.search(text) and (not closest or closest in now.values()):
                continue  # a command of its own, by which people accept new results
            yield from command_findings(change.path, what, closest, text, line=line, pipes_fail=safe)
    if was and not now:
        first = next(iter(was.values())).strip()[:80]
        yield Finding("error", f"`{first}` is gone: the tests are no longer run", change.path)
    elif re.search(r"[Mm]akefile$|\.mk$", change.path):
        yield from _make_findings(change)
    yield from _environment_findings(change)
    if "ignore_outcome" in (change.after or "") and "ignore_outcome" not in (change.before or ""):
        yield Finding("error", "tox passes even if tests fail (ignore_outcome)", change.path)


def command_findings(
    path: str, what: str, was: str, now: str, *, line: int | None = None, pipes_fail: bool = False
) -> Iterator[Finding]:
    """What a command that runs tests does less than the one in whose place it stands."""
    if not RUNNER.search(now):
        return
    tolerated = [
        found
        for found in _tolerances(now)
        if not (pipes_fail and found.startswith("|") and found[:2] != "||")
    ]
    if len(tolerated) > len(_tolerances(was)):
        yield Finding("error", f"{what} passes even if tests fail", path, line)
    elif _is_conditional(now) and not _is_conditional(was):
        yield Finding("error", f"{what} runs the tests under a condition only", path, line)
    elif len(_LEAVING_OUT.findall(now)) > len(_LEAVING_OUT.findall(was)):
        yield Finding("error", f"{what} leaves tests out", path, line)
    elif narrowed := _narrowed_paths(was, now):
        yield Finding("error", f"{what} runs only {', '.join(narrowed)}", path, line)


def _tolerances(command: str) -> list[str]:
    """The parts of a command that let it succeed although its tests fail."""
    found = [match.group() for part in (_TOLERANT, _REWRITING) for match in part.finditer(command)]
    runner = RUNNER.search(command)
    if runner is not None and not any(part.startswith("||") for part in found):
        for line in command[runner.end() :].splitlines():
            *_, failing = (0, *(match.start() for match in _FAILING.finditer(line)))
            found += ["||"] * line.count("||", failing)
    return found


def _is_conditional(command: str) -> bool:
    """Return True if a test of the shell stands right before the runner."""
    return (runner := RUNNER.search(command)) is not None and bool(_ASKED.search(command[: runner.start()]))


def _narrowed_paths(was: str, now: str) -> list[str]:
    """The places that are tested now, where all were before or more than these."""
    if not was:
        return []
    old, new = _paths(was), _paths(now)
    narrow = [path for path in new if not _WHOLE.match(path) and path not in old]
    if new and len(narrow) == len(new) and (not old or any(_WHOLE.match(path) for path in old)):
        return narrow
    return new if new and set(new) < set(old) and not any(_WHOLE.match(path) for path in new) else []


def _paths(command: str) -> list[str]:
    """The places that a command names behind the runner."""
    runner = RUNNER.search(_LAUNCHER.sub("", command))
    if runner is None:
        return []
    rest = re.split(r"&&|\|\||[;|]", _LAUNCHER.sub("", command)[runner.end() :])[0]
    parts = _split(rest)
    return [
        part
        for index, part in enumerate(parts)
        if not part.startswith(("-", "$", "{")) and "=" not in part and _PATH.search(part)
        and (index == 0 or parts[index - 1] not in _VALUED)
    ]  # fmt: skip


def no_longer_runs(was: str, now: str) -> bool:
    """Return True if a command ran tests, and the one in its place neither does nor hands over to another."""
    said = _SAID.sub(" ", now)
    return bool(RUNNER.search(was)) and not RUNNER.search(said) and not _DELEGATING.search(said)


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
            RUNNER.search(each) or _DELEGATING.search(each) or _PROGRAM.search(each) for each in recipes
        ):
            message = f"make reads {name} in place of Makefile, and its target {target} runs no tests"
            yield Finding("error", message, change.path)
            return
    if re.search(r"^%\s*::?(?!=)", change.after or "", re.MULTILINE) and not _DELEGATING.search(
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
        left_out = options(_split(found[1].strip("\"' ")))
        if left_out and found[1] not in known:
            line = (change.after or "").count("\n", 0, found.start()) + 1
            message = f"PYTEST_ADDOPTS has {left_out[0]}, which leaves tests out"
            yield Finding("error", message, change.path, line)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


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


def _command(line: str) -> str:
    return found.group().split()[0] if (found := RUNNER.search(line)) else ""


def _runner_lines(text: str | None) -> dict[int, str]:
    return {
        number: line
        for number, line in enumerate(_expanded(text or ""), 1)
        if RUNNER.search(line) and not _NOT_RUN.match(line) and not _SETTING.search(line)
        and not (_VARIABLE.match(line) and not line.startswith((" ", "\t", "commands")))
    }  # fmt: skip
