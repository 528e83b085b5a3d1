"""Which tests a run of the test command ran, as far as the runner names them, and how many.

The names come from lopen's own record of the run, else from the runner's output: of single tests, of files or of
packages. A test that was skipped did not run. docs/reference/completion.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from lopen.verification.runners import count_tests, plain

MOST_NAMES = 5_000  # of one kind; of more, only the count is kept

# Kinds of names. Names of single tests are by language, because a run may record one of its languages alone
_PYTHON, _SCRIPT, _JAVA, _GO, _RUST = "python", "script", "java", "go", "rust"
SINGLE = frozenset({_PYTHON, _SCRIPT, _JAVA, _GO, _RUST})
_TITLE, _FILE, _PACKAGE = "title", "file", "package"
_OF_RECORD = (
    (_PYTHON, re.compile(r"^.+?\.py::")),
    (_SCRIPT, re.compile(r"^.+?\.[cm]?[jt]sx?::")),
    (_JAVA, re.compile(r"^.+?\.java::")),
)
_SCRIPT_PATH = r"[\w@./-]+\.[cm]?[jt]sx?"
_NAMED = re.compile(
    rf"^[ \t]*(?:[✔✓√✖✗×❯]|PASS|FAIL) +(?:\|[^|\n]*\| +)?(?P<file>{_SCRIPT_PATH})(?=$|[ (])"
    r"|^[ \t]*(?:not )?ok \d+ - (?![^\n]* # SKIP\b)(?P<title>[^\n]*?)(?: #[^\n]*)?$"
    r"|^[ \t]*[✔✓√✖✗] +(?P<spec>[^\n]*?)(?: \(?[\d.]+ ?m?s\)?)?(?: #[^\n]*)?$"
    r"|--- (?:PASS|FAIL): (?P<go>\S+) \([\d.]+s\)$"
    r"|^(?:ok|FAIL)[ \t]+(?P<package>\S+)[ \t]+(?:\(cached\)|[\d.]+s)(?![^\n]*no tests to run)"
    r"|^[ \t]*(?:Running (?:unittests )?(?P<target>\S+\.rs) \(|Doc-tests (?P<documents>\S+)$)"
    r"|^test (?P<rust>\S+)(?: - [^\n]*)? \.\.\. (?!ignored)",
    re.MULTILINE,
)

_FAILING = re.compile(r"--- FAIL: ")
_SKIPPED = re.compile(
    r"--- SKIP: (?P<go>\S+)|^test (?P<rust>\S+)(?: - [^\n]*)? \.\.\. ignored"
    r"|^[ \t]*(?:not )?ok \d+ - (?P<tap>[^\n]*?) # SKIP\b",
    re.MULTILINE,
)
_LAST_PART = re.compile(r"::| > |/")
# Placeholders that a runner fills in for each row in the title of a table: printf's and Jest's forms, template literals
_FILLED = re.compile(r"%(?:\d+\$)?[-+#0 ]*\d*(?:\.\d+)?[a-zA-Z#$]|\$\{[^}]*\}|\$[\w.#]+")
_NUMBERED = re.compile(r"(.*) \(\d+\)$", re.DOTALL)


@dataclass(frozen=True)
class TestRun:
    """The tests of one run: their number, None where no runner told it, and the names that are known, by kind.

    Names of the kinds `SINGLE` are `path::name` (of Go `package::name`, of Rust `target::module::name`, of Java also a class alone); `title` ones are
    a test's own name alone; `file` and `package` ones are places of tests that ran.
    """

    __test__ = False

    count: int | None = None
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()  # names of tests that were reported as skipped
    failed: frozenset[str] = frozenset()  # names of single tests that failed; of a run that passed none

    @property
    def single(self) -> frozenset[str]:
        """The names of single tests."""
        return frozenset(name for kind, names in self.names.items() if kind in SINGLE for name in names)

    @property
    def passed(self) -> frozenset[str]:
        """The names of single tests that passed."""
        return self.single - self.failed

    @cached_property
    def _known(self) -> Mapping[str, frozenset[str]]:
        return {kind: frozenset(names) for kind, names in self.names.items()}

    def ran(self, path: str, name: str, *, moved: bool = False) -> bool | None:
        """Return whether the test `name` of the file ran; None where the run's names do not tell.

        `moved`: it came from another file. The module of a Rust file is not certain then, and a test of the same name
        is taken for it.
        """
        short = last_part(name)
        if path.endswith(".py"):
            return self._any(_PYTHON, _suffixes(f"{path}::{name}"))
        if path.endswith("_test.go"):
            return self._ran_in_go(path.rpartition("/")[0], name)
        if path.endswith(".rs"):
            certain = not moved and _RUST in self._known
            return self._ran_in_rust(path, name) if certain else self._any(_TITLE, [short])
        if path.endswith((".java", ".kt", ".groovy")) and _JAVA in self._known:
            full = f"{path.rpartition('.')[0]}.java::{name}"
            ran = self._any(_JAVA, _suffixes(full))
            # The class alone says that tests of it ran whose methods are not told
            return ran or (None if self._any(_JAVA, _suffixes(full.rpartition("::")[0])) else ran)
        if _SCRIPT in self._known and re.search(r"\.[cm]?[jt]sx?$", path):
            return self._ran_as_script(path, name)
        found = self._any(_FILE, _suffixes(path))
        return found if found is not None else self._any(_TITLE, [short])

    def reported(self, path: str, name: str) -> bool:
        """Return True if the run told of the test, also as skipped, or as inherited by another class."""
        mine = last_part(name)
        told = (*self.skipped, *(self.single if "::" in name else ()))
        return self.ran(path, name) is True or any(last_part(each) == mine for each in told)

    def knows_folder(self, path: str) -> bool:
        """Return True if a test of the file's folder, or of one above it, ran."""
        folder = path.rpartition("/")[0]
        if path.endswith((".go", ".rs")):
            return True
        for kind in (_PYTHON, _SCRIPT, _JAVA):
            for name in self.names.get(kind, ()):
                known = name.partition("::")[0].rpartition("/")[0]
                if folder == known or (known and f"/{known}/" in f"/{folder}/"):
                    return True
        return False

    def _any(self, kind: str, wanted: Iterable[str]) -> bool | None:
        known = self._known.get(kind)
        return None if not known else any(name in known for name in wanted)

    def _ran_in_go(self, folder: str, name: str) -> bool | None:
        """Go names packages; the module's own is the shortest one."""
        packages = {each.partition("::")[0] for each in self._known.get(_GO, ())}
        packages |= self._known.get(_PACKAGE, frozenset())
        if not packages:
            return self._any(_TITLE, [name.split("/")[0]])
        ends = [f"/{end}" for end in _suffixes(folder)] if folder else [""]
        mine = next(
            (found for end in ends if (found := {p for p in packages if f"/{p}".endswith(end)})), set()
        )
        if not folder:
            mine = {min(packages, key=len)}
        if _GO not in self._known:
            return bool(mine)
        written = name.replace(" ", "_")
        return any(f"{package}::{written}" in self._known[_GO] for package in mine)

    def _ran_in_rust(self, path: str, name: str) -> bool:
        """Cargo names a crate's root file, then the modules; rstest and others add a module for the rows of a table."""
        known = self._known.get(_RUST, frozenset())
        for target in {each.partition("::")[0] for each in known}:
            top = f"{target.rpartition('/')[0]}/"
            inside = next((end for end in _suffixes(path) if end.startswith(top)), "")
            module = inside.removeprefix(top).removesuffix(".rs").removesuffix("/mod").replace("/", "::")
            full = f"{target}::{name}" if inside == target else f"{target}::{module}::{name}"
            if inside and any(each == full or each.startswith(f"{full}::") for each in known):
                return True
        return False

    def _ran_as_script(self, path: str, name: str) -> bool:
        names = self._known[_SCRIPT]
        unnumbered = _NUMBERED.match(name)  # two tests of one title
        if unnumbered and self._ran_as_script(path, unnumbered[1]):
            return True
        if not _FILLED.search(name):
            return any(each in names for each in _suffixes(f"{path}::{name}"))
        title = re.compile(".*".join(map(re.escape, _FILLED.split(name))), re.DOTALL)
        files = {f"{each}::" for each in _suffixes(path)}
        return any(
            title.fullmatch(test)
            for each in names
            for file, _, test in [each.partition("::")]
            if f"{file}::" in files
        )

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return {
            "count": self.count,
            "names": {kind: list(names) for kind, names in self.names.items()},
            "skipped": list(self.skipped),
        }


