"""However much a command says, its head and tail are kept, as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lopen.sandbox.supervision import CommandOutput


def gathered(pieces: list[bytes], limit: int) -> tuple[str, bool]:
    output = CommandOutput(limit)
    for piece in pieces:
        output.add(piece)
    return output.text()


def test_short_output_is_kept_whole() -> None:
    assert gathered([b"a", "ö".encode()[:1], "ö".encode()[1:]], 100) == ("aö", False)


def test_a_cut_keeps_more_of_the_tail_and_says_how_much_is_missing() -> None:
    text, truncated = gathered([b"x" * 1_000_000, b"the end"], 1_000)
    head, _, rest = text.partition("\n[… ")
    missing, _, tail = rest.partition(" bytes omitted")
    assert truncated
    assert len(head) < len(tail)
    assert tail.endswith("the end")
    assert int(missing) == 1_000_007 - len(head) - (1_000 - 160 - len(head))


@given(st.lists(st.text(max_size=300).map(str.encode), max_size=20), st.integers(200, 600))
def test_output_never_grows_past_the_limit_and_starts_and_ends_alike(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces).decode()
    text, truncated = gathered(pieces, limit)
    assert truncated == (len(whole) > limit)
    assert len(text) <= limit
    if truncated:
        assert whole.startswith(text[:10])
        assert whole.endswith(text[-10:])
    else:
        assert text == whole
