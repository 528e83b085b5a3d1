"""The settings by which runners choose tests, by kind of file: where they look, what they leave out, what they ignore."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lopen.verification.findings import Severity

PLACES = re.compile(
    r"^(?:(?:jest|vitest|vite|playwright|cypress|ava)\.config|\.mocharc|vitest\.workspace|jasmine|pnpm-workspace)\.\w+$"
    r"|^(?:package\.json|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?|go\.work|config\.toml"
    r"|junit-platform\.properties|gradle\.properties|phpunit(?:\.dist)?\.xml(?:\.dist)?|\.rspec|(?:spec|rails)_helper\.rb"
    r"|Rakefile|CMakeLists\.txt|\w+\.csproj|[\w.]+\.csproj|Directory\.Build\.(?:props|targets)|[\w.-]+\.runsettings"
    r"|[\w-]*testng[\w-]*\.xml|Taskfile\.ya?ml)$"
)
_OTHER_TABLE = re.compile(
    r"\b(?:coverage|optimizeDeps|build|rollupOptions|server|watch|ssr|typecheck|benchmark|deps|fs|resolve|plugins)[\"']?\s*:\s*[\[{]$"
    r"|\b(?!defineConfig|mergeConfig|defineProject)\w+\(\s*\{$"
)
HARMLESS = re.compile(
    r"node_modules|\.git|\.cache|configDefaults|defaultExclude|\b(?:dist|build|coverage|e2e(?!/\w)|out|lib|tmp|vendor|fixtures|helpers?)\b|\.(?:types|d)\.ts$"
)
STRING = re.compile(r"[\"'`]([^\"'`\n]+)[\"'`]")
_BRACE = re.compile(r"[{}]")
_TEST_BLOCK = re.compile(
    r"(?:^|[\s.])(?:test|tasks\.test|withType[(<]Test[^{\n]{0,20}|(?:tasks\.)?named[(<][^{\n]{0,20}[\"']test[\"']\))\s*\{"
)


def in_other_table(text: str, at: int) -> bool:
    """Return True if a key stands in a table that says nothing of which tests run: of coverage, of a plugin."""
    depth = 0
    for brace in reversed(list(_BRACE.finditer(text, max(at - 4_000, 0), at))):
        depth += 1 if brace[0] == "}" else -1
        if depth < 0:
            return bool(_OTHER_TABLE.search(text[max(brace.start() - 80, 0) : brace.end()]))
    return False


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of one kind of file. `kept` are places that are looked into, else they are left out."""

    files: re.Pattern[str]
    says: str
    read: Callable[[str], list[str]]
    kept: bool = True
    severity: Severity = "warning"
    new: bool = False  # it is told where there was none before
    divides: bool = False  # it may divide the tests by how they run
    counted: bool = False  # entries may take another's place: fewer of them is what counts


def _keys(names: str) -> Callable[[str], list[str]]:
    pattern = re.compile(
        rf"(?:^|[{{,\s\"'])(?:{names})[\"']?\s*:\s*(\[(?:[^\]\"'`]|\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`){{0,1000}}\]|[\"'`][^\"'`\n]+[\"'`])"
    )

    def read(text: str) -> list[str]:
        found = (f[1] for f in pattern.finditer(text) if not in_other_table(text, f.start(1)))
        return [entry for value in found for entry in STRING.findall(value)]

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


def _suites(text: str) -> Iterator[str]:
    """Yield the parts of PHPUnit's settings that say where tests are."""
    for part in text.split("<testsuites>")[1:]:
        yield part.partition("</testsuites>")[0]


