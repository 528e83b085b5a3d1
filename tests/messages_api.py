"""What the Messages API does beside answering: it refuses a body with its own messages, and counts a prompt cache.

The scripted endpoint applies both to every test. The checks hold the rules that an orchestrator can break and the SDK's types do
not. The cache follows the rules of the real one, so that the share of cached input can be measured
without it: prefixes in the order tools, system, messages; stored at a mark; found at a mark or up to twenty blocks
before it; at least 1,024 tokens long. Entries do not expire.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lopen.models.messages import Json, Usage
from tests.fake_api import CHARACTERS_PER_TOKEN

LOOK_BACK: Final = 20
SMALLEST: Final = 1024


@dataclass(frozen=True, slots=True)
class _Prefix:
    digest: bytes
    tokens: int
    marked: bool


class PromptCache:
    """The prefixes seen so far. Thread-safe."""

    def __init__(self, smallest: int = SMALLEST) -> None:
        self._smallest = smallest
        self._kept: set[bytes] = set()
        self._lock = threading.Lock()

    def input_usage(self, body: Json) -> Usage:
        """Return the input tokens of one request, split as the API reports them, and store its marked prefixes."""
        prefixes = list(_prefixes(body))
        total = prefixes[-1].tokens if prefixes else 0
        marks = [i for i, prefix in enumerate(prefixes) if prefix.marked and prefix.tokens >= self._smallest]
        with self._lock:
            read = max((self._found(prefixes, mark) for mark in marks), default=0)
            self._kept.update(prefixes[mark].digest for mark in marks)
        written = max((prefixes[mark].tokens for mark in marks), default=read) - read
        return Usage(total - read - written, 0, cache_write_tokens=written, cache_read_tokens=read)

    def _found(self, prefixes: list[_Prefix], mark: int) -> int:
        """Return the tokens of the longest stored prefix at or shortly before this mark."""
        for prefix in reversed(prefixes[max(0, mark - LOOK_BACK) : mark + 1]):
            if prefix.digest in self._kept:
                return prefix.tokens
        return 0


def _prefixes(body: Json) -> Iterator[_Prefix]:
    """Yield the prompt up to the end of each block. The digest includes the model, because caches are per model."""
    digest = hashlib.blake2b(str(body.get("model")).encode(), digest_size=16)
    tokens = 0
    for where, block in _prompt_blocks(body):
        text = json.dumps([where, {k: v for k, v in block.items() if k != "cache_control"}], sort_keys=True)
        digest.update(text.encode())
        tokens += -(-len(text) // CHARACTERS_PER_TOKEN)
        yield _Prefix(digest.digest(), tokens, "cache_control" in block)


def _prompt_blocks(body: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in body.get("tools", ()):
        yield "tool", tool
    for part, content in (
        ("system", body.get("system", ())),
        *((m["role"], m["content"]) for m in body["messages"]),
    ):
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield part, block


Body = Mapping[str, Any]

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MAX_MARKS: Final = 4
UNMARKABLE: Final = frozenset({"thinking", "redacted_thinking"})


def refusal(body: Body) -> str | None:
    """Return the API's error message for this body, or None if the API accepts it."""
    return next((problem for check in CHECKS for problem in check(body)), None)


