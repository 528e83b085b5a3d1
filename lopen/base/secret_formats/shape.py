"""One published token format, as a row of data."""

from __future__ import annotations

from typing import Literal, NamedTuple

SOME_BITS = 1.5  # a character: rules out `ghp_xxxxxxxx` and the like


class Format(NamedTuple):
    """A token format and its documented example.

    `anchors` are literal texts, one of which every match contains, `lead` characters after its start. Where
    `any_case` is set they are lower case and found in any case. The secret is the group `s` of `pattern`, or the
    whole match. After its anchor it carries at least `bits` of Shannon entropy a character; 0 accepts any.

    `pattern` is compiled when one of the anchors is found, and matches in time linear in the length of the text.

    `context` is set where only the text around a value makes it suspicious. Such a value is a secret unless it is a
    placeholder (`any`), or only if it also looks random (`random`).

    `example` is a template, so that this repository holds no token: `{w36}` stands for 36 random characters of
    an alphabet: w letters and digits, a letters, l lower case and digits, u upper case and digits 2-7, h hexadecimal,
    d digits, b Base64 for URLs, s Base64.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    example: str
    bits: float = SOME_BITS
    lead: int = 0
    any_case: bool = False
    context: Literal["", "any", "random"] = ""
