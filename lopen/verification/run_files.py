"""The files by which the approved verify commands run and install: make files, scripts, manifests, settings.

A change of one of them may be honest: the judge is asked about it. So it is about a dependency that lies in the project,
and about a new plugin of a test runner. After a change of what decides on dependencies, verify-setup runs again.
"""

from __future__ import annotations

import hashlib
import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from lopen.core.shell import simple_commands
from lopen.core.untrusted_tables import read_json_table, read_toml_table
from lopen.verification.findings import ChangeQuestion
from lopen.verification.test_files import FileChange, Read, words

_DEPTH = 4  # of files that name files
_MOST_FILES = 200
_MOST_CHARS = 100_000  # of one file
_MAKE = words("make gmake")
_PACKAGE = words("npm pnpm yarn bun")
_MODULES = ("js", "ts", "mjs", "cjs", "mts")
_BABEL = (
    *(f"babel.config.{end}" for end in (*_MODULES, "json")),
    *(f".babelrc{end}" for end in ("", ".js", ".cjs", ".json")),
)
_NAMED: Mapping[str, tuple[str, ...]] = {
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "tox": ("tox.ini", "tox.toml"),
    "nox": ("noxfile.py",),
    "pytest": ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
    "cargo": (".cargo/config.toml", ".cargo/config"),
    "bazel": (".bazelrc",),
    **dict.fromkeys(
        ("mvn", "mvnw"),
        (
            "pom.xml", ".mvn/maven.config", ".mvn/jvm.config", ".mvn/extensions.xml",
            ".mvn/wrapper/maven-wrapper.jar", ".mvn/wrapper/maven-wrapper.properties",
            ".mvn/wrapper/MavenWrapperDownloader.java",
        ),
    ),
    **dict.fromkeys(
        ("gradle", "gradlew"),
        (
            "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties",
            "gradle/wrapper/gradle-wrapper.jar", "gradle/wrapper/gradle-wrapper.properties",
        ),
    ),
    "composer": ("composer.json",),
    **dict.fromkeys(("phpunit", "pest"), ("phpunit.xml", "phpunit.xml.dist", "tests/Pest.php")),
    "rspec": (".rspec", "spec/spec_helper.rb", "spec/rails_helper.rb"),
    "dotnet": ("Directory.Build.props", "Directory.Build.targets", "test.runsettings"),
    "ctest": ("CMakeLists.txt", "tests/CMakeLists.txt", "test/CMakeLists.txt"),
    "mocha": (*(f".mocharc.{end}" for end in ("js", "cjs", "json", "jsonc", "yml", "yaml")), *_BABEL),
    "jest": (*(f"jest.config.{end}" for end in (*_MODULES, "json")), *_BABEL, ".swcrc"),
    "vitest": (
        *(f"{name}.{end}" for name in ("vitest.config", "vite.config", "vitest.workspace") for end in _MODULES),
        "vitest.workspace.json",
    ),
}  # fmt: skip
_MAKE_FILES = ("GNUmakefile", "makefile", "Makefile")
_NPM_FILES = ("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "pnpm-workspace.yaml")
_SHARED = {
    "pyproject.toml": "pytest",
    "setup.cfg": "pytest",
    "tox.ini": "pytest",
}  # their own table alone counts
_MODULE = re.compile(r"^[A-Za-z_][\w.]*$")
_SCRIPT = re.compile(r"\.(?:sh|bash|zsh|py|[cm]?[jt]s|rb|pl|php|mk|fish)$")
_STARTED = re.compile(
    r"^(?:python[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|sh|bash|dash|zsh|source|\.)$"
)
_RUNNERS = re.compile(
    r"(pytest|py\.test|jest|vitest|mocha|tox|nox|cargo|just|rake|bazel|task|mvnw?|gradlew?|composer|phpunit|pest|rspec|dotnet|ctest)"
)
_TEST_KEYS = words("scripts jest mocha ava babel vitest type main exports imports")
_INSTALLERS = words("pip pip3 uv")
_OWN = re.compile(r"^\./?(?:\[|$)")  # the project itself: `pip install -e .[dev]`
_BUILD_FILES = ("setup.py", "setup.cfg", "pyproject.toml", "hatch_build.py", "MANIFEST.in")
_BUILDERS = words("setuptools hatch")
_SHOWN = 6_000  # characters of one version in a question
LOCK_FILES = words(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb poetry.lock uv.lock pdm.lock "
    "Pipfile.lock Cargo.lock go.sum Gemfile.lock composer.lock gradle.lockfile flake.lock"
)
_DECLARES = re.compile(  # files that declare dependencies
    r"package\.json|pyproject\.toml|setup\.cfg|setup\.py|(?:requirements|constraints)[^/]*\.(?:txt|in)|Pipfile|Cargo\.toml"
    r"|go\.mod|Gemfile|composer\.json|pom\.xml|build\.gradle(?:\.kts)?|[^/]*\.(?:csproj|gemspec|cabal)"
)
_INSTALLS_BY = LOCK_FILES | words(
    "GNUmakefile Makefile justfile makefile noxfile.py tox.ini .npmrc .python-version .tool-versions .yarnrc.yml "
    "environment.yml gradle.properties pnpm-workspace.yaml rust-toolchain.toml settings.gradle settings.gradle.kts"
)
_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)*")
_LOCAL = re.compile(
    r"[\"'](?:file|link|portal):|^-e\s+\.{1,2}/|^\.{1,2}/|@ file:|\bpath\s*[=:]\s*[\"']|=>\s*\.{1,2}/|\bfiles\(|systemPath"
)
_PLUGIN = re.compile(
    r"\bpytest11\b|\bpytest_plugins\b|\bpytest-\w+|\b(?:jest|vitest|mocha|karma)-[\w-]+|@vitest/|\bsetupFiles|\b(?:rspec|minitest)-\w+"
)
LOCAL = "The work adds a dependency from a local path: what is installed from there, and does it replace a published package?"
PLUGIN = "The work adds a plugin of the test runner: does it change which tests run, or how they pass?"
_PROGRAM = re.compile(r"(?:\S*/\.?bin/|\./)?([\w.]+)")  # any other path may hold a tool's name
INCLUDED = re.compile(r"^-?s?include[ \t]+(.+)$", re.MULTILINE)
_RECIPE_SIGNS = re.compile(r"^[@+-]+")

