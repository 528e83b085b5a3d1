"""Recognise secrets by name and by value, and take them out of text. Standard library only.

Command environments, logs, recordings and commits share this module: a key, token or password reaches none of
them. Published formats (`secret_formats`) are matched exactly; an assignment counts only where the name says
secret and the value looks random, so that hashes, ids and lock files stay as they are. The time is
linear in the length of the text.
"""

from __future__ import annotations

import base64
import json
import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from lopen.core.secret_formats import FORMATS, Format

KNOWN = "[redacted:known]"
"""What stands for a known secret value in a text."""
SHORTEST_KNOWN = 6
LONG_ENOUGH = 12  # bytes, to be looked for in Base64 and hexadecimal too
_URL_SAFE = str.maketrans("+/", "-_")
_LOWER = {ord(c): ord(c.lower()) for c in string.ascii_uppercase}


@dataclass(frozen=True, slots=True)
class Secret:
    """The place of a secret in a text. `kind` is for people and holds nothing of the secret."""

    kind: str
    start: int
    end: int


_WORDS = frozenset(
    [
        "KEY",
        "KEYS",
        "AUTH",
        "SESSION",
        "SESSIONID",
        "SID",
        "PASS",
        "PWD",
        "PAT",
        "PSK",
        "DSN",
        "JWT",
        "BEARER",
        "CREDS",
        "COOKIE",
        "COOKIES",
        "PASSPHRASE",
    ]
)
_ENDINGS = (
    "APIKEY",
    "ACCESSKEY",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASSWD",
    "PASSWORD",
    "PASSWORDS",
    "PRIVATEKEY",
    "SECRET",
    "SECRETKEY",
    "SECRETS",
    "TOKEN",
    "TOKENS",
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def looks_secret_name(name: str) -> bool:
    """Return true for a variable's name that says secret; commands do not get such a variable."""
    if name in _NOT_SECRET:
        return False
    words = re.split(r"[^A-Za-z0-9]+", _CAMEL.sub("_", name))
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in (w.upper() for w in words))


_PLACEHOLDER = re.compile(
    r"^[<${%*(]|\.\.\.|example|change.?me|your[_-]|placeholder|redacted|dummy|sample|insert|xxxx|1234567|"
    r"^(?:user|root|admin|postgres|password|passwd|pass|pwd|secret|guest|test|mysql)\d*$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^[A-Za-z_][A-Za-z_]*(?:[._][A-Za-z_]+)*[.(=]?$|\(|^[./~]|^https?:|\.(?:py|js|ts|go|rs|json|txt|pem)$"
)

_SEARCHED_ALWAYS = [
    (n, a) for n, f in enumerate(FORMATS) for a in f.anchors if f.context or f.any_case or not f.bits
]
_SEARCHED_IN_LONG_RUNS = [
    (n, a) for n, f in enumerate(FORMATS) for a in f.anchors if (n, a) not in _SEARCHED_ALWAYS
]
_LONG_RUN = re.compile(r"[A-Za-z0-9_+/=.-]{16}")  # every token of the other formats holds one
_STANDS_ALONE = (  # after no letter, but for an escape in JSON, a colour on a terminal, or an escape in a URL
    r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=[0-9\[]m)|(?<=%[0-9A-F]{2}))"
)
_SAMPLE_TOKEN = re.compile(r"example|your[_-]|placeholder|redacted|change.?me|xxxxxx", re.IGNORECASE)


def find_secrets(text: str) -> list[Secret]:
    """Return every secret in `text`, in order, without overlaps."""
    found = sorted(_found(text), key=lambda s: (s.start, -s.end))
    apart: list[Secret] = []
    for secret in found:
        if not apart or secret.start >= apart[-1].end:
            apart.append(secret)
    return apart


def looks_secret_value(value: str) -> bool:
    """Return true for a value that holds a secret, whatever the name of its variable."""
    return bool(find_secrets(value))


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Replace every secret in `text` by `[redacted:<kind>]`.

    `known` are values to replace everywhere, such as a key in use, also where they are escaped for JSON or a URL.
    A JSON string stays a JSON string. Redacting twice changes nothing more.
    """
    text = hidden(text, known)
    pieces: list[str] = []
    done = 0
    for secret in find_secrets(text):
        pieces += [text[done : secret.start], f"[redacted:{secret.kind}]"]
        done = secret.end
    return "".join([*pieces, text[done:]])


def hidden(text: str, known: Iterable[str]) -> str:
    """Replace the values `known` in `text`, and leave what only looks like a secret."""
    for value in _spellings(tuple(known)):
        text = text.replace(value, KNOWN)
    return text


def spelt(value: str) -> tuple[str, ...]:
    """Return every spelling of a known value that is searched for; none if the value is too short."""
    return _spellings((value,))


@lru_cache(maxsize=64)
def spelt_in_bytes(known: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return every spelling of the known values as bytes of a file, whose text may be UTF-16."""
    forms = {form.encode("utf-8", "surrogatepass") for form in _spellings(known)}
    for value in known:
        if len(value) >= SHORTEST_KNOWN:
            forms |= {value.encode(code, "surrogatepass") for code in ("utf-16-le", "utf-16-be")}
    return tuple(sorted(forms, key=len, reverse=True))


