"""What the fuzzed readers are given: nonsense, and sense with something wrong in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Test = TypeVar("Test", bound=Callable[..., Any])

# Characters that parsers stumble over: ends of lines, halves of pairs, signs that are not seen
SIGNS = "\0\x1b\r\n\t\x0b\x0c\x1c\x85\xa0\u2028\u2029\u202e\u200b\ufeff\ud800\udfff\U0001f600\u0301İßſ`~#-*[](){}<>&|\\\"':=+_.,;!$%@^?/ 0aZ"
ANY_TEXT = st.text(st.sampled_from(SIGNS) | st.characters(), max_size=200)
READABLE = st.text(st.sampled_from(SIGNS.replace("\ud800", "").replace("\udfff", "")), max_size=200)

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | ANY_TEXT
    | st.sampled_from(["", "x", "src/app.py", "..", "\0", "1", "true", "complete", "AC-1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def bounded(examples: int) -> Callable[[Test], Test]:
    """The same `examples` every time; no time is measured, none is kept from run to run.

    Temporary folders may serve all of them: each writes its files anew.
    """
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def pieces(*texts: str) -> st.SearchStrategy[str]:
    """Texts of these pieces and nonsense in any order."""
    return st.lists(st.sampled_from(texts) | READABLE, max_size=30).map("".join)


@st.composite
def damaged(draw: st.DrawFn, wholes: Sequence[bytes]) -> bytes:
    """Something sound with a few bytes cut out, changed, put in or said twice."""
    data = bytearray(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(["cut", "change", "put in", "twice", "end"]))
        if kind == "cut":
            del data[at:until]
        elif kind == "change":
            data[at:until] = draw(st.binary(max_size=until - at))
        elif kind == "put in":
            data[at:at] = draw(
                st.binary(max_size=20) | st.just(b"\0") | st.just(b"\xff\xfe") | st.just(b"[" * 5_000)
            )
        elif kind == "twice":
            data[at:at] = data[at:until]
        else:
            del data[at:]
    return bytes(data)


def one_line(text: str) -> bool:
    """Whether a message is one line that can be written out."""
    text.encode()
    return bool(text.strip()) and len(text.splitlines()) == 1


def told(*messages: str) -> None:
    """What an error says is lines for a person."""
    for message in messages:
        assert one_line(message), repr(message)


def as_json(value: Any) -> str:
    """JSON, or what passes for it: NaN and halves of pairs included."""
    return json.dumps(value)
