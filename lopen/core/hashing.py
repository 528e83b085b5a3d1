"""XxHash128 of content. The only importer of `xxhash`, at the first use because the hooks never need it.

Not for security: the hash detects changes of content, not forgery.
"""

from __future__ import annotations


def content_hash(data: bytes | str) -> str:
    """Return XxHash128 as 32 hex digits; text counts as its UTF-8 bytes, including lone surrogates."""
    import xxhash

    return xxhash.xxh128_hexdigest(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
