"""The billed requests of a session, from its transcript and its sub-agents' transcripts, each once.

A request is written as several lines that repeat its id and its usage, the last one complete. A fork copies the
lines of its parent, ids included. So each request has a memo of its charge in the store.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lopen.claude_hooks.event import usage_of
from lopen.models.messages import Usage

MOST_AT_ONCE = 4 * 1024 * 1024  # bytes of a file; the rest is read with the next event
MOST_FILES = 200
CALLS_KEPT = 50  # tool calls of the newest message


@dataclass(frozen=True, slots=True)
class BilledRequest:
    """One billed request. `key` identifies it in every transcript that holds it."""

    key: str
    model: str
    usage: Usage
    agent: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """Where the reading of one file goes on, and the message that its last line belongs to."""

    offset: int = 0
    newest: str = ""
    prior: str = ""  # the message before it
    calls: tuple[str, ...] = ()  # the newest message's

    def turn_of(self, call_id: str) -> str:
        """A label of the turn that a call belongs to: the message before its own, whether or not that is written yet."""
        return self.prior if call_id in self.calls else self.newest


@dataclass(frozen=True, slots=True)
class News:
    """The content of a file's new lines."""

    place: TranscriptPosition
    requests: tuple[BilledRequest, ...] = ()
    failed: tuple[str, ...] = ()  # calls that were answered with an error


def files_of(transcript: str, agent_transcript: str = "") -> list[tuple[str, str, int]]:
    """Each transcript of a session as agent ("" for the session itself), path and size."""
    if not transcript:
        return []
    found = [("", transcript, _size(transcript))]
    folders = [os.path.join(transcript.removesuffix(".jsonl"), "subagents")]
    while folders and len(found) < MOST_FILES:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.name.startswith("agent-") and entry.name.endswith(".jsonl"):
                        found.append((_agent(entry.name), entry.path, entry.stat().st_size))
        except (OSError, ValueError):
            continue
    if agent_transcript and all(path != agent_transcript for _, path, _ in found):
        found.append((_agent(os.path.basename(agent_transcript)), agent_transcript, _size(agent_transcript)))
    return found


def _agent(name: str) -> str:
    return name.removeprefix("agent-").removesuffix(".jsonl")[:200]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def read(path: str, session: str, agent: str, place: TranscriptPosition) -> News:
    """Return the file's content beyond `place`; nothing new where it cannot be read."""
    requests: dict[str, BilledRequest] = {}
    failed: list[str] = []
    text, offset = _new_text(path, place.offset)
    newest, prior, calls = place.newest, place.prior, list(place.calls)
    for line in text.split("\n"):  # not splitlines: a message may hold U+2028 and its kin unescaped
        entry = _entry(line, session)
        message = entry.get("message")
        if not isinstance(message, dict):
            continue
        failed += _errors(message)
        key = _key(entry, message)
        if entry.get("type") != "assistant" or not key:
            continue
        if key != newest:
            newest, prior, calls = key, newest, []
        calls = (calls + _calls(message))[-CALLS_KEPT:]
        if usage := usage_of(message):
            before = requests[key].usage if key in requests else Usage()
            model, at = str(message.get("model", ""))[:100], str(entry.get("timestamp", ""))[:40]
            requests[key] = BilledRequest(key, model, higher(usage, before), agent, at)
    after = TranscriptPosition(offset, newest, prior, tuple(calls))
    return News(after, tuple(requests.values()), tuple(failed))


def _key(entry: dict[str, Any], message: dict[str, Any]) -> str:
    found = entry.get("requestId") or message.get("id")
    return found[:100] if isinstance(found, str) else ""


def higher(one: Usage, other: Usage) -> Usage:
    """Return the higher count of each kind of tokens."""
    return Usage(*map(max, one.counts, other.counts))


def beyond(usage: Usage, charged: Usage) -> Usage:
    """Return the tokens that are not charged yet."""
    pairs = zip(usage.counts, charged.counts, strict=True)
    return Usage(*(max(0, new - old) for new, old in pairs))


def _new_text(path: str, offset: int) -> tuple[str, int]:
    """Whole lines beyond `offset`, and where they end. A file that shrank is followed from its end.

    A last line without its end counts once it is whole.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return "", offset
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size <= offset:
            return "", min(offset, status.st_size)
        file.seek(offset)
        found = file.read(MOST_AT_ONCE)
    end = found.rfind(b"\n") + 1
    if not end and len(found) == MOST_AT_ONCE:
        end = len(found)  # also of a line longer than all that: its rest is no JSON and is passed over
    return found[:end].decode("utf-8", "replace"), offset + end


def _entry(line: str, session: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(entry, dict) or entry.get("sessionId", session) != session:
        return {}
    return entry


def _blocks(message: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def _errors(message: dict[str, Any]) -> Iterator[str]:
    for block in _blocks(message, "tool_result"):
        if block.get("is_error") is True:
            yield str(block.get("tool_use_id", ""))[:200]


def _calls(message: dict[str, Any]) -> list[str]:
    return [str(block.get("id", ""))[:200] for block in _blocks(message, "tool_use")]
