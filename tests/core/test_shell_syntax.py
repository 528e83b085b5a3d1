"""The shell parser: what it lists, compared with what bash runs."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lopen.core.shell_syntax import parse
from tests.fuzz.inputs import ANY_TEXT, bounded, pieces
from tests.tables import table

CASES = table(__file__, "shell_texts.toml")
NEEDS_BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
_LOGS = count()


def ran(text: str, folder: Path) -> set[str]:
    """What bash runs of a text: the first arguments of each call of `run`."""
    log = folder / f"log{next(_LOGS)}"
    prelude = folder / "prelude"
    prelude.write_text('run() { builtin echo "$1" >> "$LOG"; }\ncat() { :; }\nexport -f run cat\n')
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with contextlib.suppress(subprocess.TimeoutExpired):  # what it ran until then counts
        subprocess.run(
            [shutil.which("bash") or "bash", "-c", text],
            env={"BASH_ENV": str(prelude), "LOG": str(log), "PATH": "/nonexistent"},
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
    return set(log.read_text(errors="replace").split()) if log.exists() else set()


def listed(text: str) -> set[str]:
    """The arguments of the calls of `run` that the parser lists."""
    words = [command.texts for command in parse(text).commands]
    return {line[i + 1] for line in words for i, word in enumerate(line[:-1]) if word == "run"}


@NEEDS_BASH
@pytest.mark.parametrize("text", CASES["run"])
def test_each_command_that_bash_runs_is_listed(text: str, tmp_path: Path) -> None:
    done = ran(text, tmp_path)
    assert done, "bash runs nothing of it"
    assert done <= listed(text)


@pytest.mark.parametrize("text", CASES["run"])
def test_a_text_that_bash_accepts_is_certain(text: str) -> None:
    assert not parse(text).uncertain


@pytest.mark.parametrize(
    "text",
    [
        "a # $(b)",
        "a '$(b)'",
        'a "\\$(b)"',
        "a <<'E'\n$(b)\nE",
        "a <<\\E\n`b`\nE",
        "a $'\\'$(b)'",
        "a \\`b\\`",
    ],
)
def test_what_a_shell_does_not_expand_holds_no_command(text: str) -> None:
    assert [command.texts[0] for command in parse(text).commands] == ["a"]


@pytest.mark.parametrize("text", CASES["uncertain"])
def test_a_text_that_cannot_be_told_is_uncertain(text: str) -> None:
    assert parse(text).uncertain


SIGNS = CASES["signs"]
WRAPPED = (
    "{}",
    "x $({})\nrun Z",
    "x `{}`\nrun Z",
    '"{}"\nrun Z',
    "cat <<E\n{}\nE\nrun Z",
    "case a in a) {};; esac\nrun Z",
)


@NEEDS_BASH
@given(st.lists(st.sampled_from(SIGNS), min_size=2, max_size=14), st.sampled_from(WRAPPED))
@bounded(150)
def test_no_command_of_a_certain_text_is_missed(
    tmp_path_factory: pytest.TempPathFactory, signs: list[str], wrapped: str
) -> None:
    numbers = count()
    text = wrapped.replace(
        "{}", "".join(f"run N{next(numbers)}N " if sign == "run " else sign for sign in signs)
    )
    script = parse(text)
    if not script.uncertain:
        names = re.findall(r"(?=(N\d+N|Z))", " ".join(" ".join(c.texts) for c in script.commands))
        done = ran(text, tmp_path_factory.mktemp("bash"))
        assert {name for text in done for name in re.findall(r"N\d+N|Z", text)[:1]} <= set(names)


@given(ANY_TEXT | pieces(*SIGNS, "E\n", "${", "$[", "\r", "\0"))
@example("$(" * 5_000)
@example("`" * 5_001)
@example("<<a <<b <<c\n" * 500)
@example("((" * 5_000 + "))" * 5_000)
@example("a=(" * 5_000)
@example("case a in " * 5_000)
@bounded(300)
def test_any_text_is_read(text: str) -> None:
    for command in parse(text).commands:
        assert command.words or command.assignments or command.redirections


def steps(text: str) -> int:
    """Calls and lines that reading a text takes."""
    taken = count()

    def tracer(frame: object, event: str, argument: object) -> object:
        next(taken)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)  # type: ignore[arg-type]  # the arguments are not looked at
    try:
        parse(text)
    finally:
        sys.settrace(before)
    return next(taken)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a ",
            "$(a) ",
            "`a` ",
            "((a);b)\n",
            "$((a);b) ",
            "cat <<E\n$(a)\nE\n",
            "<<E ",
            "a=(1 2) ",
            "${x:-$(a)}",
            '"$x',
        ),
        *(
            "((",
            "$((",
            "(",
            "{ ",
            "case a in a) ",
            "\\`",
            "'",
            "<(",
            "a|",
            "<<E\n",
            "if a; then ",
            "[[ a ",
            "a[1]=2 ",
        ),
    ],
)
def test_the_time_grows_as_the_text_does(piece: str) -> None:
    short, long = steps(piece * 400), steps(piece * 1_600)
    assert long < 5 * short + 1_000


def test_what_is_known_of_a_word() -> None:
    [command] = parse("ls a'b' \"$x\" $y{1,2} ~/*.py ${z:-1} $(d) 'x y'").commands[-1:]
    words = command.words
    assert command.texts == ("ls", "ab", "$x", "$y{1,2}", "~/*.py", "${z:-1}", "$()", "x y")
    assert [word.expands for word in words] == [False, False, True, True, False, True, True, False]
    assert [word.quoted for word in words] == [False, True, True, False, False, False, False, True]
    assert [word.pattern for word in words] == [False, False, False, True, True, False, False, False]
    assert words[2].pieces[-1] == ("quoted variable", "x")


def test_what_a_command_reads_and_writes() -> None:
    script = parse("x=1 y+=2 a > out 2>> log < in | b <<E &> all; (c; d) <<< 'e f' | g\nbody $x\nE\n")
    a, b, c, d, group, g = script.commands
    assert [(name, value.text) for name, value in a.assignments] == [("x", "1"), ("y", "2")]
    assert [(r.descriptor, r.operator, r.target.text) for r in a.redirections] == [
        ("", ">", "out"),
        ("2", ">>", "log"),
        ("", "<", "in"),
    ]
    assert [r.target.text for r in a.redirections if r.writes] == ["out", "log"]
    assert b.redirections[0].body is not None
    assert b.redirections[0].body.text == "body $x\n"
    assert list(b.piped_from) == [0]
    assert list(group.group) == [2, 3]
    assert group.redirections[0].body is not None
    assert group.redirections[0].body.text == "e f"
    assert list(g.piped_from) == [2, 3, 4]
    assert c.subshell == d.subshell != a.subshell == ()


def test_what_is_piped_into_a_compound_command_reaches_each_command_in_it() -> None:
    script = parse("echo a | { b; if c; then d | e; fi; } | f; g")
    piped = {command.texts[0]: list(command.piped_from) for command in script.commands}
    assert piped == {"echo": [], "b": [0], "c": [0], "d": [0], "e": [3], "f": [1, 2, 3, 4], "g": []}


def test_loops_assign_their_words_and_functions_are_named() -> None:
    script = parse("for x in a $b; do c; done; f() { d; }; function g { e; }")
    assert [(name, value.text) for name, value in script.commands[0].assignments] == [("x", "a"), ("x", "$b")]
    assert script.functions == {"f", "g"}
    assert {"for", "do", "done", ";", "{", "}"} <= script.operators


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("\\n\\t\\\\\\'\\\"", "\n\t\\'\""),
        ("\\x6c\\157\\u70\\U00000065n", "lopen"),
        ("lopen\\0 more", "lopen"),
        ("\\xZ\\q\\U99999999", "\\xZ\\q\ufffd"),
        ("a\\cab", "a\x1fb"),
    ],
)
def test_escapes_are_decoded(written: str, meant: str) -> None:
    assert parse(f"$'{written}'").commands[0].texts == (meant,)