def run_from_json(data: Mapping[str, Any]) -> TestRun:
    """Return the run that `to_json` gave."""
    names = {kind: tuple(names) for kind, names in data["names"].items()}
    return TestRun(data["count"], names, tuple(data["skipped"]))


def read_run(output: str, recorded: Iterable[str], noted: TestRun) -> TestRun:
    """Return the known facts of a run that printed `output`: `recorded` names of tests that ran, and the other facts
    that were `noted`.
    """
    text = plain(output)
    recorded = list(recorded)
    names: dict[str, set[str]] = {}
    for kind, pattern in _OF_RECORD:
        names[kind] = {test for test in recorded if pattern.match(test)}
    _add_printed(text, names)
    kept = {kind: tuple(sorted(each)) for kind, each in names.items() if 0 < len(each) <= MOST_NAMES}
    skipped = (*noted.skipped, *(found[found.lastgroup or 0] for found in _SKIPPED.finditer(text)))
    return replace(
        noted,
        count=count_tests(text) if noted.count is None else noted.count,
        names=kept,
        skipped=tuple(dict.fromkeys(skipped))[:MOST_NAMES],
        failed=noted.failed | _printed_failures(text),
    )


def _printed_failures(text: str) -> frozenset[str]:
    """Return the names of the single tests that failed, as runners print them."""
    names: dict[str, set[str]] = {}
    _add_printed(
        text, names, lambda found: bool(_FAILING.match(found[0]) or text.startswith("FAILED", found.end()))
    )
    return frozenset().union(*(each for kind, each in names.items() if kind in SINGLE))


