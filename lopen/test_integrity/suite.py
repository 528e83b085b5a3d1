"""What a test file is, whatever its language: cases, what each of them checks, and what keeps it from running."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

Kind = Literal["real", "vacuous", "swallowed", "unreachable", "unawaited", "conditional"]

EXACT = 5  # equal to a value, an exception with its message
CLOSE = 4  # equal within a tolerance, an exception of a type
PARTIAL = 3  # contains, matches, greater than
LOOSE = 2  # true, not equal, of a type
PRESENT = 1  # there at all

ROUNDING = 1e-5  # a tolerance that makes up for rounding alone

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|\d[\w.]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
LITERAL = re.compile(r"\d|[\"']")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A changed file: its whole contents before and after. None where it did not or does not exist."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Check:
    """An assertion. `subject` is what is checked, `rank` how much it pins down (`EXACT` … `PRESENT`).

    `slack` is how far what is checked may be off, in the unit of the assertion (None: it is not said as a number).
    `behind` are the texts of the checks that the call of a helper stands for.
    """

    text: str
    subject: str
    rank: int
    line: int
    kind: Kind = "real"
    slack: float | None = None
    behind: tuple[str, ...] = ()

    @property
    def tokens(self) -> frozenset[str]:
        """Names and literals in it."""
        return tokens(self.text)

    @property
    def literals(self) -> frozenset[str]:
        """Numbers and strings in it."""
        return frozenset(token for token in self.tokens if LITERAL.match(token))


@dataclass(frozen=True, slots=True)
class Skip:
    """What keeps a case from running. `certain` is false where it cannot hold on the platform lopen runs on."""

    text: str
    line: int
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """One test. `name` is unique in its file; `body` is normalised, so that a moved test compares equal.

    `rows` counts the cases of a table or parametrisation (None: it has none). `empty`: it does nothing at all.
    `support`: no test but a function that tests call; it may go, but not go on being called and check nothing.
    `plain`: it runs once, as no table, loop or parameter is seen.
    `given` is the text of the fixtures that it uses: what it says it may say there.
    `turned`: the mark by which the test passes only where something in it fails (`#[should_panic]`).
    """

    name: str
    line: int
    body: str
    checks: tuple[Check, ...] = ()
    skips: tuple[Skip, ...] = ()
    rows: int | None = None
    empty: bool = False
    support: bool = False
    turned: str = ""
    given: str = ""
    plain: bool = False

    @property
    def short(self) -> str:
        """The name without its class or suite."""
        return re.split(r"::| > |/", self.name)[-1]

    @property
    def real(self) -> tuple[Check, ...]:
        """The checks that can fail the test."""
        return tuple(check for check in self.checks if check.kind == "real")

    @property
    def tokens(self) -> frozenset[str]:
        """Names and literals in all of it, and the words of its strings: a table's rows may be strings."""
        return _tokens_and_words(f"{self.body} {self.given}" if self.given else self.body)

    def says(self, wanted: Iterable[str]) -> bool:
        """Return True if it has all these names and literals; in a table a literal may be part of a string."""
        known = self.tokens
        parts = [_WORD.findall(word) for word in wanted if word not in known]
        return all(each and known.issuperset(each) for each in parts)


@dataclass(frozen=True, slots=True)
class Suite:
    """A test file as read. `narrowing` is what keeps other tests from running (`.only`, an exit at a file's top).

    `uncollected` maps the bodies of functions that look like tests but are not run to their names.
    `coarse`: the text could not be parsed, and was read line by line.
    """

    cases: tuple[Case, ...] = ()
    narrowing: tuple[Skip, ...] = ()
    uncollected: Mapping[str, str] = field(default_factory=dict)
    coarse: bool = False


HOOK = "the hook "  # before the name of a support case that runs behind each test
REACHED = "the number of assertions that are reached"
NO_ERROR = "that a callback was given no error"  # the subject of a check that an `await` makes by itself
EMPTY = Suite()  # what an absent file is


@dataclass(frozen=True, slots=True)
class Language:
    """How to read one language's tests.

    `covers`: whether a path may hold its tests at all; `collects`: whether the usual runner finds them there.
    `read` takes one side of a change, path to text, whole: a test may call a helper that another file defines.
    """

    name: str
    covers: Callable[[str], bool]
    collects: Callable[[str], bool]
    read: Callable[[Mapping[str, str]], dict[str, Suite]]
    read_coarsely: Callable[[str], Suite] = lambda _: EMPTY  # of use only to a reader that parses


def ranks(
    *, exact: str = "", close: str = "", partial: str = "", loose: str = "", present: str = ""
) -> dict[str, int]:
    """How much assertions pin down, by name: a table of names apart by blanks."""
    rows = ((exact, EXACT), (close, CLOSE), (partial, PARTIAL), (loose, LOOSE), (present, PRESENT))
    return {name: rank for names, rank in rows for name in names.split()}


def words(text: str) -> frozenset[str]:
    """The names in a table of names apart by blanks."""
    return frozenset(text.split())


def called(check: Check, behind: Sequence[Check]) -> list[Check]:
    """A call of a helper as the checks that it stands for: as many as are `behind` it, all with the call's own text.

    The call says which subject is checked; what the helper does to it is compared once, at the helper.
    """
    real = [other for other in behind if other.kind == "real"]
    check = replace(check, behind=tuple(other.text for other in real))
    return [check] * len(real) or [replace(check, rank=0, kind=other.kind) for other in behind[:1]]


