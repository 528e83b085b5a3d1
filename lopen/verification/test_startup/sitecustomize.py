"""Note how a test run in Python goes, beside what it prints. PYTEST_DONT_REWRITE

Python imports this file at its start in the clean room, under any version: it imports nothing of lopen. It notes only
processes that start pytest or unittest, in lines that `lopen.verification.run_records` reads. It never makes a run fail.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_NOTES = os.path.join(os.path.dirname(_HERE), "notes")
_OPTIONS = os.path.join(_HERE, "options")
_PROCESS = os.getpid()
_QUESTIONS = {"--version", "-V", "-VV", "--help", "-h", "--markers"}  # of the runner itself: no test runs

_MOST_NAMED = 400_000  # characters of names of tests


def _options() -> "list[str]":
    """Return what lopen asks of this run: `go_on` where a file cannot be loaded, `stop` at the first failure, and with
    `only NAME` the files of these tests alone.
    """
    try:
        with open(_OPTIONS, "rb") as asked:
            return asked.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


_reported: "set[str]" = set()
_failed: "set[str]" = set()
_skipped: "set[str]" = set()
_deselected: "set[str]" = set()
_depth: "list[int]" = []


def _note(*words: object) -> None:
    if os.getpid() != _PROCESS:
        return  # a child that a test forked
    try:
        descriptor = os.open(_NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(
                descriptor,
                (" ".join(map(str, (_PROCESS, *words))) + "\n").encode("utf-8", "backslashreplace"),
            )
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _note_names(names: "set[str]", failed: "set[str]", skipped: "set[str]") -> None:
    """Note the tests that ran, those of them that failed, and those that were skipped, without what tells rows of a table
    apart; none of a suite too large for it.
    """
    for word, which in (("test", names), ("failed", failed), ("skipped", skipped)):
        each = sorted({name.split("[")[0] for name in which})
        if sum(map(len, each)) > _MOST_NAMED:
            return
        for name in each:
            _note(word, name.replace("\n", " "))


def _forget_path() -> None:
    """Take this folder out of what the program and its children see: what tests start is not the run of the tests."""
    sys.path[:] = [path for path in sys.path if path != _HERE]
    kept = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != _HERE]
    if any(kept):
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)
    own = '--require "' + os.path.join(_HERE, "record.cjs") + '"'
    options = os.environ.pop("NODE_OPTIONS", "").replace(own, "").strip()
    if options:
        os.environ["NODE_OPTIONS"] = options


def _runner() -> str:
    words = list(getattr(sys, "orig_argv", ()))
    if not words:
        try:
            with open("/proc/self/cmdline", "rb") as given:
                words = given.read().decode("utf-8", "replace").split("\0")
        except OSError:
            return ""
    return "" if _QUESTIONS & set(words) else _named(words[1:])


def _named(words: list) -> str:  # type: ignore[type-arg]
    """Return the runner that Python's own arguments start, also under coverage; "" for another program."""
    coverage = value = False
    for at, word in enumerate(words):
        if word.startswith("-m") and not value:
            module = word[2:] or "".join(words[at + 1 : at + 2])
            if module != "coverage":
                return module if module in ("pytest", "unittest") else ""
            coverage = True
        elif not word.startswith("-") and not value and not coverage:
            name = os.path.basename(word)
            if name != "coverage":
                return "pytest" if name in ("pytest", "py.test") else ""
            coverage = True
        value = word in ("-W", "-X")
    return ""


def pytest_configure(config) -> None:  # type: ignore[no-untyped-def]
    """Remove what made pytest load this file, and have it go on, stop or load some files alone as it is asked to."""
    if "go_on" in _options():
        config.option.continue_on_collection_errors = True
    if "stop" in _options():
        config.option.maxfail = 1
    files = sorted({line[5:].split("::")[0] for line in _options() if line.startswith("only ")})
    if files and all(map(os.path.isfile, files)) and not any("::" in each for each in config.args):
        config.args[:] = files  # the others are not even imported
    others = [name for name in os.environ.get("PYTEST_PLUGINS", "").split(",") if name != __name__]
    if any(others):
        os.environ["PYTEST_PLUGINS"] = ",".join(others)
    else:
        os.environ.pop("PYTEST_PLUGINS", None)


