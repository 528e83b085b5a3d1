"""How an endpoint's prompt cache counts: which input is read, which is written, which is plain.

A model of the real one, so that the share read from the cache can be measured without it: prefixes in the
order tools, system, messages; kept where a mark stands; found again at a mark or up to twenty blocks before
it; not kept below 1,024 tokens. Entries do not expire, for a process does not live long enough.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lopen.llm.messages import Json, Usage

CHARACTERS_PER_TOKEN: Final = 4
LOOK_BACK: Final = 20
SMALLEST: Final = 1024


@dataclass(frozen=True, slots=True)
class _Prefix:
    digest: bytes
    tokens: int
    marked: bool


class PromptCache:
    """The prefixes seen so far. Safe to use from several threads."""

    def __init__(self, smallest: int = SMALLEST) -> None:
        self._smallest = smallest
        self._kept: set[bytes] = set()
        self._lock = threading.Lock()

    def input_usage(self, body: Json) -> Usage:
        """The input tokens of one request, split as the API reports them; its marked prefixes are kept from now on."""
        prefixes = list(_prefixes(body))
        total = prefixes[-1].tokens if prefixes else 0
        marks = [i for i, prefix in enumerate(prefixes) if prefix.marked and prefix.tokens >= self._smallest]
        with self._lock:
            read = max((self._found(prefixes, mark) for mark in marks), default=0)
            self._kept.update(prefixes[mark].digest for mark in marks)
        written = max((prefixes[mark].tokens for mark in marks), default=read) - read
        return Usage(total - read - written, 0, cache_write_tokens=written, cache_read_tokens=read)

    def _found(self, prefixes: list[_Prefix], mark: int) -> int:
        """Tokens of the longest kept prefix at or shortly before this mark."""
        for prefix in reversed(prefixes[max(0, mark - LOOK_BACK) : mark + 1]):
            if prefix.digest in self._kept:
                return prefix.tokens
        return 0


def estimated_tokens(text: str) -> int:
    """A rough count, four characters a token."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _prefixes(body: Json) -> Iterator[_Prefix]:
    """The prompt up to the end of each block. The digest takes in the model: caches are not shared between models."""
    digest = hashlib.blake2b(str(body.get("model")).encode(), digest_size=16)
    tokens = 0
    for where, block in _blocks(body):
        text = json.dumps([where, {k: v for k, v in block.items() if k != "cache_control"}], sort_keys=True)
        digest.update(text.encode())
        tokens += estimated_tokens(text)
        yield _Prefix(digest.digest(), tokens, "cache_control" in block)


def _blocks(body: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in body.get("tools", ()):
        yield "tool", tool
    for part, content in (
        ("system", body.get("system", ())),
        *((m["role"], m["content"]) for m in body["messages"]),
    ):
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield part, block