def _tools(body: Body) -> Iterator[str]:
    tools = body.get("tools", [])
    for index, tool in enumerate(tools):
        if not isinstance(tool.get("name"), str) or not TOOL_NAME.fullmatch(tool["name"]):
            yield f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if "type" not in tool and tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{index}.custom.input_schema.type: Input should be 'object'"
    names = [tool.get("name") for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    choice = body.get("tool_choice") or {}
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"Tool '{choice.get('name')}' not found in provided tools"


def _system(body: Body) -> Iterator[str]:
    for index, block in enumerate(_blocks(body.get("system", []))):
        if not _has_text(block):
            yield f"system.{index}: text content blocks must be non-empty"


def _roles(body: Body) -> Iterator[str]:
    if body["messages"][0]["role"] != "user":
        yield 'messages: first message must use the "user" role'


def _contents(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        blocks = _blocks(message["content"])
        if not blocks or message["content"] == "":
            yield f"messages.{index}: all messages must have non-empty content except for the optional final assistant message"
        for position, block in enumerate(blocks):
            yield from _block(f"messages.{index}.content.{position}", block)


def _block(where: str, block: Body) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        if not block.get("text"):
            yield "messages: text content blocks must be non-empty"
        elif not _has_text(block):
            yield "messages: text content blocks must contain non-whitespace text"
    elif kind == "tool_use" and not isinstance(block.get("input"), dict):
        yield f"{where}.tool_use.input: Input should be a valid dictionary"
    elif kind == "tool_use" and not TOOL_NAME.fullmatch(str(block.get("name"))):
        yield f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
    elif kind == "thinking" and not isinstance(block.get("signature"), str):
        yield f"{where}.thinking.signature: Field required"
    elif kind == "tool_result":
        for part in _blocks(block.get("content", [])) if isinstance(block.get("content"), list) else ():
            yield from _block(where, part)
    if kind in UNMARKABLE and "cache_control" in block:
        yield f"{where}.{kind}.cache_control: Extra inputs are not permitted"


def _ending(body: Body) -> Iterator[str]:
    last = body["messages"][-1]
    blocks = _blocks(last["content"])
    if last["role"] == "assistant" and blocks and str(blocks[-1].get("text", "")).endswith((" ", "\n", "\t")):
        yield "messages: final assistant content cannot end with trailing whitespace"


def _tool_pairs(body: Body) -> Iterator[str]:
    """Require that the next message answers every call first, and that every answer has a call."""
    waiting: list[str] = []  # calls of the assistant message just before
    seen: set[str] = set()
    for index, (role, blocks) in _merged(body["messages"]):
        if role == "assistant":
            waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
            if len(waiting) != len(set(waiting)) or seen.intersection(waiting):
                yield "messages: `tool_use` ids must be unique"
            seen.update(waiting)
            continue
        yield from _answers(index, waiting, blocks)
        waiting = []
    if waiting:
        yield _unanswered(len(body["messages"]) - 1, waiting)


def _answers(index: int, waiting: Sequence[str], blocks: Sequence[Body]) -> Iterator[str]:
    answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    leading = [
        block.get("tool_use_id") for block in blocks[: len(answered)] if block.get("type") == "tool_result"
    ]
    missing = [call for call in waiting if call not in leading]
    if missing:
        yield _unanswered(index - 1, missing)
    for call, times in Counter(answered).items():
        if call not in waiting:
            yield (
                f"messages.{index}.content: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each"
                " `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        elif times > 1:
            yield f"messages.{index}.content: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call}"


def _unanswered(index: int, calls: Sequence[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(calls)}."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _marks(body: Body) -> Iterator[str]:
    contents = [body.get("system", []), *(message["content"] for message in body["messages"])]
    blocks = [*body.get("tools", []), *(block for content in contents for block in _blocks(content))]
    found = sum("cache_control" in block for block in blocks)
    if found > MAX_MARKS:
        yield f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {found}."


def _merged(messages: Sequence[Body]) -> Iterator[tuple[int, tuple[str, list[Body]]]]:
    """Yield messages as the API reads them, with adjacent ones of a role merged, and the index of the first."""
    current: tuple[int, tuple[str, list[Body]]] | None = None
    for index, message in enumerate(messages):
        if current is not None and current[1][0] == message["role"]:
            current[1][1].extend(_blocks(message["content"]))
            continue
        if current is not None:
            yield current
        current = index, (message["role"], list(_blocks(message["content"])))
    if current is not None:
        yield current


def _blocks(content: str | Sequence[Body]) -> Sequence[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _has_text(block: Body) -> bool:
    return bool(str(block.get("text", "")).strip())


CHECKS: Final[tuple[Callable[[Body], Iterator[str]], ...]] = (
    _tools,
    _system,
    _roles,
    _contents,
    _ending,
    _tool_pairs,
    _marks,
)
