"""Commands that run tests, in make files, scripts and `package.json`: options that leave tests out, failures that pass."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from lopen.test_integrity.suite import words
from lopen.verification.findings import Finding

RUNNER = re.compile(
    r"\b(?:pytest|unittest|nose2|tox|nox|jest|vitest|mocha|ava|tap|tape|uvu|borp|qunit|jasmine|karma|playwright|cypress|ctest|rspec|phpunit|pest|paratest|nextest|gotestsum|ginkgo)\b"
    r"|\bnode\s+--test|\b(?:manage\.py|django-admin)\s+test\b|\b(?:npm|pnpm|yarn|bun|go|richgo|cargo|deno|dotnet|gradle|gradlew|mvn|mvnw|turbo|nx|lerna|rush|moon|wireit)\b.{0,100}\b(?:test|verify|check)\b"
)
_TOLERANT = re.compile(
    r"\|\|\s*(?:true\b|:|exit\s+0|echo\b|printf\b|/bin/true)|;\s*(?:true|:|exit\s+0|echo\b.*)\s*;?[\"']?$|^\s*@?-|=\s*-\s+\w"
    r"|\bset\s+\+e\b|(?<!\|)\|\s*(?:tee|cat|head|tail|grep|sed|awk|xargs)\b|(?:^|\bif\s+|\s)!\s+\w|(?<!&)&\s*$"
    r"|\bsuccess_codes\s*=|-Dmaven\.test\.failure\.ignore|\s(?:-fn|--fail-never|--exit-zero)\b|\bexit\s+0\s*[\"']?$"
)
REWRITING = re.compile(
    r"\bINSTA_(?:UPDATE=(?:always|unseen|force)|FORCE_PASS=1)|\bUPDATE_EXPECT=1|\bTRYBUILD=overwrite|\s-update\b"
    r"|\b(?:jest|vitest|ava|playwright|node)\b[^|;&]*\s(?:-u|--(?:test-)?update\w*(?:-snapshots?)?)(?=\s|$)"
)
_LEAVING_OUT = re.compile(
    r"(?<=\s)(?:--(?:deselect|ignore|ignore-glob|skip|exclude|testPathIgnorePatterns|passWithNoTests|pass-with-no-tests|collect-only"
    r"|co|no-run|list|lf|last-failed|testNamePattern|testPathPatterns?|grep|fgrep|invert|selectProjects|onlyChanged|changed(?:Since)?|testsuite|exclude-group|group|only-failures"
    r"|related|filter|tag|tests|lib|bins|doc|noconftest|override-ini|test-(?:name|skip)-pattern|dry-run|listTests)\b"
    r"|(?<!-workspaces )(?<!-ws )(?<!-r )--if-present\b(?!.*\s(?:--workspaces|-ws|-r)\b)"  # npm may pass over members without tests
    r"|-k(?=[\s=\"'])|-m(?!\s+(?:pytest|unittest|nose2?|tox|nox|coverage|trial)\b)(?=\s+[\"']?(?:not|\w+[\"']?(?:\s+(?:and|or|not)\b|\s*$)))|-t(?=[\s=])|-g(?=[\s=])|-run[\s=]|-skip[\s=]|-short\b"
    r"|-o(?=\s+(?:addopts|testpaths|python_)))|-DskipTests|-Dmaven\.test\.skip|-Dtest=|-DexcludedGroups=|-Dgroups=|--tag[ =]~|\bctest\b[^\n|;&]{0,200}\s-(?:LE|L|E|R|I)\s|-x\s+test\b|\bPYTEST_ADDOPTS="
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
DELEGATING = re.compile(
    r"\$\(MAKE\)|\b(?:run|make|just|sh|bash|node|python\d?|turbo|nx|lerna|wireit|c8|nyc|bun|tsx)\b"
)
_SAID = re.compile(r"\b(?:echo|printf)\s+(?:\"[^\"]*\"|'[^']*'|[^&|;]*)")


def beside_a_whole_one(closest: str, text: str, now: Iterable[str]) -> bool:
    """Return True if another command of the same tool still runs what `closest` ran."""
    others = (other for other in now if other != text and command_name(other) == command_name(text))
    return bool(closest) and any(not [*command_findings("", "", closest, other)] for other in others)


def divides(closest: str, added: Iterable[str]) -> bool:
    """Return True if several new commands of the same tool share what `closest` ran among them."""
    places = {
        tuple(_narrowed_paths(closest, each)) for each in added if command_name(each) == command_name(closest)
    }
    return len(places - {()}) > 1


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
    found = [match.group() for part in (_TOLERANT, REWRITING) for match in part.finditer(command)]
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
    narrow = [path for path in new if not _WHOLE.match(path) and path not in was.split()]
    if new and len(narrow) == len(new) and (not old or any(_WHOLE.match(path) for path in old)):
        return narrow
    return new if new and set(new) < set(old) and not any(_WHOLE.match(path) for path in new) else []


def _paths(command: str) -> list[str]:
    """The places that a command names behind the runner."""
    runner = RUNNER.search(_LAUNCHER.sub("", command))
    if runner is None:
        return []
    rest = re.split(r"&&|\|\||[;|]", _LAUNCHER.sub("", command)[runner.end() :])[0]
    parts = [part.rstrip("}") for part in split_command(rest)]
    return [
        part
        for index, part in enumerate(parts)
        if not part.startswith(("-", "$", "{")) and "=" not in part and _PATH.search(part)
        and (index == 0 or parts[index - 1] not in _VALUED)
    ]  # fmt: skip


def no_longer_runs(was: str, now: str) -> bool:
    """Return True if a command ran tests, and the one in its place neither does nor hands over to another."""
    said = _SAID.sub(" ", now)
    return bool(RUNNER.search(was)) and not RUNNER.search(said) and not DELEGATING.search(said)


def split_command(text: str) -> list[str]:
    """The words of a command line."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def command_name(line: str) -> str:
    """The tool that runs the tests of a command line."""
    word = found.group().split()[0] if (found := RUNNER.search(line)) else ""
    return {"nextest": "cargo", "gotestsum": "go", "ginkgo": "go"}.get(word, word)