def _add_printed(
    text: str, names: dict[str, set[str]], wanted: Callable[[re.Match[str]], bool] = lambda _: True
) -> None:
    """Add the names that runners print to those by kind. Go names a package behind its tests, cargo a target before."""
    waiting: list[str] = []
    target = ""
    for found in _NAMED.finditer(text):
        group = found.lastgroup or ""
        name = found[group]
        if group in ("go", "rust") and not wanted(found):
            continue
        if group in ("target", "documents"):
            target = name if group == "target" else ""
        elif group == "go":
            waiting.append(name)
            names.setdefault(_TITLE, set()).add(name)
        elif group == "rust":
            names.setdefault(_TITLE, set()).add(name.rpartition("::")[2])
            if target:
                names.setdefault(_RUST, set()).add(f"{target}::{name}")
        elif group == "package":
            names.setdefault(_PACKAGE, set()).add(name)
            names.setdefault(_GO, set()).update(f"{name}::{test}" for test in waiting)
            waiting = []
        else:
            names.setdefault(_FILE if group == "file" else _TITLE, set()).add(name)


def in_file(name: str, path: str) -> bool:
    """Return True if a runner's name is of a test in this file."""
    file = name.partition("::")[0]
    return path == file or path.endswith(f"/{file}") or file.endswith(f"/{path}")


def last_part(name: str) -> str:
    """Return a test's own part of its name."""
    return _LAST_PART.split(name)[-1]


def _suffixes(path: str) -> Iterable[str]:
    """Yield the path from each of its folders on: a command may run in a folder, or name paths from one."""
    before, _, behind = path.partition("::")
    parts = before.split("/")
    rest = f"::{behind}" if behind else ""
    return ["/".join(parts[at:]) + rest for at in range(len(parts))]
