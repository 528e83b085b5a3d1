"""A command's output, bounded: its head and its tail are kept, however much comes."""

from __future__ import annotations

_NOTE_ROOM = 160
_WIDEST = 4  # bytes a character takes at most in UTF-8


class Output:
    """Gathers bytes, gives at most `limit` characters of text."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._keep = limit * _WIDEST
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take what came next."""
        self.total += len(chunk)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def text(self) -> tuple[str, bool]:
        """(text, whether its middle was cut). What is missing, and how to see it, stands where it was cut."""
        gapless = self.total == len(self._head) + len(self._tail)
        head = _decode(self._head + self._tail) if gapless else _decode(self._head)
        if gapless and len(head) <= self._limit:
            return head, False
        tail = head if gapless else _decode(_from_character(self._tail))
        room = max(0, self._limit - _NOTE_ROOM)
        first, last = head[: room // 3], tail[-max(1, room - room // 3) :]
        missing = max(0, self.total - len(first.encode()) - len(last.encode()))
        note = f"\n[… {missing} bytes cut; see them with the output in a file, or through head, tail or grep …]\n"
        return (first + note + last)[: self._limit], True


def _decode(raw: bytearray) -> str:
    return raw.decode("utf-8", "replace")


def _from_character(raw: bytearray) -> bytearray:
    """Without the end of a character whose start was cut off."""
    start = 0
    while start < min(_WIDEST - 1, len(raw)) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:]
