"""XxHash128 of content. The only importer of `xxhash`, and lazily: the hook path never needs it.

Not for security: it tells whether content changed, never whether someone forged it.
"""

from __future__ import annotations


class ContentHasher:
    """`content_hash` of content that comes in pieces."""

    def __init__(self) -> None:
        import xxhash

        self._hash = xxhash.xxh128()

    def add(self, data: bytes | str) -> None:
        """Take the next piece."""
        self._hash.update(_raw(data))

    def hexdigest(self) -> str:
        """The hash of everything taken so far, as 32 hex digits."""
        return str(self._hash.hexdigest())


def content_hash(data: bytes | str) -> str:
    """XxHash128 as 32 hex digits; text is hashed as its UTF-8 bytes (lone surrogates included)."""
    import xxhash

    return xxhash.xxh128_hexdigest(_raw(data))


def _raw(data: bytes | str) -> bytes:
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data


try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b"]
