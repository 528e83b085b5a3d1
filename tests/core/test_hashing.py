"""The content hash is XxHash128 and the same for text and its UTF-8 bytes."""

from __future__ import annotations

from lopen.core.hashing import ContentHasher, content_hash


def test_the_hash_is_xxhash128() -> None:
    assert content_hash(b"") == "99aa06d3014798d86001c324468d497f"


def test_text_and_its_bytes_hash_alike() -> None:
    assert content_hash("größe") == content_hash("größe".encode())
    assert content_hash("a") != content_hash("b")


def test_text_with_a_lone_surrogate_has_a_hash_too() -> None:
    assert len(content_hash("\ud800")) == 32


def test_content_may_come_in_pieces() -> None:
    hasher = ContentHasher()
    for piece in ("grö", "ße".encode(), "\ud800"):
        hasher.add(piece)
    assert hasher.hexdigest() == content_hash("größe\ud800")
