"""XxHash128 of content. The only importer of `xxhash`, at the first use because the hook path never needs it.

Not for security: the hash detects changes of content, not forgery.
"""

from __future__ import annotations


class ContentHasher:
    """Computes `content_hash` of content in pieces."""

    def __init__(self) -> None:
        import xxhash

        self._hash = xxhash.xxh128()

    def add(self, data: bytes | str) -> None:
        """Add the next piece."""
        self._hash.update(_raw(data))

    def hexdigest(self) -> str:
        """Return the hash of all pieces as 32 hex digits."""
        return str(self._hash.hexdigest())


def content_hash(data: bytes | str) -> str:
    """Return XxHash128 as 32 hex digits; text counts as its UTF-8 bytes, including lone surrogates."""
    import xxhash

    return xxhash.xxh128_hexdigest(_raw(data))


def _raw(data: bytes | str) -> bytes:
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data


try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b"]