def _of_tests(read: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Read only what says that it is a project of tests."""
    return lambda text: (
        read(text) if re.search(r"(?i)xunit|nunit|mstest|Test\.Sdk|IsTestProject", text) else []
    )


def _needed(text: str) -> list[str]:
    """Return the tasks that Rake's usual tasks need."""
    lines = re.findall(r"(?m)^[ \t]*task[ (]+:?(?:default|ci|check|verify)\b\s*(?::|=>)(.*)$", text)
    return [word for line in lines for word in re.findall(r"\w*(?:test|spec)\w*", line)]


_TEST_SOURCE = re.compile(r"\.(?:c|cc|cpp|cxx)$")


def _sources(text: str) -> list[str]:
    """Return CMake's sources of tests; a pattern takes the place of any number of them."""
    words = re.findall(r"[\w./*-]+", text)
    named = [
        each for each in words if _TEST_SOURCE.search(each) and "test" in each.lower() and "*" not in each
    ]
    return named + ["GLOB"] * 100 if re.search(r"\bGLOB(?:_RECURSE)?\b", text) else named


def _platform(text: str) -> list[str]:
    """Return one word for whichever platform Gradle runs the tests by."""
    found = re.search(r"\buse(?:JUnitPlatform|TestNG|JUnit|JUnitJupiter|KotlinTest|Spock)\b", text)
    return ["its test platform"] if found else []


def _project_names(text: str) -> list[str]:
    """Return the names in the list of projects of Playwright, vitest or jest."""
    return re.findall(r"\b(?:name|displayName)\s*:\s*[\"'`]([^\"'`\n]+)", text.partition("projects")[2])


_JS = re.compile(r"\.config\.\w+$|\.mocharc\.(?:[cm]?js|jsonc?)$|package\.json$|jasmine\.\w+$")
_PROJECTS = re.compile(r"(?:playwright|vitest|jest)\.(?:config|workspace)")
_GRADLE = re.compile(r"build\.gradle")
_POM = re.compile(r"pom\.xml$")
_PHPUNIT = re.compile(r"phpunit[\w.]*$")
_RSPEC = re.compile(r"\.rspec$")
_SPEC_HELPER = re.compile(r"_helper\.rb$")
_RAKE = re.compile(r"Rakefile$")
_CMAKE = re.compile(r"CMakeLists\.txt$")
_DOTNET = re.compile(r"\.(?:csproj|props|targets|runsettings)$")
_TESTNG = re.compile(r"testng[\w-]*\.xml$")
_CARGO = re.compile(r"Cargo\.toml$")
SETTINGS = (
    Setting(_JS, "the runner looks for tests only in", _keys("testMatch|include|spec|roots|spec_files|specPattern"), new=True),
    Setting(re.compile(r"package\.json$"), "the workspace no longer has", _keys("workspaces")),
    Setting(re.compile(r"pnpm-workspace\.ya?ml$"), "the workspace no longer has", _lists("packages", ":")),
    Setting(_PROJECTS, "the tests no longer run for", _project_names, counted=True),
    Setting(re.compile(r"vitest\.workspace"), "the workspace no longer has", STRING.findall),
    Setting(re.compile(r"\.mocharc\.ya?ml$"), "mocha looks for tests only in", _lists("spec", ":"), new=True),
    Setting(re.compile(r"\.mocharc\.ya?ml$"), "mocha now leaves out", _lists("ignore", ":"), False, "error", divides=True),
    Setting(
        re.compile(r"\.mocharc\.\w+$|package\.json$"), "mocha now executes no test:",
        _matches(r"[\"']?\bdry-?[rR]un[\"']?\s*:\s*true"), False, "error",
    ),
    Setting(_CARGO, "the workspace no longer has", _lists("members")),
    Setting(_CARGO, "commands now run only for", _lists("default-members"), new=True),
    Setting(_CARGO, "the workspace now leaves out", _lists("exclude"), False),
    Setting(_POM, "Maven no longer builds", _matches(r"<module>\s*([^<]+?)\s*</module>")),
    Setting(_POM, "Maven runs only", _matches(r"<include>\s*([^<]+?)\s*</include>", _test_plugins), new=True),
    Setting(_POM, "Maven runs only", _matches(r"<(?:test|groups|it\.test)>\s*([^<]+?)\s*</", _chosen_tests), False, "error", divides=True),
    Setting(_POM, "Maven now leaves out", _matches(r"<exclude>\s*((?:(?!Test)[^<])+?)\s*</exclude>", _test_plugins), False, "error", divides=True),
    Setting(_POM, "Maven now looks for tests in", _matches(r"<testSourceDirectory>\s*([^<]+?)\s*</"), False),
    Setting(_GRADLE, "tests are off:", _in_test_block(r"\b(?:enabled|isEnabled)\s*=\s*false"), False, "error"),
    Setting(_GRADLE, "the tests leave out:", _in_test_block(r"\bexclude(?!Tags)\w*\s*\(?\s*[\"'](?:(?![Tt]est)[^\"'\n])+[\"'](?:\s*,\s*[\"'][^\"'\n]+[\"'])*"), False, "error", divides=True),
    Setting(
        _GRADLE, "the tests run only with:",
        _in_test_block(r"\b(?:onlyIf|include(?:Tags|Engines|TestsMatching|Test)?)\b\s*[({]?[^\n]*"), False,
    ),
    Setting(re.compile(r"settings\.gradle"), "the build no longer has", _matches(r"(?<=[\s,(])[\"'](:?[\w:.-]+)[\"']")),
    Setting(re.compile(r"go\.work$"), "the workspace no longer has", _matches(r"(?m)^[ \t]*(?:use\s+)?(\.[\w./-]*)\s*$")),
    Setting(
        re.compile(r"junit-platform|gradle|pom\.xml$"), "JUnit now runs with",
        _matches(r"\bjunit\.[\w.]{0,60}dry[rR]un[\w.]{0,30}[\"'\s]*[=,>]\s*[\"']?true"), False, "error",
    ),
    Setting(_POM, "Maven runs again what failed:", _matches(r"<(?:rerunFailingTestsCount|skipAfterFailureCount)>\s*[1-9]\d*", _test_plugins), False),
    Setting(_POM, "Maven no longer runs the goal", _matches(r"<goal>\s*(verify|integration-test|test)\s*</goal>", _test_plugins)),
    Setting(_POM, "Maven does not compile the tests", _matches(r"<testExclude>\s*([^<]+?)\s*</testExclude>"), False, "error", divides=True),
    Setting(_GRADLE, "Gradle's check no longer needs", _matches(r"\bdependsOn\b\s*\(?\s*[\"':]*(?:tasks\.)?(?:named\([\"'])?(\w*[tT]est\w*)")),
    Setting(_PHPUNIT, "PHPUnit looks only for files named", _matches(r"<directory\b[^>]{0,200}\bsuffix=\"((?!Test\.php|\.php|Test\.phpt)[^\"]+)", _suites), False),
    Setting(_GRADLE, "Gradle runs again what failed:", _in_test_block(r"\b(?:maxRetries|maxFailures|failOnPassedAfterRetry)\b[^\n]{0,200}"), False),
    Setting(re.compile(r"gradle"), "Gradle leaves out tasks of tests:", _matches(r"\bexcludedTaskNames\b[^\n]{0,200}[tT]est[^\n]{0,99}"), False, "error"),
    Setting(_GRADLE, "Gradle no longer names", _platform),
    Setting(_PHPUNIT, "PHPUnit no longer looks in", _matches(r"<(?:directory|file)\b[^>]{0,200}>\s*(?:\./)?([^<]+?)/?\s*</", _suites)),
    Setting(_PHPUNIT, "PHPUnit now leaves out", _matches(r"<(?:exclude|group)>\s*([^<\s][^<]*?)\s*</", lambda text: iter((*_suites(text), *re.findall(r"(?s)<groups>.*?</groups>", text)))), False, "error", divides=True),
    Setting(_PHPUNIT, "PHPUnit runs only", _matches(r"\bdefaultTestSuite=\"([^\"]*)"), False, "error", divides=True),
    Setting(_RSPEC, "RSpec now runs with", _matches(r"(?m)^[ \t]*(?:--(?:tag|pattern|exclude-pattern|example|only-failures|failure-exit-code|dry-run)|-[tPe])\b.*$"), False, "error", divides=True),
    Setting(
        _SPEC_HELPER, "RSpec now runs with",
        _matches(r"\.(?:filter_run_excluding|exclusion_filter|exclude_pattern)\b[^\n]{0,200}|\.(?:filter_run(?:_including)?|inclusion_filter)\b(?!_)(?![ =({:]{0,9}focus)[^\n]{0,200}|\.dry_run\s*=\s*true|\.failure_exit_code\s*=\s*0"),
        False, "error", divides=True,
    ),
    Setting(_RAKE, "rake runs only", _matches(r"\.(?:pattern|test_files)\s*=\s*(?:Dir\.glob\(|Dir\[|(?:Rake::)?FileList\[)?\s*[\"']([^\"'\n]+)"), new=True),
    Setting(_RAKE, "rake no longer runs", _needed),
    Setting(
        _RAKE, "rake leaves out tests or their failures:",
        _matches(r"\bfail_on_error\s*=\s*false|\bexclude_pattern\s*=[^\n]{0,200}|(?:opts|options)[ \t]*=[^\n]{0,200}(?:--tag|--exclude|--name|-n\s)[^\n]*|\bsh\b[^\n]{0,200}(?:\|\|\s*(?:true|:)|;\s*true|do\s*\|ok)[^\n]{0,200}"),
        False, "error", divides=True,
    ),
    Setting(_CMAKE, "CTest turns round or leaves out:", _matches(r"\b(?:WILL_FAIL|DISABLED)\s+(?:TRUE|ON|YES|1)\b"), False, "error"),
    Setting(_CMAKE, "CTest leaves out tests by", _matches(r"(?:\b(?:TEST_FILTER|TEST_SPEC)\s+|--gtest_filter=)([^\s)]+)"), False, divides=True),
    Setting(_CMAKE, "tests are off unless asked for:", _matches(r"\boption\(\s*(\w*TEST\w*)\s+(?:\"[^\"]*\")?\s*OFF\b"), False),
    Setting(_CMAKE, "CTest no longer has", _matches(r"\b(?:add_test|\w+_(?:discover|add)_tests)\s*\(\s*(?:NAME\s+)?([^\s()]+)"), counted=True),
    Setting(_CMAKE, "CMake no longer has", _matches(r"\badd_subdirectory\(\s*[^\s()]*tests?\b[^\s()]*|\benable_testing\(|\binclude\(\s*CTest\b"), counted=True),
    Setting(_CMAKE, "CMake no longer compiles", _sources, counted=True),
    Setting(_DOTNET, "the project of tests no longer compiles", _of_tests(_matches(r"<Compile\s+Remove=\"([^\"]+)")), False, "error", divides=True),
    Setting(_DOTNET, "dotnet test passes over:", _matches(r"<IsTestProject>\s*false|<(?:VSTestTestCaseFilter|TestCaseFilter)>[^<]+|<Target\s+Name=\"VSTest\"|<VSTestNoBuild>\s*true"), False, "error"),
    Setting(_TESTNG, "TestNG no longer runs", _matches(r"<(?:class|package|suite-file)\s+(?:name|path)=\"([^\"]+)")),
    Setting(_TESTNG, "TestNG now leaves out", _matches(r"<exclude\s+name=\"([^\"]+)|(enabled=\"false\")"), False, "error", divides=True),
    Setting(re.compile(r"Taskfile"), "the task passes even if tests fail:", _matches(r"\bignore_error:\s*true"), False, "error"),
)  # fmt: skip