def pytest_collection_modifyitems(config, items) -> None:  # type: ignore[no-untyped-def]
    """Keep the tests of the files that are asked for, those that are named themselves first."""
    named = {line[5:] for line in _options() if line.startswith("only ")}
    files = tuple("/" + name.split("::")[0] for name in named)
    known = {item: "/" + item.nodeid.split("::")[0] for item in items}
    asked = {file for file in set(known.values()) if any(file.endswith(f) or f.endswith(file) for f in files)}
    kept = [item for item, file in known.items() if file in asked]
    if not kept:
        return
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item, file in known.items() if file not in asked])
    items[:] = sorted(kept, key=lambda item: item.nodeid.split("[")[0] not in named)


def pytest_collection_finish(session) -> None:  # type: ignore[no-untyped-def]
    """Note the number of tests that pytest is going to run."""
    _note("collected", len(session.items))


def pytest_runtest_logreport(report) -> None:  # type: ignore[no-untyped-def]
    """Count a test as run once its call, or what keeps it from being called, is reported."""
    if report.when == "call" or report.outcome != "passed":
        _reported.add(report.nodeid)
        if report.outcome == "failed":
            _failed.add(report.nodeid)
        elif report.outcome == "skipped" and not hasattr(report, "wasxfail"):
            _skipped.add(report.nodeid)
        elif report.when == "call":
            _failed.discard(report.nodeid)  # a plugin tried it again


def pytest_deselected(items) -> None:  # type: ignore[no-untyped-def]
    """Keep the names of the tests that an option or a plugin left out: they are known, and did not run."""
    _deselected.update(item.nodeid for item in items)


def pytest_sessionfinish() -> None:
    """Note what pytest counted: a session that ends the process before has nothing noted."""
    _note("ran", len(_reported), len(_failed), len(_skipped))
    _note_names(_reported - _skipped, _failed, _skipped | _deselected)


def _names_in(suite: object) -> "dict[str, set[str]]":
    """Return the tests of a suite of unittest as pytest names them, each with what unittest calls it, its class and its
    module; without those by which unittest says that it failed.
    """
    if hasattr(suite, "__iter__"):
        return {name: places for each in suite for name, places in _names_in(each).items()}
    owner, name = type(suite), getattr(suite, "_testMethodName", "")
    if owner.__module__.startswith("unittest."):
        return {}
    place = owner.__module__ + "." + owner.__qualname__
    named = "::".join([owner.__module__.replace(".", "/") + ".py", *owner.__qualname__.split("."), name])
    return {named: {owner.__module__, place, place + "." + name}}


def _places(tests: list) -> "set[str]":  # type: ignore[type-arg]
    """Return what unittest calls these tests, classes (in setUpClass) and modules (in setUpModule)."""
    return {each.id().split(" (")[-1].rstrip(")") for each in tests}


def _watch_unittest() -> None:
    from unittest.runner import TextTestRunner

    run = TextTestRunner.run

    def noted(self, test):  # type: ignore[no-untyped-def]
        self.failfast = self.failfast or "stop" in _options()
        _depth.append(1)
        try:
            collected = test.countTestCases()
            names = {} if _depth[1:] else _names_in(test)
            result = run(self, test)
        finally:
            _depth.pop()
        if not _depth:
            failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
            _note("collected", result.testsRun if result.skipped else collected)
            alone = [each for each, _ in result.skipped if not hasattr(each, "test_case")]  # without subtests
            broken = [getattr(each, "test_case", each) for each, _ in result.failures + result.errors]
            _note("ran", result.testsRun, failed, len([e for e in alone if hasattr(e, "_testMethodName")]))
            skipped, broke = _places(alone), _places(broken + result.unexpectedSuccesses)
            failing = {name for name, places in names.items() if places & broke}
            without = {name for name, places in names.items() if places & skipped}
            _note_names(set(names) - without, failing, without)
        return result

    TextTestRunner.run = noted  # type: ignore[method-assign]


def _run_next() -> None:
    """Run the file of this name that Python would have run."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec(__name__, [path for path in sys.path if path != _HERE])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _start() -> None:
    runner = _runner()
    if not runner:
        return
    _note("started", runner)
    _forget_path()
    if runner == "unittest":
        _watch_unittest()
    else:
        names = os.environ.get("PYTEST_PLUGINS", "")
        os.environ["PYTEST_PLUGINS"] = names + "," + __name__ if names else __name__


if __name__ == "sitecustomize":
    _run_next()
    _start()