CHANGED = "The approved command {name} (`{command}`) runs by this file, and the work changes it: does it run all that it ran?"
GONE = "The approved command {name} (`{command}`) ran by this file, which the work deletes: does it run all that it ran?"


def is_lock_file(path: str) -> bool:
    """Return True if a package manager writes a file of this name."""
    return path.rpartition("/")[2] in LOCK_FILES


def is_manifest(path: str) -> bool:
    """Return True if a package manager installs by a file of this name."""
    name = path.rpartition("/")[2]
    return name in _INSTALLS_BY or _DECLARES.fullmatch(name) is not None


def setup_key(files: Mapping[str, str], command: str, read: Read) -> str:
    """Return the SHA-256 (hex) of the set-up `command` and the files by which it installs.

    `files` is path → blob id of the tree.
    """
    named = {word.removeprefix("./") for word in _PATH.findall(command)} | {*run_by(command, read)}
    deciding = sorted(path for path in files if path in named or is_manifest(path))
    lines = [command, *(f"{path}\0{files[path]}" for path in deciding)]
    return hashlib.sha256("\0\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def run_file_questions(
    commands: Mapping[str, str | None], changes: Sequence[FileChange], read: Read
) -> Iterator[ChangeQuestion]:
    """Yield a question for each changed file by which an approved command runs. A new file asks nothing.

    `commands` are by the specification's names; `read` gives the text of a file after the change, None where there is none.
    """
    changed = {change.path: change for change in changes if change.before is not None}
    told: set[str] = set()
    for name, command in commands.items():
        for path in run_by(command or "", read) if command else ():
            change = changed.get(path)
            if change is None or path in told or not _differs(change):
                continue
            told.add(path)
            text = (GONE if change.after is None else CHANGED).format(
                name=name, command=" ".join((command or "").split())[:80]
            )
            before, after = (change.before or "")[:_SHOWN], (change.after or "")[:_SHOWN]
            yield ChangeQuestion("", "run_file_changed", text, path, None, before, after)


