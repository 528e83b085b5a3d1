"""What a secret looks like, by name and by value, and taking it out of text. Standard library only.

Shared by command environments, logs, recordings and commits (contract §4: a key, token or password never
reaches any of them). Precise where formats are published (vendor prefixes, PEM blocks, JWT); an assignment
counts only where the name says secret and the value looks drawn at random, so that hashes, ids and lock
files stay as they are. Every pattern is linear in the length of the text.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

SHORTEST_KNOWN = 6
LONG_ENOUGH = 12  # bytes, to be looked for in Base64 and hexadecimal too
_URL_SAFE = str.maketrans("+/", "-_")
_LEAST_BITS = 3.0  # a character, of a value that looks drawn at random


@dataclass(frozen=True, slots=True)
class Secret:
    """Where in a text something secret stands; `kind` is for people and carries nothing of it."""

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
    """Whether a variable of this name is kept from commands, whatever it holds."""
    if name in _NOT_SECRET:
        return False
    words = re.split(r"[^A-Za-z0-9]+", _CAMEL.sub("_", name))
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in (w.upper() for w in words))


@dataclass(frozen=True, slots=True)
class _Format:
    """A published or usual shape. `hints`: lower-case text one of which any match contains.

    The secret is the group `s` where the pattern has one, else the whole match.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _format(kind: str, hints: str, pattern: str) -> _Format:
    return _Format(kind, tuple(hints.split()), re.compile(pattern, re.MULTILINE))


