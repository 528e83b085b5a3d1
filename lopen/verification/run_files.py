"""The files by which the approved verify commands run and install: make files, scripts, manifests, settings.

A change of one of them may be honest: the judge is asked about it. So it is about a dependency that lies in the project,
and about a new plugin of a test runner. After a change of what decides on dependencies, verify-setup runs again.
"""

from __future__ import annotations

import fnmatch
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
# Programs, and the files by which they run where they are started (`*` stands for any characters)
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    program: tuple(files.split())
    for programs, files in {
        "make gmake": "GNUmakefile makefile Makefile",
        "just": "justfile Justfile .justfile",
        "task": "Taskfile.y*ml",
        "rake": "Rakefile",
        "pip pip3 uv": "setup.py setup.cfg pyproject.toml hatch_build.py MANIFEST.in",
        "pytest py.test": "*pytest.ini *pytest.toml pyproject.toml setup.cfg tox.ini conftest.py",
        "tox": "tox.ini tox.toml",
        "nox": "noxfile.py",
        "npm pnpm yarn bun": "package.json .npmrc .yarnrc* .pnpmfile.cjs pnpm-workspace.yaml",
        "jest": "package.json jest.config.* .swcrc .babelrc* babel.config.*",
        "mocha": "package.json .mocharc.* .babelrc* babel.config.*",
        "vitest": "package.json vite*.config.* vitest.workspace.*",
        "cargo": ".cargo/config*",
        "bazel": ".bazelrc",
        "mvn mvnw": "pom.xml .mvn/*",
        "gradle gradlew": "build.gradle* settings.gradle* gradle.properties gradle/wrapper/*",
        "composer": "composer.json",
        "phpunit pest": "phpunit.xml* tests/Pest.php",
        "rspec": ".rspec spec/*_helper.rb",
        "dotnet": "Directory.Build.* test.runsettings",
        "ctest": "CMakeLists.txt test*/CMakeLists.txt",
    }.items()
    for program in programs.split()
}
_MODULE = re.compile(r"^[A-Za-z_][\w.]*$")
_PROGRAM_FILE = re.compile(r"^(?!.*\.config\.)[^.].*\.(?:py|[cm]?[jt]s|rb|pl|php)$")
_SCRIPT = re.compile(r"\.(?:sh|bash|zsh|py|[cm]?[jt]s|rb|pl|php|mk|fish)$")
_STARTED = re.compile(
    r"^(?:python[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|sh|bash|dash|zsh|source|\.|-f|--file)$"
)
_TEST_KEYS = words("scripts jest mocha ava babel vitest type main exports imports")
_TEST_TABLES = words("pytest setuptools hatch")
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
_PIP = frozenset({"pip", "pip3"})
_OWN_PACKAGE = re.compile(r"\.{1,2}(?:/|\[|$)|-e$|--editable")
_NO_NAME = re.compile(r"^[A-Za-z_]\w*=|[*?\[]")  # a variable, or names that a shell fills in
_RECIPE_SIGNS = re.compile(r"^[@+-]+")

CHANGED = "The work changes this file, by which {names} runs: does every verify command still run and check all that it did?"
GONE = "The work deletes this file, by which {names} ran: does every verify command still run and check all that it did?"


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
    named = {word.removeprefix("./") for word in _PATH.findall(command)}
    runs_by = run_by(command, read)
    deciding = sorted(p for p in files if p in named or is_manifest(p) or runs_by.fullmatch(p))
    lines = [command, *(f"{path}\0{files[path]}" for path in deciding)]
    return hashlib.sha256("\0\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def run_file_questions(
    commands: Mapping[str, str | None], changes: Sequence[FileChange], read: Read
) -> Iterator[ChangeQuestion]:
    """Yield a question for each changed file by which an approved command runs. A new file asks nothing.

    `commands` are by the specification's names; `read` gives the text of a file after the change, None where there is none.
    """
    waiting = [change for change in changes if change.before is not None and _differs(change)]
    # A set-up installs by manifests; the scripts and sources that these name are run by other commands.
    runs_by = {
        name: run_by(command or "", read, depth=0 if name == "verify-setup" else _DEPTH)
        for name, command in (commands.items() if waiting else ())
    }
    for change in waiting:
        names = ", ".join(name for name, paths in runs_by.items() if paths.fullmatch(change.path))
        if names:
            text = (GONE if change.after is None else CHANGED).format(names=names)
            before = _without(change.before or "", change.after or "")
            after = _without(change.after or "", change.before or "")
            yield ChangeQuestion("", "run_file_changed", text, change.path, None, before, after)


def _without(text: str, other: str) -> str:
    """Return the lines of a text that the other one has not."""
    known = set(other.splitlines())
    return "\n".join(line for line in text.splitlines() if line not in known)[:_SHOWN]


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


