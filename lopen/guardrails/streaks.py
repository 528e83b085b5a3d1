"""How often in a row the same mark was seen on a key: the one counter behind circles, rereads and retries.

A value of bounded size: the `LIMIT` keys seen last are kept, so a step costs the same at any history length.
A key that fell out starts again at one, which can only ever hold a correction back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

LIMIT = 50  # the tool history that patterns are found in (contract §9)
KEY_LENGTH = 200


def short_key(*parts: str) -> str:
    """One key from several parts; a long one is cut and told apart by a digest of the whole."""
    key = "\0".join(parts)
    if len(key) <= KEY_LENGTH:
        return key
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{key[: KEY_LENGTH - len(digest) - 1]}\0{digest}"


@dataclass(frozen=True, slots=True)
class Streaks:
    """Key → (mark, how often in a row), the key seen last at the end."""

    marks: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def seen(self, key: str, mark: str, then: str | None = None) -> tuple[Streaks, int]:
        """These streaks after `mark` was seen on `key`, and how often in a row that now is.

        `then` is the mark that the next one must equal, where seeing changed it; by default the same.
        """
        marks = dict(self.marks)
        before, count = marks.pop(key, ("", 0))
        count = count + 1 if before == mark else 1
        marks[key] = (mark if then is None else then, count)
        if len(marks) > LIMIT:
            del marks[next(iter(marks))]
        return Streaks(marks), count

    def without(self, key: str) -> Streaks:
        """These streaks with the key's row broken."""
        if key not in self.marks:
            return self
        return Streaks({k: v for k, v in self.marks.items() if k != key})