_FORMATS = (
    _format("anthropic_key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_-]{16,200}"),
    _format(
        "openai_key",
        "sk-",
        r"\bsk-(?:proj-|svcacct-|admin-)[A-Za-z0-9_-]{20,200}|\bsk-(?=[A-Za-z]*[0-9])[A-Za-z0-9]{40,64}\b",
    ),
    _format("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b"),
    _format("github_token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{40,255}\b"),
    _format(
        "gitlab_token", "glpat- gldt- glrt- glptt- glcbt-", r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{20,100}"
    ),
    _format("aws_key_id", "akia asia", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    _format("google_key", "aiza", r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _format("google_token", "ya29.", r"\bya29\.[A-Za-z0-9_-]{20,500}"),
    _format("slack_token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}"),
    _format("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/services/(?P<s>[A-Za-z0-9/]{20,100})"),
    _format("stripe_key", "k_live_ k_test_", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,250}\b"),
    _format("npm_token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _format("pypi_token", "pypi-age", r"\bpypi-AgE[A-Za-z0-9_-]{50,300}"),
    _format("huggingface_token", "hf_", r"\bhf_[A-Za-z0-9]{30,60}\b"),
    _format("sendgrid_key", "sg.", r"\bSG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,60}"),
    _format("digitalocean_token", "_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    _format("age_key", "age-secret-key-1", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,64}\b"),
    _format("azure_key", "accountkey=", r"\bAccountKey=(?P<s>[A-Za-z0-9+/]{40,100}={0,2})"),
    _format(
        "jwt",
        "eyj",
        r"\beyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,4000}+\.[A-Za-z0-9_-]{10,1000}",
    ),
    _format(
        "private_key",
        "private key",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-\"]|-(?!----)){0,20000}+(?:-----END [A-Z0-9 ]{0,40}-----)?",
    ),
    _format(
        "authorization",
        "authorization x-api-key",
        r"(?i:\b(?:authorization|x-api-key)\\?['\"]?\s{0,3}[:=]\s{0,3}\\?['\"]?(?:(?:bearer|basic|token)\s{1,3})?)"
        r"(?P<s>[\w.~+/=-]{16,2000})",
    ),
    _format("cookie", "cookie:", r"(?i:^|['\"\n])(?i:set-)?(?i:cookie:)\s{0,3}(?P<s>[^\r\n'\"]{8,2000})"),
    _format(
        "url_password",
        "://",
        r"://[^\s:/@'\"<>]{0,100}:(?P<s>[^\s/@'\"<>]{3,300})@",
    ),
    _format(
        "assigned",
        "key token secret passw credential",
        r"(?i:(?:api|secret|access|private|signing|encryption|auth)[_-]?key|secret|token|passwd|password|credentials?)"
        r"\\?['\"]?\s{0,3}(?::=|=>|[:=])\s{0,3}\\?['\"]?(?P<s>[A-Za-z0-9+/_=.~!@#$%^&*-]{12,500})",
    ),
)
_ANY_HINT = re.compile("|".join(re.escape(hint) for shape in _FORMATS for hint in shape.hints))
_GUESSED = frozenset({"assigned", "url_password", "authorization"})
_PLACEHOLDER = re.compile(
    r"^[<${%*(]|\.\.\.|example|change.?me|your[_-]|placeholder|redacted|dummy|sample|insert|xxxx|1234567|"
    r"^(?:user|root|admin|postgres|password|passwd|pass|pwd|secret|guest|test|mysql)\d*$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^[A-Za-z_][A-Za-z_]*(?:[._][A-Za-z_]+)*[.(=]?$|\(|^[./~]|^https?:|\.(?:py|js|ts|go|rs|json|txt|pem)$"
)


def find_secrets(text: str) -> list[Secret]:
    """Every secret in `text`, in order, without overlaps."""
    lowered = text.lower()
    if not _ANY_HINT.search(lowered):
        return []
    found = sorted(_found(text, lowered), key=lambda s: (s.start, -s.end))
    apart: list[Secret] = []
    for secret in found:
        if not apart or secret.start >= apart[-1].end:
            apart.append(secret)
    return apart


def looks_secret_value(value: str) -> bool:
    """Whether a variable's value holds something secret, whatever its name."""
    return bool(find_secrets(value))


def redact(text: str, known: Iterable[str] = ()) -> str:
    """`text` with every secret replaced by `[redacted:<kind>]`.

    `known` are values to take out wherever they stand (a key in use), also escaped for JSON or a URL. The
    replacement keeps JSON strings whole. Redacting twice changes nothing more.
    """
    text = hidden(text, known)
    pieces: list[str] = []
    done = 0
    for secret in find_secrets(text):
        pieces += [text[done : secret.start], f"[redacted:{secret.kind}]"]
        done = secret.end
    return "".join([*pieces, text[done:]])


def hidden(text: str, known: Iterable[str]) -> str:
    """`text` with the values `known` replaced, and what only looks like a secret left as it is."""
    for value in _spellings(tuple(known)):
        text = text.replace(value, "[redacted:known]")
    return text


def spelt(value: str) -> tuple[str, ...]:
    """A known value in every spelling that is looked for; none of one that is too short."""
    return _spellings((value,))


@lru_cache(maxsize=64)
def spelt_in_bytes(known: tuple[str, ...]) -> tuple[bytes, ...]:
    """The same for what files hold, whose text may be UTF-16 too; several spellings of one value are all there."""
    forms = {form.encode("utf-8", "surrogatepass") for form in _spellings(known)}
    for value in known:
        if len(value) >= SHORTEST_KNOWN:
            forms |= {value.encode(code, "surrogatepass") for code in ("utf-16-le", "utf-16-be")}
    return tuple(sorted(forms, key=len, reverse=True))


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret that is to be put there."""
    return bool(_PLACEHOLDER.search(value))


def added(before: str, after: str, known: Iterable[str] = ()) -> list[tuple[int, str]]:
    """(line, kind) of every secret in `after` that `before` did not hold, by value or by looks, in order."""
    there = {before[s.start : s.end] for s in find_secrets(before)}
    places = [(s.start, s.kind) for s in find_secrets(after) if after[s.start : s.end] not in there]
    places += [(after.find(v), "known") for v in _spellings(tuple(known)) if v in after and v not in before]
    return [(after.count("\n", 0, start) + 1, kind) for start, kind in sorted(set(places))]


def _found(text: str, lowered: str) -> Iterator[Secret]:
    for shape in _FORMATS:
        if not any(hint in lowered for hint in shape.hints):
            continue
        group = "s" if "s" in shape.pattern.groupindex else 0
        for match in shape.pattern.finditer(text):
            value = match[group]
            if "[redacted" not in value and (shape.kind not in _GUESSED or _likely(shape.kind, value)):
                yield Secret(shape.kind, match.start(group), match.end(group))


def _likely(kind: str, value: str) -> bool:
    """Whether a value that only its place makes suspicious is one, and no placeholder or code."""
    if _PLACEHOLDER.search(value):
        return False
    if kind == "url_password":
        return True
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed and not _CODE.search(value) and _bits(value) >= _LEAST_BITS


def _bits(value: str) -> float:
    """Shannon entropy in bits a character."""
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