_SEEN_OR_NOT = re.compile(  # what a page or a file system happens to have when it is asked
    r"\bawait\b.*\(|\.(?:is_?(?:[vV]isible|[dD]isplayed|[eE]nabled|[pP]resent)|exists|find_elements|query(?:All)?By\w+|query_selector)\("
)
_BOUND_BY_IF = frozenset({"got", "want"})  # `if let Ok(got) = …`
_FAILING = re.compile(r"^(?:panic|throw|raise) if |\bfail\w*\(|^t\.")


def guard(checks: list[Check], start: int, condition: str) -> None:
    """Make the checks from `start` on those under an `if`: less, where it asks for what they check, unless that was
    checked before.
    """
    asked = {name for name in tokens(condition) - (COMMON - _BOUND_BY_IF) if not LITERAL.match(name)}
    if any(condition in check.text for check in checks[:start] if check.kind == "real"):
        return
    for at, check in enumerate(checks[start:], start):
        about = asked & tokens(check.subject) or _SEEN_OR_NOT.search(condition)
        if check.kind == "real" and not _FAILING.search(check.text) and about:
            text = f"{check.text} if {condition}"
            checks[at] = replace(check, text=text, rank=max(check.rank - 1, PRESENT))


def support_cases(
    helpers: Mapping[str, Sequence[Check]], rows: Mapping[str, int] | None = None
) -> list[Case]:
    """The helpers of a file as cases of their own; `rows` are how often those run that run more than once."""
    return [
        Case(
            name,
            checks[0].line if checks else 1,
            "\n".join(check.text for check in checks),
            tuple(checks),
            rows=(rows or {}).get(name),
            support=True,
        )
        for name, checks in helpers.items()
    ]


_TOLERANCE = re.compile(
    r",?\s*\b(?:(?P<width>rtol|atol|rel|abs|rel_tol|abs_tol|delta|tol|tolerance|eps|epsilon|within|maxDiffPixels|maxDiffPixelRatio|threshold|failureThreshold)"
    r"|places|decimals?|digits|significant|precision)\s*[=:]\s*(?P<value>[-+]?\d[\d_.]*(?:e[-+]?\d+)?)\b"
)
_LAST_TOLERANCE = re.compile(  # the last argument of the assertion; a duration of Go has a unit
    r"(?:In(?:Delta|Epsilon)\w*|WithinDuration|BeNumerically|BeTemporally|closeTo|approximately|almost)f?\([^\n]{0,2000}, ?(?=[\dt])"
    r"(?P<value>\d[\d_.]*(?:e-?\d+)?)?(?: ?\* ?time\.(?P<unit>\w+)|time\.(?P<one>\w+))?\)*$"
)
_PLACES = re.compile(r"\btoBeCloseTo\([^\n]*?(?:, ?(?P<places>-?\d{1,3}))?\)$")
_UNITS = {
    "Nanosecond": 1.0,
    "Microsecond": 1e3,
    "Millisecond": 1e6,
    "Second": 1e9,
    "Minute": 6e10,
    "Hour": 3.6e12,
}


def tolerance(text: str) -> float | None:
    """The widest tolerance that an assertion names by a keyword or as its last argument; None where it names none."""
    found = [(match["width"], match["value"]) for match in _TOLERANCE.finditer(text)]
    widths = []
    for name, value in found:
        with contextlib.suppress(ValueError, OverflowError):
            widths.append(float(value) if name else 10.0 ** -float(value))
    if last := _LAST_TOLERANCE.search(text):
        unit = _UNITS.get(last["unit"] or last["one"] or "", 1.0)
        with contextlib.suppress(ValueError, OverflowError):
            widths.append(float((last["value"] or "1").replace("_", "")) * unit)
    if places := _PLACES.search(text):
        widths.append(10.0 ** -float(places["places"] or 2))
    return max(widths, default=None)


def without_tolerance(text: str) -> str:
    """The text of an assertion without the tolerances in it."""
    return _TOLERANCE.sub("", text)


@lru_cache(maxsize=8192)
def tokens(text: str) -> frozenset[str]:
    """Names, numbers and string literals in source text; quotes are made one kind."""
    return frozenset(token.replace("'", '"') for token in _TOKEN.findall(text))


@lru_cache(maxsize=8192)
def _tokens_and_words(text: str) -> frozenset[str]:
    return tokens(text) | frozenset(_WORD.findall(text))


COMMON = tokens(
    "assert assertEqual expect toBe toEqual self t Errorf Fatalf assert_eq assertEquals if got want "
    "assert_called_with assert_called_once_with assert_any_call assert_has_calls call_count not in is and or "
    "toBeNull toBeUndefined toBeTruthy toBeFalsy toStrictEqual toBeGreaterThan toBeGreaterThanOrEqual toBeLessThan toBeLessThanOrEqual"
)


def numbered(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases with repeated names told apart, in order."""
    seen: dict[str, int] = {}
    result = []
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        count = seen[case.name]
        result.append(case if count == 1 else replace(case, name=f"{case.name} ({count})"))
    return tuple(result)
