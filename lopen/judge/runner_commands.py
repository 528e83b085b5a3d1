"""Which test runners a shell command calls plainly: by name, with nothing between their output and lopen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lopen.core.shell_syntax import parse

# What lets the output of the commands through; alternatives (`||`, `else`, `case`) leave open which of them runs
_PLAIN = frozenset({"&&", ";", "\n", "if", "then", "fi", "{", "}", "for", "while", "until", "do", "done"})
_MERGES = (("2", ">&", "1"), ("1", ">&", "2"))  # both streams are read anyway
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
# What stands before a runner and lets its output through
_WRAPPERS: tuple[tuple[str, ...], ...] = (
    ("env",),
    ("exec",),
    ("command",),
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("npx",),
    ("bunx",),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("yarn",),
)
_PYTHON = re.compile(r"^(?:python|pypy)[\d.]*$")
_CALLS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pytest": (("pytest",), ("py.test",)),
    "jest": (("jest",),),
    "vitest": (("vitest", "run"), ("vitest",)),
    "mocha": (("mocha",),),
    "node --test": (("node", "--test"),),
    "go test": (("go", "test"),),
    "cargo test": (("cargo", "test"), ("cargo", "t")),
    "cargo nextest": (("cargo", "nextest", "run"),),
    "maven": tuple(
        (mvn, goal) for mvn in ("mvn", "mvnw") for goal in ("test", "verify", "package", "install")
    ),
    "ctest": (("ctest",),),
    "rspec": (("rspec",), ("bundle", "exec", "rspec")),
    "phpunit": (("phpunit",),),
    "deno test": (("deno", "test"),),
}
_MODULES = {"pytest": "pytest", "unittest": "unittest"}  # of `python -m`
# Options under which a runner prints no summary, or another one
_QUIET: Mapping[str, re.Pattern[str]] = {
    "pytest": re.compile(
        r"^(?:-p)?no:terminal|^--(?:version|help|fixtures|markers|co|collect-only|setup-plan)$"
    ),
    "jest": re.compile(r"^--reporters\b|^--(?:json|outputFile|version|showConfig|listTests)\b"),
    "vitest": re.compile(r"^--(?:reporter|outputFile|silent|version)\b"),
    "mocha": re.compile(r"^-R|^--reporter\b|^--version$"),
    "node --test": re.compile(r"^--test-reporter"),
    "go test": re.compile(r"^--?(?:c|json|list|exec|o)(?:=|$)"),
    "cargo test": re.compile(r"^--(?:format|logfile|list|no-run|help|message-format)\b"),
    "cargo nextest": re.compile(r"^--(?:status-level|final-status-level|message-format)"),
    "maven": re.compile(r"^-(?:q|l|v|h)$|^--(?:quiet|log-file|version|help)$"),
    "ctest": re.compile(r"^-(?:Q|O)$|^--(?:quiet|output-log)"),
    "rspec": re.compile(r"^-(?:f|o)|^--(?:format|out|require)\b"),
    "phpunit": re.compile(r"^--(?:no-output|teamcity|testdox|printer|no-results)"),
    "deno test": re.compile(r"^--(?:reporter|no-run)\b"),
}


def called_runners(command: str) -> tuple[str, ...]:
    """The names of the runners that `command` calls plainly; none where that cannot be told for certain.

    A pipe, a redirection, an alternative or a substitution may take the output away, an option may ask for none:
    then nothing is said of that runner.
    """
    return tuple(name for words in _simple_commands(command) for name in _runner(words))


def _simple_commands(command: str) -> Iterator[Sequence[str]]:
    """The commands of chains and conditions; none at all where the shell is asked for more than that."""
    script = parse(command)
    if script.uncertain or script.functions or not script.operators <= _PLAIN:
        return
    for simple in script.commands:
        redirections = [(r.descriptor, r.operator, r.target.text) for r in simple.redirections]
        if simple.subshell or any(redirection not in _MERGES for redirection in redirections):
            return
    yield from (simple.texts for simple in script.commands)


def _runner(words: Sequence[str]) -> Iterator[str]:
    rest = _unwrapped(words)
    if not rest:
        return
    first = rest[0].rpartition("/")[2]
    if _PYTHON.match(first):
        yield from _of_python(rest)
        return
    plain = [first, *(word for word in rest[1:] if not word.startswith("-"))]
    for name, calls in _CALLS.items():
        if any(call in ((first, *rest[1 : len(call)]), tuple(plain[: len(call)])) for call in calls):
            if not _is_quiet(name, rest[1:]):
                yield name
            return


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """The words from the runner on: without assignments and what merely starts it."""
    while words:
        wrapper = next((w for w in _WRAPPERS if tuple(words[: len(w)]) == w), ())
        if wrapper:
            words = words[len(wrapper) :]
        elif _ASSIGNMENT.match(words[0]):
            words = words[1:]
        else:
            return words
    return words


def _of_python(words: Sequence[str]) -> Iterator[str]:
    """`python -m pytest`, with options of Python's own before it."""
    for index, word in enumerate(words[1:], 1):
        if word == "-m":
            name = _MODULES.get(next(iter(words[index + 1 :]), ""))
            if name and not _is_quiet(name, words[index + 2 :]):
                yield name
            return
        if not re.match(r"^-[bBdEIOPqsSuvx]+$", word):
            return


def _is_quiet(name: str, options: Sequence[str]) -> bool:
    if name == "pytest" and sum(word.count("q") for word in options if re.match(r"^-[qvsx]+$", word)) > 1:
        return True
    pattern = _QUIET.get(name)
    return pattern is not None and any(pattern.search(word) for word in options)