def dependency_questions(changes: Sequence[FileChange]) -> Iterator[ChangeQuestion]:
    """Yield a question for each manifest that gains a dependency from a local path, or a plugin of a test runner."""
    for change in changes:
        name = change.path.rpartition("/")[2]
        if not _DECLARES.fullmatch(name) or change.after is None:
            continue
        known = {line.strip() for line in (change.before or "").splitlines()}
        new = [line.strip() for line in change.after.splitlines() if line.strip() not in known]
        for pattern, text in ((_LOCAL, LOCAL), (_PLUGIN, PLUGIN)):
            lines = [line for line in new if pattern.search(line)]
            if lines:
                yield ChangeQuestion("", "dependency", text, change.path, None, "", "\n".join(lines)[:_SHOWN])


def run_by(command: str, read: Read) -> list[str]:
    """Return the files by which a command runs, whether they are there or not, in the order in which they are found."""
    found: dict[str, None] = {}
    waiting = [(path, 0) for path in _of_line(command, "")]
    while waiting and len(found) < _MOST_FILES:
        path, depth = waiting.pop(0)
        if path in found:
            continue
        found[path] = None
        text = read(path) if depth < _DEPTH else None
        if text is not None:
            waiting += [(other, depth + 1) for other in _of_file(path, text[:_MOST_CHARS])]
    return list(found)


def _differs(change: FileChange) -> bool:
    """Return True but for a file of which some tables alone decide on a run, and these are as they were."""
    if change.path.rpartition("/")[2] == "package.json" and change.before and change.after:
        old, new = read_json_table(change.before), read_json_table(change.after)
        return old is None or new is None or any(old.get(key) != new.get(key) for key in _TEST_KEYS)
    if change.path.rpartition("/")[2] not in _SHARED or change.before is None or change.after is None:
        return True
    if change.path.endswith((".ini", ".cfg")):
        return _PYTEST_TABLE.findall(change.before) != _PYTEST_TABLE.findall(change.after)
    if change.path.endswith(".toml") and _build(change.before) != _build(change.after):
        return True
    return _pytest(change.before) != _pytest(change.after)


_PYTEST_TABLE = re.compile(
    r"^\[(?:tool:)?(?:pytest|tox|testenv[^\]]*)\]\n((?:(?!\[)[^\n]*\n?)*)", re.MULTILINE
)


def _pytest(text: str) -> object:
    tool = (read_toml_table(text) or {}).get("tool")
    return tool.get("pytest") if isinstance(tool, dict) else None


def _build(text: str) -> dict[str, object]:
    """Return what `pyproject.toml` says of the build, dependencies aside."""
    table = read_toml_table(text) or {}
    own, tool = table.get("build-system"), table.get("tool")
    backend = {k: v for k, v in own.items() if k != "requires"} if isinstance(own, dict) else {}
    return backend | ({k: v for k, v in tool.items() if k in _BUILDERS} if isinstance(tool, dict) else {})