def is_placeholder(value: str) -> bool:
    """Return true for a placeholder that a person is to replace by a secret."""
    return bool(_PLACEHOLDER.search(value))


def added(before: str, after: str, known: Iterable[str] = ()) -> list[tuple[int, str]]:
    """Return (line, kind) of every known or recognised secret in `after` that `before` does not hold, in order."""
    there = {before[s.start : s.end] for s in find_secrets(before)}
    places = [(s.start, s.kind) for s in find_secrets(after) if after[s.start : s.end] not in there]
    places += [(after.find(v), "known") for v in _spellings(tuple(known)) if v in after and v not in before]
    return [(after.count("\n", 0, start) + 1, kind) for start, kind in sorted(set(places))]


def _found(text: str) -> Iterator[Secret]:
    """Yield what matches, format by format. Looking for literal text first is what makes this fast."""
    if _LONG_RUN.search(text):
        for number, anchor in [entry for entry in _SEARCHED_IN_LONG_RUNS if entry[1] in text]:
            yield from _matches(number, anchor, text, text)
    lowered = _lowered(text)
    for number, anchor in _SEARCHED_ALWAYS:
        searched = lowered if FORMATS[number].any_case else text
        if anchor in searched:
            yield from _matches(number, anchor, text, searched)


def _matches(number: int, anchor: str, text: str, searched: str) -> Iterator[Secret]:
    """Yield the secrets of one format around each place where one of its anchors stands."""
    shape = FORMATS[number]
    at = searched.find(anchor)
    while at >= 0:
        after = at + len(anchor)
        match = _compiled(number).match(text, at - shape.lead) if at >= shape.lead else None
        if match:
            group = "s" if "s" in match.re.groupindex else 0
            if _is_secret(shape, anchor, match[group]):
                yield Secret(shape.kind, match.start(group), match.end(group))
            after = max(after, match.end())  # also of what is not one: this is what keeps the time linear
        at = searched.find(anchor, after)


@lru_cache(maxsize=len(FORMATS))
def _compiled(number: int) -> re.Pattern[str]:
    shape = FORMATS[number]
    inside = shape.any_case or not (shape.lead or shape.anchors[0][0].isalnum())
    return re.compile(shape.pattern if inside else _STANDS_ALONE + shape.pattern, re.MULTILINE)


def _is_secret(shape: Format, anchor: str, value: str) -> bool:
    if "[redacted" in value:
        return False
    if shape.context and _PLACEHOLDER.search(value):
        return False
    if shape.context == "random" and not _looks_random(value):
        return False
    if shape.context or not shape.bits:
        return not shape.bits or _bits(value) >= shape.bits
    return _bits(value.removeprefix(anchor)) >= shape.bits and not _SAMPLE_TOKEN.search(value)


def _looks_random(value: str) -> bool:
    """Return true for letters mixed with digits that are not code, a path or a file name."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed and not _CODE.search(value)


def _lowered(text: str) -> str:
    """Return `text` in lower case, each character at its place."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_LOWER)


def _bits(value: str) -> float:
    """Return the Shannon entropy in bits a character."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


@lru_cache(maxsize=256)
def _spellings(known: tuple[str, ...]) -> tuple[str, ...]:
    """Each known value as it is, and as JSON, URLs, hexadecimal and Base64 write it, longest first.

    Short ones would tear text apart, in Base64 all the more.
    """
    values = {v for v in known if len(v) >= SHORTEST_KNOWN}
    forms = values | {json.dumps(v)[1:-1] for v in values} | {quote(v, safe="") for v in values}
    for value in values:
        raw = value.encode("utf-8", "surrogatepass")
        if len(raw) >= LONG_ENOUGH:
            forms |= {raw.hex(), raw.hex().upper(), *_in_base64(raw)}
    return tuple(sorted(forms, key=len, reverse=True))


def _in_base64(raw: bytes) -> Iterator[str]:
    """Those characters that are the same whatever stands before and after it, at each of the three alignments."""
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + raw).decode()
        certain = coded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        yield certain
        yield certain.translate(_URL_SAFE)
