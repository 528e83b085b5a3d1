"""Settings by which a runner looks into fewer places: patterns of files, members of a workspace, modules, tags.

Which tests a narrower pattern leaves out is not read here; two runs tell. So most of what is found is a warning, and so is
the usual division into unit tests and slower ones.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from lopen.oracle.verdict import Finding, Severity
from lopen.test_integrity.suite import FileChange

PLACES = re.compile(
    r"^(?:(?:jest|vitest|vite)\.config|\.mocharc|vitest\.workspace)\.\w+$"
    r"|^(?:package\.json|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?|go\.work|config\.toml"
    r"|junit-platform\.properties)$"
)
_OTHER_TABLE = re.compile(
    r"\b(?:coverage|optimizeDeps|build|rollupOptions|server|watch|ssr|typecheck|benchmark|deps|fs|resolve|plugins)[\"']?\s*:\s*[\[{]$"
    r"|\b(?!defineConfig|mergeConfig|defineProject)\w+\(\s*\{$"
)
HARMLESS = re.compile(
    r"node_modules|\.git|\.cache|configDefaults|defaultExclude|\b(?:dist|build|coverage|e2e|out|lib|tmp|vendor|fixtures)\b"
)
_DIVIDED = re.compile(
    r"\*\$\*|(?<![A-Z])IT(?:Case)?\b|\b(?:integration|e2e|end-to-end|slow|generated|performance|benchmark|docker)(?:Tests?)?\b",
)
_STRING = re.compile(r"[\"'`]([^\"'`\n]+)[\"'`]")
_LINES = re.compile(r"(?:^|(?<=\s))(?://|#)[^\n]*", re.MULTILINE)
_MOST = 100  # entries of a setting
_BRACE = re.compile(r"[{}]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_TEST_BLOCK = re.compile(
    r"(?:^|[\s.])(?:test|tasks\.test|withType[(<]Test[^{\n]{0,20}|(?:tasks\.)?named[(<][^{\n]{0,20}[\"']test[\"']\))\s*\{"
)
_PREFIX = re.compile(
    r"^(?:<rootDir>/|\./|\{?(?:src|lib|test|tests|spec|__tests__|packages|app)(?:,\w+)*\}?/|\*+/)*"
)


_THRESHOLDS = re.compile(
    r"\b(?:coverageThreshold|thresholds?)[\"']?\s*:\s*(?P<table>\{(?:[^{}]|\{[^{}]*\})*\})"
)
_LEAST = re.compile(
    r"\b(?P<key>branches|functions|lines|statements|\d+)[\"']?\s*:\s*(?P<value>\d{1,3}(?:\.\d+)?)"
)
_RETRIES = re.compile(
    r"\b(?:retry|retries|retryTimes)[\"']?\s*:\s*(?:[^,\n{}]{0,80}\?\s*)?(?P<value>\d{1,3})\b"
)
_TEST_FOLDER = re.compile(r"\btestDir[\"']?\s*:\s*[\"'`](?:\./)?(?P<value>[^\"'`\n]+)")
_USUAL_RETRIES = 2


@dataclass(frozen=True, slots=True)
class _Setting:
    """A setting of one kind of file. `kept` are places that are looked into, else they are left out."""

    files: re.Pattern[str]
    says: str
    read: Callable[[str], list[str]]
    kept: bool = True
    severity: Severity = "warning"
    new: bool = False  # it is told where there was none before
    divides: bool = False  # it may divide the tests by how they run


def _keys(names: str) -> Callable[[str], list[str]]:
    pattern = re.compile(
        rf"(?:^|[{{,\s\"'])(?:{names})[\"']?\s*:\s*(\[[^\]]{{0,4000}}\]|[\"'`][^\"'`\n]+[\"'`])"
    )

    def read(text: str) -> list[str]:
        found = (f[1] for f in pattern.finditer(text) if not in_other_table(text, f.start(1)))
        return [entry for value in found for entry in _STRING.findall(value)]

    return read


def _lists(key: str, sign: str = "=") -> Callable[[str], list[str]]:
    """Lists in brackets (TOML), or of lines with a dash (YAML)."""
    pattern = re.compile(
        rf"^[ \t]*{key}\s*{sign}\s*(?:\[([^\]]{{0,4000}})\]|([^\s\[][^\n]*)|((?:\n[ \t]*-[^\n]*)+))",
        re.MULTILINE,
    )

    def read(text: str) -> list[str]:
        values = [next((group for group in f.groups() if group), "") for f in pattern.finditer(text)]
        entries = [entry for value in values for entry in re.split(r"[,\n]", value)]
        return [word for entry in entries if (word := entry.strip(" \t-\"'"))]

    return read


def _matches(
    pattern: str, within: Callable[[str], Iterator[str]] | None = None
) -> Callable[[str], list[str]]:
    wanted = re.compile(pattern)

    def read(text: str) -> list[str]:
        parts = [text] if within is None else within(text)
        return [
            " ".join((f[1] if wanted.groups else f[0]).split())
            for part in parts
            for f in wanted.finditer(part)
        ]

    return read


def _in_test_block(pattern: str) -> Callable[[str], list[str]]:
    wanted = re.compile(pattern)

    def read(text: str) -> list[str]:
        return [" ".join(f[0].split()) for block in _blocks(text) for f in wanted.finditer(block)]

    return read


def _blocks(text: str) -> Iterator[str]:
    for found in itertools.islice(_TEST_BLOCK.finditer(text), 50):
        depth, end, last = 1, found.end(), min(len(text), found.end() + 10_000)
        while depth and end < last:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        yield text[found.end() : end]


def _test_plugins(text: str) -> Iterator[str]:
    """Yield the parts of a POM that set up the plugins that run tests."""
    for part in text.split("<plugin>")[1:]:
        plugin = part.partition("</plugin>")[0]
        if re.search(r"maven-(?:surefire|failsafe)-plugin", plugin):
            yield plugin


def _chosen_tests(text: str) -> Iterator[str]:
    """Yield these parts, and the properties, by which the same plugins choose tests."""
    yield from _test_plugins(text)
    for part in text.split("<properties>")[1:]:
        yield part.partition("</properties>")[0]


_JS = re.compile(r"\.config\.\w+$|\.mocharc\.(?:[cm]?js|jsonc?)$|package\.json$")
_GRADLE = re.compile(r"build\.gradle")
_POM = re.compile(r"pom\.xml$")
_CARGO = re.compile(r"Cargo\.toml$")
_SETTINGS = (
    _Setting(_JS, "the runner looks for tests only in", _keys("testMatch|include|spec|roots"), new=True),
    _Setting(re.compile(r"vitest\.workspace"), "the workspace no longer has", _STRING.findall),
    _Setting(re.compile(r"\.mocharc\.ya?ml$"), "mocha looks for tests only in", _lists("spec", ":"), new=True),
    _Setting(re.compile(r"\.mocharc\.ya?ml$"), "mocha now leaves out", _lists("ignore", ":"), False, "error", divides=True),
    _Setting(_CARGO, "the workspace no longer has", _lists("members")),
    _Setting(_CARGO, "commands now run only for", _lists("default-members"), new=True),
    _Setting(_CARGO, "the workspace now leaves out", _lists("exclude"), False),
    _Setting(_POM, "Maven no longer builds", _matches(r"<module>\s*([^<]+?)\s*</module>")),
    _Setting(_POM, "Maven runs only", _matches(r"<include>\s*([^<]+?)\s*</include>", _test_plugins), new=True),
    _Setting(_POM, "Maven runs only", _matches(r"<(?:test|groups|it\.test)>\s*([^<]+?)\s*</", _chosen_tests), False, "error", divides=True),
    _Setting(_POM, "Maven now leaves out", _matches(r"<exclude>\s*((?:(?!Test)[^<])+?)\s*</exclude>", _test_plugins), False, "error", divides=True),
    _Setting(_POM, "Maven now looks for tests in", _matches(r"<testSourceDirectory>\s*([^<]+?)\s*</"), False),
    _Setting(_GRADLE, "tests are off:", _in_test_block(r"\b(?:enabled|isEnabled)\s*=\s*false"), False, "error"),
    _Setting(_GRADLE, "the tests leave out:", _in_test_block(r"\bexclude(?!Tags)\w*\s*\(?\s*[\"'](?:(?![Tt]est)[^\"'\n])+[\"'](?:\s*,\s*[\"'][^\"'\n]+[\"'])*"), False, "error", divides=True),
    _Setting(
        _GRADLE, "the tests run only with:",
        _in_test_block(r"\b(?:onlyIf|include(?:Tags|Engines|TestsMatching|Test)?)\b\s*[({]?[^\n]*"), False,
    ),
    _Setting(re.compile(r"settings\.gradle"), "the build no longer has", _matches(r"(?<=[\s,(])[\"'](:?[\w:.-]+)[\"']")),
    _Setting(re.compile(r"go\.work$"), "the workspace no longer has", _matches(r"(?m)^\s*(?:use\s+)?(\.[\w./-]*)\s*$")),
    _Setting(re.compile(r"junit-platform"), "JUnit now runs with", _matches(r"(?m)^junit\.\S*dryrun\S*true"), False, "error"),
)  # fmt: skip


def narrowed_findings(change: FileChange) -> Iterator[Finding]:
    """Yield a finding for each setting that looks into fewer places than before, or leaves out more."""
    was, now = (_uncommented(change.path, text or "") for text in (change.before, change.after))
    for setting in _SETTINGS:
        if not setting.files.search(change.path):
            continue
        before, after = setting.read(was)[:_MOST], setting.read(now)[:_MOST]
        if not setting.kept:
            added = [each for each in after if each not in before and not _is_harmless(setting, each)]
        elif before:
            added = (
                [each for each in before if not any(_covers(other, each) for other in after)] if after else []
            )
            if added and setting.new:
                added = after
        else:
            added = after if setting.new and not any(map(_is_wide, after)) else []
        if setting.kept and not setting.new and before and not after:
            added = before
        if added:
            message = f"{setting.says} {', '.join(dict.fromkeys(added))[:200]}"
            soft = setting.divides and is_division(change, added)
            yield Finding("warning" if soft else setting.severity, message, change.path)


def is_division(change: FileChange, left_out: Sequence[str]) -> bool:
    """Return True if a build file is new, or leaves out what runs by itself: integration tests, generated code."""
    entries = [entry for each in left_out for entry in _STRING.findall(each) or re.split(r"[,|]", each)]
    return change.before is None or all(_DIVIDED.search(entry) for entry in entries if entry.strip())


def _is_harmless(setting: _Setting, entry: str) -> bool:
    return setting.says.startswith("mocha") and HARMLESS.search(entry) is not None


def _uncommented(path: str, text: str) -> str:
    if not path.endswith(".xml"):
        return _LINES.sub("", text)
    first, *rest = text.split("<!--")
    return first + "".join(part.partition("-->")[2] for part in rest)


def _is_wide(pattern: str) -> bool:
    """Return True if a pattern takes every file that is named like a test, in the usual folders."""
    rest = _PREFIX.sub("", pattern)
    return "/" not in rest and ("*" in rest or "(" in rest or not rest)


def _covers(pattern: str, other: str) -> bool:
    """Return True if a glob takes what another one takes, by one path made of the other."""
    if pattern == other or "(" in pattern:
        return True
    if "**" in other and "**" not in pattern:
        return False
    first = re.sub(r"\{([^,}]*)[^}]*\}", r"\1", other)
    sample = first.replace("**/", "a/b/").replace("**", "a/b").replace("*", "x")
    choices = [(found[0], found[1].split(",")) for found in itertools.islice(_BRACES.finditer(pattern), 3)]
    for chosen in itertools.islice(itertools.product(*(values for _, values in choices)), 50):
        glob = pattern
        for (written, _), value in zip(choices, chosen, strict=True):
            glob = glob.replace(written, value, 1)
        glob = glob.replace("**/", "*").rstrip("/")
        if fnmatchcase(sample, glob) or fnmatchcase(sample, f"{glob}/*"):
            return True
    return False


def in_other_table(text: str, at: int) -> bool:
    """Return True if a key stands in a table that says nothing of which tests run: of coverage, of a plugin."""
    depth = 0
    for brace in reversed(list(_BRACE.finditer(text, max(at - 4_000, 0), at))):
        depth += 1 if brace[0] == "}" else -1
        if depth < 0:
            return bool(_OTHER_TABLE.search(text[max(brace.start() - 80, 0) : brace.end()]))
    return False


def lowered_findings(path: str, was: str, now: str) -> Iterator[Finding]:
    """Yield findings for numbers by which a run passes more easily, and a folder within the one that was looked into."""
    before, after = _least(was), _least(now)
    lower = [key for key, least in before.items() if after.get(key, 0) < least]
    if lower:
        yield Finding("warning", f"less coverage is asked for: {', '.join(lower)}", path)
    tries = [max((int(f["value"]) for f in _RETRIES.finditer(text)), default=0) for text in (was, now)]
    if was and tries[1] > max(tries[0], _USUAL_RETRIES):
        yield Finding("warning", f"a test that fails is tried again up to {tries[1]} times", path)
    folders = [found["value"].rstrip("/") for found in _TEST_FOLDER.finditer(was)]
    for found in _TEST_FOLDER.finditer(now):
        if any(found["value"].startswith(f"{folder}/") for folder in folders):
            yield Finding("warning", f"tests are looked for only in {found['value']}", path)


def _least(text: str) -> Mapping[str, float]:
    """The least coverage by what is covered, where a table says it."""
    tables = [found["table"] for found in _THRESHOLDS.finditer(text)]
    found = [each for table in tables for each in _LEAST.finditer(table)]
    return {each["key"]: float(each["value"]) for each in found}