def _of_file(path: str, text: str) -> Iterator[str]:
    """Yield the names in a file that decides on a command: in each line, or in the scripts of `package.json`."""
    folder, _, name = path.rpartition("/")
    if name.endswith((".jar", ".properties")):
        return
    if name == "package.json":
        for line in _scripts(text):
            yield from _of_line(line, folder)
        return
    if name == "pyproject.toml":
        build = _build(text)
        module = str(build.get("build-backend", "")).partition(":")[0].replace(".", "/")
        folders = build.get("backend-path")
        for each in folders if isinstance(folders, list) else ():
            yield from (_joined(_joined(folder, str(each)), module + end) for end in (".py", "/__init__.py"))
    if name.endswith((".py", "js", ".ts", ".rb", ".pl", ".php", ".toml", ".json", ".ini", ".cfg")):
        lines = re.findall(r"[\"'`]((?:\./)?[\w./-]+\.(?:sh|py|[cm]?js|mk))[\"'`]", text)
        yield from (_joined(start, line) for line in lines if "/" in line for start in ("", folder))
        return
    # a make file's, justfile's or shell script's own lines; make runs recipes where it was started
    for names in INCLUDED.findall(text):
        yield from (_joined(folder, each) for each in names.split() if "$" not in each)
    for line in text.splitlines():
        stripped = _RECIPE_SIGNS.sub("", line.strip()).replace("$(MAKE)", "make")
        if stripped and not stripped.startswith("#"):
            yield from _of_line(stripped[:2_000], folder if name.lower().endswith("makefile") else "")


def _scripts(text: str) -> list[str]:
    scripts = (read_json_table(text) or {}).get("scripts")
    return [str(each) for each in scripts.values()] if isinstance(scripts, dict) else []


def _of_line(line: str, folder: str) -> Iterator[str]:
    """Yield the files by which the commands of a line run; a `cd` before them leads into its folder."""
    for simple in simple_commands(line):
        texts = [text for text in simple.words if not re.match(r"^[A-Za-z_]\w*=", text)]
        if not texts:
            continue
        if texts[0] == "cd" and len(texts) > 1:
            folder = _joined(folder, texts[1])
            continue
        yield from _of_words(texts, folder)


def _of_words(texts: Sequence[str], folder: str) -> Iterator[str]:
    program = texts[0].rpartition("/")[2]
    inside = folder
    for option, value in itertools.pairwise(texts):
        if option in {"-C", "--directory", "--prefix", "--cwd"}:
            inside = _joined(folder, value)
    if program in _MAKE:
        named = [value for option, value in itertools.pairwise(texts) if option in {"-f", "--file"}]
        yield from (_joined(inside, each) for each in named or _MAKE_FILES)
    if "install" in texts and (program in _INSTALLERS or "pip" in texts) and any(map(_OWN.match, texts)):
        yield from (_joined(inside, each) for each in _BUILD_FILES)
    if program in _PACKAGE:
        yield from (_joined(inside, each) for each in _NPM_FILES)
    programs = (_PROGRAM.fullmatch(text) for text in texts)
    for runner in dict.fromkeys(found[1] for found in programs if found and _RUNNERS.fullmatch(found[1])):
        yield from (_joined(inside, each) for each in _NAMED.get(runner.replace("py.test", "pytest"), ()))
        if runner in {"pytest", "py.test"}:
            yield from (_joined(inside, each) for each in (*_SHARED, "conftest.py"))
        if runner in {"jest", "vitest", "mocha"}:
            yield _joined(inside, "package.json")
    for at, text in enumerate(texts):
        before = texts[at - 1] if at else ""
        if before == "-m" and _MODULE.match(text):
            yield from (_joined(inside, text.replace(".", "/") + end) for end in (".py", "/__main__.py"))
        elif not text.startswith(("-", "$", "/")) and (
            (at == 0 and "/" in text) or _SCRIPT.search(text) or _STARTED.match(before.rpartition("/")[2])
        ):
            yield _joined(inside, text)


def _joined(folder: str, path: str) -> str:
    """Return the path from the project's root; a path that leads out of it names nothing there."""
    return posixpath.normpath(posixpath.join(folder, path))
