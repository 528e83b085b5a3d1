"""How much one Java assertion pins down, and whether it can fail at all."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from lopen.test_integrity.conditions import NEVER, always_equal, always_true, is_literal, truth
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, ranks, words

RANKS = ranks(
    exact="assertEquals assertSame assertNull assertArrayEquals assertIterableEquals",
    close="fail assertLinesMatch assertThrowsExactly assertThrows expectThrows verifyNoMoreInteractions",
    loose="assertTrue assertFalse assertNotEquals assertNotSame assertInstanceOf",
    present="assertNotNull assertDoesNotThrow",
)
CHAINED = ranks(
    exact="isEqualTo isSameAs containsExactly isNull isZero isOne hasMessage isEmpty isTrue isFalse",
    close="isCloseTo isWithin containsExactlyInAnyOrder hasSize isInstanceOf isExactlyInstanceOf",
    loose="anySatisfy anyMatch isNotEqualTo isNotEmpty isNotBlank isNotZero doesNotContain",
    present="isNotNull isPresent isNotSameAs",
)
_MATCHERS = ranks(
    exact="equalTo sameInstance nullValue contains arrayContaining",
    close="closeTo containsInAnyOrder hasSize arrayContainingInAnyOrder",
    partial="hasItem hasItems hasEntry hasKey containsString startsWith endsWith matchesPattern greaterThan lessThan",
    loose="not instanceOf isA any",
    present="notNullValue anything",
)

DESCRIBING = words(
    "as describedAs extracting flatExtracting withFailMessage overridingErrorMessage usingRecursiveComparison "
    "ignoringFields ignoringCollectionOrder usingComparator usingDefaultComparator withRepresentation filteredOn "
    "first last element singleElement asString asList asInstanceOf map flatMap rootCause cause size and get describedBy "
    "bodyText bodyJson extractingPath body headers response"
)
_NUMBER = re.compile(r"^[-+]?[\d_.]+(?:[eE][-+]?\d+)?[dDfFlL]?$")
_WITHIN = re.compile(r"\b(?:within|offset|byLessThan|withinPercentage|withPercentage)\((.+?)\)")
_BETWEEN = re.compile(r"^is(?:Strictly)?Between\((-?\d+(?:\.\d+)?)[dDfFlL]?, (-?\d+(?:\.\d+)?)[dDfFlL]?\)")
_COMPARED = re.compile(r" ?(?:[<>]=?|[!=]=) ?-?\d[\w.]*$")
_CLOSE_TO = re.compile(r"\bcloseTo\(.+, (.+)\)")
_TIME = re.compile(r"\bof(Nanos|Millis|Seconds|Minutes|Hours|Days)\((\d[\d_]*)L?\)")
_SECONDS = {"Nanos": 1e-9, "Millis": 1e-3, "Seconds": 1.0, "Minutes": 60.0, "Hours": 3600.0, "Days": 86400.0}


def exception_rank(expected: str) -> int:
    """How much an expected type of exception pins down."""
    name = expected.removesuffix(".class").rpartition(".")[2]
    return {"Throwable": PRESENT, "Exception": PRESENT, "RuntimeException": LOOSE, "Error": LOOSE}.get(
        name, CLOSE
    )


def matched_rank(matcher: str) -> int:
    """How much a Hamcrest matcher pins down."""
    if matcher.startswith("allOf("):
        return CLOSE  # more than each of them
    name, _, rest = matcher.partition("(")
    name = name.rpartition(".")[2]
    inner = rest.partition("(")[0].rpartition(".")[2]
    if name == "is" and inner in _MATCHERS:
        return matched_rank(rest.removesuffix(")"))
    return _MATCHERS.get(name, EXACT if name == "is" else PARTIAL)


def subject_of(name: str, arguments: Sequence[str]) -> str:
    """What is checked: JUnit puts the expected value first."""
    if name in {"assertEquals", "assertNotEquals", "assertSame", "assertArrayEquals"} and len(arguments) > 1:
        return arguments[0] if is_literal(arguments[1]) else arguments[1]
    if name in {"assertThrows", "expectThrows", "fail"} or re.match(
        r"assertThat\w*(?:Thrown|Exception)", name
    ):
        return "an exception"
    if name in {"assertTrue", "assertFalse"} and arguments:
        return _COMPARED.sub("", arguments[0])
    timed = name.startswith("assertTimeout") and len(arguments) > 1
    return arguments[timed] if arguments else ""


def is_vacuous(name: str, arguments: Sequence[str]) -> bool:
    if name == "assertTrue":
        return any(always_true(argument) for argument in arguments)
    if name == "assertFalse":
        return any(truth(argument) == NEVER for argument in arguments)
    if name in {"assertEquals", "assertSame"} and len(arguments) > 1:
        return always_equal(arguments[0], arguments[1])
    literal = len(arguments) == 1 and is_literal(arguments[0]) and arguments[0] != "null"
    return name == "assertNotNull" and literal


def slack_text(name: str, arguments: Sequence[str], rest: Sequence[str]) -> str:
    """What an assertion says of how far a value may be off, or how long something may take."""
    if name.startswith("assertTimeout"):
        return arguments[0] if arguments else ""
    if name == "assertEquals" and len(arguments) > 2:
        return arguments[2]
    if any(each.startswith("usingRecursiveComparison") for each in rest):
        return str(sum(each.count(",") + 1 for each in rest if each.startswith("ignoring")))
    if name == "assertThat" and len(arguments) > 1 and (found := _CLOSE_TO.search(arguments[-1])):
        return found[1]
    ranges = (found[0] for each in rest if (found := _BETWEEN.match(each)))
    return next((found[1] for each in rest if (found := _WITHIN.search(each))), next(ranges, ""))


def slack_of(text: str) -> float | None:
    """A number, the width of a range, or a time in seconds; None for anything else."""
    with contextlib.suppress(ValueError, OverflowError, KeyError):
        if found := _BETWEEN.match(text):
            return float(found[2]) - float(found[1])
        if found := _TIME.search(text):
            return int(found[2].replace("_", "")) * _SECONDS[found[1]]
        return float(text.rstrip("dDfFlL").replace("_", "")) if _NUMBER.match(text) else None
    return None
