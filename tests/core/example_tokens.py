"""Made-up tokens, drawn at random from a template, so that no file of this repository holds one."""

from __future__ import annotations

import random
import re
import string

_LETTERS_AND_DIGITS = string.ascii_letters + string.digits
_ALPHABETS = {
    "w": _LETTERS_AND_DIGITS,
    "a": string.ascii_letters,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "h": "0123456789abcdef",
    "d": string.digits,
    "b": _LETTERS_AND_DIGITS + "-_",
    "s": _LETTERS_AND_DIGITS + "+/",
}
_PART = re.compile(r"\{([a-z])(\d+)\}")


def drawn(template: str, seed: int = 0) -> str:
    """Return the template with each `{w36}` replaced by so many characters of its alphabet, the same for a seed."""
    source = random.Random(f"{template} {seed}")  # noqa: S311 - the same tokens in every run are meant
    return _PART.sub(
        lambda part: "".join(source.choices(_ALPHABETS[part[1]], k=int(part[2]))),
        template,
    )


def longest_part(template: str, token: str) -> str:
    """Return the longest random part of a token that was drawn from the template."""
    pattern = re.escape(re.sub(_PART, "\0\\1\\2\0", template))
    lengths = [int(n) for n in re.findall(r"\0[a-z](\d+)\0", re.sub(_PART, "\0\\1\\2\0", template))]
    parts = re.fullmatch(re.sub("\0[a-z](\\d+)\0", r"(.{\1})", pattern), token, re.DOTALL)
    assert parts is not None
    return parts[lengths.index(max(lengths)) + 1]
