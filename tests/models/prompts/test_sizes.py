"""How far the count before a request is from the endpoint's, over a session that is told the truth each time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import lopen
from lopen.models.messages import Json, Request, SystemBlock, ToolSpec, Usage
from lopen.models.prompts.sizes import CACHED_S, RequestSizes

SOURCES = sorted(Path(lopen.__file__).parent.joinpath("models").rglob("*.py"))
WORDS = {"head": "You build modules. " * 400, "prose": "Прочитай файл и скажи, что в нём. " * 20}


def pieces(text: str) -> int:
    """A tokeniser of another making than the estimate: words in pieces of five, every sign, half of other letters."""
    return sum(-(-len(found) // 5) for found in re.findall(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]|\n+", text))


def by_three(text: str) -> int:
    return -(-len(text) // 3)


def by_six(text: str) -> int:
    return -(-len(text) // 6)


def message(role: str, text: str) -> Json:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def request(messages: Sequence[Json], head: str = WORDS["head"]) -> Request:
    tool = ToolSpec("read_file", "Read a file of the project.", {"type": "object"})
    return Request("opus", (SystemBlock(head, cached=True),), tuple(messages), (tool,), 1_000, "turn")


def honest(of: Request, count: Callable[[str], int], cached: int = 0) -> Usage:
    """What an endpoint says that counts in its own way, the names it puts around a message included."""
    whole = sum(count(b.text) for b in of.system) + 60
    whole += sum(count(block["text"]) + 4 for m in of.messages for block in m["content"])
    return Usage(cache_write_tokens=whole - cached, cache_read_tokens=cached)


def session(files: Sequence[Path], prose: str) -> Iterator[list[Json]]:
    """A call, its result, a word in between: code, JSON and prose, each turn with all before it."""
    said = [message("user", "Build what the specification asks for.\n" + prose)]
    yield said
    for path in files:
        said = [
            *said,
            message(
                "assistant", f"I read {path.name} next, since it holds what the task needs. {prose[:200]}"
            ),
            message("user", path.read_text()[:3_000]),
        ]
        yield said


@pytest.mark.parametrize("count", [pieces, by_three, by_six])
def test_after_the_first_answer_the_estimate_is_within_five_percent(count: Callable[[str], int]) -> None:
    counted, errors, cached = RequestSizes(), [], 0
    for number, messages in enumerate(session(SOURCES, "Keep it small and say what is missing. " * 5)):
        asked = request(messages)
        found = counted.estimate(asked, float(number))
        truth = honest(asked, count, cached)
        whole = truth.cache_write_tokens + truth.cache_read_tokens
        errors.append(abs(found.cache_write_tokens + found.cache_read_tokens - whole) / whole)
        assert number == 0 or found.cache_read_tokens == cached
        counted.settled(asked, truth, float(number))
        cached = whole
    assert len(errors) > 15
    assert max(errors[1:]) <= 0.05, [f"{e:.1%}" for e in errors]


@pytest.mark.parametrize("text", [WORDS["prose"], "漢字を読む。" * 200, "🙂" * 300])
def test_before_any_answer_text_beyond_ascii_is_rather_taken_for_too_long(text: str) -> None:
    counted = RequestSizes()
    empty, full = (request([message("user", words)]) for words in ("", text))
    found = counted.estimate(full, 0.0).whole_input - counted.estimate(empty, 0.0).whole_input
    assert found >= len(text) // 2


def test_a_prefix_is_cached_for_five_minutes_after_its_last_use() -> None:
    counted, asked = RequestSizes(), request([message("user", "hello")])
    counted.settled(asked, Usage(cache_write_tokens=9_000), 10.0)
    assert counted.estimate(asked, 10.0 + CACHED_S - 1) == Usage(cache_read_tokens=9_000)
    assert counted.estimate(asked, 10.0 + CACHED_S) == Usage(cache_write_tokens=9_000)


def test_an_endpoint_that_counts_nothing_teaches_nothing() -> None:
    counted, asked = RequestSizes(), request([message("user", "hello")])
    before = counted.estimate(asked, 0.0)
    counted.settled(asked, Usage(), 0.0)
    assert counted.estimate(asked, 0.0) == before