def run_by(command: str, read: Read, *, depth: int = _DEPTH) -> re.Pattern[str]:
    """Return the pattern of the paths by which a command runs: files that it names, settings, files that these name,
    as far as `depth`.
    """
    found: dict[str, None] = {}
    waiting = [(path, 0) for path in _of_line(command, "")]
    while waiting and len(found) < _MOST_FILES:
        path, level = waiting.pop(0)
        if path in found:
            continue
        found[path] = None
        text = read(path) if level < depth else None
        if text is not None:
            waiting += [(other, level + 1) for other in _of_file(path, text[:_MOST_CHARS])]
    return re.compile("|".join(fnmatch.translate(path) for path in found))


def _differs(change: FileChange) -> bool:
    """Return True but for a manifest of which some tables alone decide on a run, and these are as they were."""
    return _deciding(change.path, change.before or "") != _deciding(change.path, change.after or "")


def _deciding(path: str, text: str) -> object:
    """Return the tables of a manifest that decide on a run; of any other file its text."""
    name = path.rpartition("/")[2]
    if name == "package.json" and (table := read_json_table(text)) is not None:
        return [table.get(key) for key in sorted(_TEST_KEYS)]
    if name == "pyproject.toml" and (table := read_toml_table(text)) is not None:
        build, tool = table.get("build-system"), table.get("tool")
        backend = {k: v for k, v in build.items() if k != "requires"} if isinstance(build, dict) else {}
        return [backend, {k: tool[k] for k in _TEST_TABLES if k in tool} if isinstance(tool, dict) else {}]
    return text


def _of_file(path: str, text: str) -> Iterator[str]:
    """Yield the names in a file that decides on a command: in its lines, scripts or quotes."""
    folder, _, name = path.rpartition("/")
    if name == "package.json":
        scripts = (read_json_table(text) or {}).get("scripts")
        for line in scripts.values() if isinstance(scripts, dict) else ():
            yield from _of_line(str(line), folder)
        return
    if name.endswith((".py", "js", ".ts", ".rb", ".pl", ".php", ".toml", ".json", ".ini", ".cfg")):
        # A program is changed by what it starts, not by the sources that it imports
        ends = "sh|mk" if _PROGRAM_FILE.search(name) else "sh|py|[cm]?js|mk"
        lines = re.findall(rf"[\"'`]((?:\./)?[\w./-]+\.(?:{ends}))[\"'`]", text)
        yield from (_joined(start, line) for line in lines if "/" in line for start in ("", folder))
        return
    # make runs recipes where it was started; the file that it includes is a word of the line
    for line in text.splitlines():
        stripped = _RECIPE_SIGNS.sub("", line.strip()).replace("$(MAKE)", "make")
        if stripped and not stripped.startswith("#"):
            yield from _of_line(stripped[:2_000], folder if name.lower().endswith("makefile") else "")


def _of_line(line: str, folder: str) -> Iterator[str]:
    """Yield the files by which the commands of a line run; a `cd` before them leads into its folder."""
    for simple in simple_commands(line):
        texts = [text for text in simple.words if not _NO_NAME.search(text)]
        if not texts:
            continue
        if texts[0] == "cd" and len(texts) > 1:
            folder = _joined(folder, texts[1])
            continue
        yield from _of_words(texts, folder)


def _of_words(texts: Sequence[str], folder: str) -> Iterator[str]:
    inside = folder
    for option, value in itertools.pairwise(texts):
        if option in {"-C", "--directory", "--prefix", "--cwd"}:
            inside = _joined(folder, value)
    programs = dict.fromkeys(found[1] for found in map(_PROGRAM.fullmatch, texts) if found)
    if programs.keys() & _PIP and not any(map(_OWN_PACKAGE.match, texts)):
        # It installs other packages, and reads nothing of the project
        programs = {program: None for program in programs if program not in _PIP | {"uv"}}
    for program in programs:
        yield from (_joined(inside, each) for each in _SETTINGS.get(program, ()))
    for before, text in itertools.pairwise(("", *texts)):
        if before == "-m" and _MODULE.match(text):
            yield from (_joined(inside, text.replace(".", "/") + end) for end in (".py", "/__main__.py"))
        elif not text.startswith(("-", "$", "/")) and (
            (not before and "/" in text)
            or _SCRIPT.search(text)
            or _STARTED.match(before.rpartition("/")[2])
            or "include" in before
        ):
            yield _joined(inside, text)


def _joined(folder: str, path: str) -> str:
    """Return the path from the project's root; a path that leads out of it names nothing there."""
    return posixpath.normpath(posixpath.join(folder, path))
