"""Recognise secrets by name and by value, and take them out of text. Standard library only.

Command environments, logs, recordings and commits share this module: a key, token or password reaches none of
them. Published formats are matched exactly; an assignment counts only where the name says
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
from typing import Literal, NamedTuple
from urllib.parse import quote

KNOWN = "[redacted:known]"
"""The text in place of a known secret value."""
SHORTEST_KNOWN = 6
LONG_ENOUGH = 12  # bytes, to be looked for in Base64 and hexadecimal too
_URL_SAFE = str.maketrans("+/", "-_")
_LOWER = {ord(c): ord(c.lower()) for c in string.ascii_uppercase}


SOME_BITS = 1.5  # a character: rules out `ghp_xxxxxxxx` and the like


class Format(NamedTuple):
    """A published format of tokens.

    `anchors` are literal texts, one of which every match contains, `lead` characters after its start. Where
    `any_case` is set they are lower case and found in any case. The secret is the group `s` of `pattern`, or the
    whole match. After its anchor it carries at least `bits` of Shannon entropy a character; 0 accepts any.

    `pattern` is compiled when one of the anchors is found, and matches in time linear in the length of the text.

    `context` is set where only the text around a value makes it suspicious. Such a value is a secret unless it is a
    placeholder (`any`), or only if it also looks random (`random`).
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    bits: float = SOME_BITS
    lead: int = 0
    any_case: bool = False
    context: Literal["", "any", "random"] = ""


FORMATS: tuple[Format, ...] = (
    Format("anthropic_key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,200}"),
    Format("openai_key", ("sk-",), r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,200}"),
    Format("openai_key", ("sk-",), r"sk-(?=[A-Za-z]{0,63}[0-9])[A-Za-z0-9]{40,64}\b"),
    Format("openrouter_key", ("sk-or-v1-",), r"sk-or-v1-[a-f0-9]{64}\b"),
    Format("deepseek_key", ("sk-",), r"sk-[a-f0-9]{32}\b", bits=2.5),
    Format("huggingface_token", ("hf_",), r"hf_[A-Za-z0-9]{30,60}\b"),
    Format("huggingface_token", ("api_org_",), r"api_org_[A-Za-z]{34}\b", bits=3.0),
    Format("groq_key", ("gsk_",), r"gsk_[A-Za-z0-9]{48,56}\b"),
    Format("aws_key_id", ("AKIA", "ASIA", "ABIA", "ACCA"), r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}(?<!EXAMPLE)\b"),
    Format("aws_session_token", ("IQoJb3JpZ2lu",), r"IQoJb3JpZ2lu[A-Za-z0-9+/=]{80,3000}"),
    Format("aws_session_token", ("FwoGZXIvYXdz",), r"FwoGZXIvYXdz[A-Za-z0-9+/=]{80,3000}"),
    Format("aws_bedrock_key", ("ABSK",), r"ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    Format("aws_bedrock_key", ("bedrock-api-key-YmVkcm9jay",), r"bedrock-api-key-YmVkcm9jay[A-Za-z0-9+/=]{20,4000}"),
    Format("google_key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    Format("google_token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,500}"),
    Format("google_client_secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])"),
    Format("google_refresh_token", ("1//0",), r"1//0[A-Za-z0-9_-]{40,250}", bits=3.0),
    Format("azure_key", ("accountkey=",), r"(?i:AccountKey)=(?P<s>[A-Za-z0-9+/]{40,100}={0,2})", any_case=True),
    Format("azure_key", ("sharedaccesskey=",),
           r"(?i:SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{40,100}={0,2})", any_case=True),
    Format("azure_key", ("JQQJ9",), r"[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{27}\b", lead=52),
    Format("azure_client_secret", ("Q~",),
           r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])", bits=3.0, lead=4),
    Format("azure_signature", ("&sig=", "?sig="), r"[?&]sig=(?P<s>[A-Za-z0-9+/]{43}=|[A-Za-z0-9%+/]{43,90}%3[Dd])"),
    Format("digitalocean_token", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}\b", lead=3),
    Format("databricks_token", ("dapi",), r"dapi[a-f0-9]{32}(?:-[0-9])?\b"),
    Format("vault_token", ("hv",), r"hv[sbr]\.[A-Za-z0-9_-]{24,300}", bits=3.0),
    Format("github_token", ("gh",), r"gh[pousr]_[A-Za-z0-9]{36,255}\b"),
    Format("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{40,255}\b"),
    Format("gitlab_token", ("gl",),
           r"gl(?:pat|dt|rtr?|ptt|cbt|ft|imt|agent|soat|oas|ffct|wt)-[A-Za-z0-9_.-]{20,320}"),
    Format("gitlab_token", ("GR1348941",), r"GR1348941[A-Za-z0-9_-]{20,50}"),
    Format("atlassian_token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_=-]{100,300}"),
    Format("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36}\b"),
    Format("npm_token", (":_authToken=", ":_password="),
           r":_(?:authToken|password)=\"?(?P<s>[A-Za-z0-9+/=_-]{20,200})", bits=2.5),
    Format("pypi_token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,300}"),
    Format("crates_token", ("cio",), r"cio[A-Za-z0-9]{32}\b", bits=3.5),
    Format("docker_token", ("dckr_",), r"dckr_[po]at_[A-Za-z0-9_-]{27,40}"),
    Format("slack_token", ("xox",), r"xox[abcdeoprs]-[A-Za-z0-9%-]{10,250}"),
    Format("slack_token", ("xoxe.xox",), r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,250}"),
    Format("slack_token", ("xapp-",), r"xapp-[0-9]-[A-Z0-9]{8,20}-[0-9]{8,20}-[a-z0-9]{50,80}"),
    Format("slack_webhook", ("hooks.slack.com/",),
           r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9+/]{20,100})"),
    Format("discord_webhook", ("/api/webhooks/",), r"/api/webhooks/[0-9]{17,20}/(?P<s>[A-Za-z0-9_-]{60,80})"),
    Format("discord_token", (".",),
           r"(?<=[MNO][A-Za-z0-9_-]{23})\.[A-Za-z0-9_-]{6}\.(?P<s>[A-Za-z0-9_-]{27,38})(?![A-Za-z0-9_.-])", bits=3.5),
    Format("telegram_token", (":AA",), r"(?<=[0-9]{8}):(?P<s>AA[A-Za-z0-9_-]{32,33})(?![A-Za-z0-9_-])", bits=3.0),
    Format("sendgrid_key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,60}"),
    Format("twilio_key", ("SK",), r"SK[a-f0-9]{32}\b", bits=2.5),
    Format("stripe_key", ("k_live_", "k_test_", "k_prod_"),
           r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}\b", lead=1),
    Format("stripe_webhook_secret", ("whsec_",), r"whsec_[A-Za-z0-9+/]{24,80}={0,2}", bits=2.5),
    Format("jwt", ("eyJ",),
           r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]"
           r"{10,4000}+\.[A-Za-z0-9_-]{10,1000}", bits=0),
    Format("private_key", ("-----BEGIN ",),
           r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?!['\"])(?:[^-\"]|-(?!----))"
           r"{0,20000}+(?:-----END [A-Z0-9 ]{0,40}-----)?", bits=0),
    Format("private_key", ("Private-Lines: ",),
           r"Private-Lines: [0-9]{1,3}(?:\r?\n|(?:\\r)?\\n)(?P<s>(?:[A-Za-z0-9+/=]{1,64}(?:\r?\n|(?:\\r)?\\n))"
           r"{1,200})", bits=0),
    Format("authorization", ("authorization", "x-api-key", "private-token", "x-auth-token", "x-vault-token"),
           r"(?i:authorization|x-api-key|private-token|x-auth-token|x-vault-token)\\?['\"]?\s{0,3}[:=]\s"
           r"{0,3}\\?['\"]?(?i:(?:bearer|basic|token|bot)\s{1,3})?(?P<s>[\w.~+/=-]{16,2000})", bits=3.0, any_case=True, context="random"),
    Format("cookie", ("cookie:", "set-cookie:"),
           r"(?:^|(?<=['\"])|(?<=\\n))(?i:set-)?(?i:cookie:)\s{0,3}(?P<s>[^\r\n'\"]{8,2000})", bits=0, any_case=True),
    Format("url_password", ("://",),
           r"://[^\s:/@'\"<>]{0,100}:(?P<s>(?!\[)[^\s/@'\"<>]{3,300})@", bits=0, context="any"),
    Format("connection_string", (";password=", ";pwd="),
           r"(?i:;\s{0,3}(?:password|pwd)=)(?P<s>[^;'\"\s]{6,200})", any_case=True, context="any"),
    Format("netrc_password", ("machine ",),
           r"machine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<s>[^\s'\"{}<>]{6,200})", context="any"),
    Format("docker_login", ("\"auth",),
           r"\"auth\\?\"\s{0,3}:\s{0,3}\\?\"(?P<s>(?:[A-Za-z0-9+/]{4}){3,100}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]"
           r"{3}=|[A-Za-z0-9+/]{2}==))\\?\"", bits=3.0, context="random"),
    Format("curl_user", ("curl ",),
           r"curl [^\n|]{0,200}?(?:-u|--user)[ =]{0,2}['\"]?[^\s:'\"]{1,60}:(?P<s>[^\s'\"]{6,200})", context="any"),
    Format("assigned", ("token", "secret", "passwd", "password", "passphrase", "credential", "key"),
           r"(?i:token|secret|passwd|password|passphrase|credentials?|(?:(?<=api)|(?<=api[_-])|(?<=secret)|"
           r"(?<=secret[_-])|(?<=access)|(?<=access[_-])|(?<=private)|(?<=private[_-])|(?<=signing)|"
           r"(?<=signing[_-])|(?<=encryption)|(?<=encryption[_-])|(?<=auth)|(?<=auth[_-]))key)\\?['\"]?\s"
           r"{0,3}(?::=|=>|[:=])\s{0,3}\\?['\"]?(?P<s>(?![A-Za-z_]\w{0,60}(?:\.\w"
           r"{1,60})+\()[A-Za-z0-9+/_=.~!@#$%^&*-]{12,500})", bits=3.0, any_case=True, context="random"),
)  # fmt: skip
_ANCHORS = [(number, anchor) for number, shape in enumerate(FORMATS) for anchor in shape.anchors]


@dataclass(frozen=True, slots=True)
class Secret:
    """The place of a secret in a text. `kind` is for people and holds nothing of the secret."""

    kind: str
    start: int
    end: int


_SECRET_WORD = re.compile(
    r"KEYS?|AUTH|SESSION|SESSIONID|SID|PASS|PWD|PAT|PSK|DSN|JWT|BEARER|CREDS|COOKIES|PASSPHRASE"
    r"|.*(?:APIKEY|ACCESSKEY|PRIVATEKEY|SECRETKEY|COOKIE|CREDENTIALS?|PASSWD|PASSWORDS?|SECRETS?|TOKENS?)"
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def looks_secret_name(name: str) -> bool:
    """Return true for a variable's name that says secret; commands do not get such a variable."""
    if name in _NOT_SECRET:
        return False
    words = re.split(r"[^A-Za-z0-9]+", _CAMEL.sub("_", name))
    return any(_SECRET_WORD.fullmatch(word.upper()) for word in words)


_PLACEHOLDER = re.compile(
    r"^[<${%*(]|\.\.\.|example|change.?me|your[_-]|placeholder|redacted|dummy|sample|insert|xxxx|1234567|"
    r"^(?:user|root|admin|postgres|password|passwd|pass|pwd|secret|guest|test|mysql)\d*$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^[A-Za-z_][A-Za-z_]*(?:[._][A-Za-z_]+)*[.(=]?$|\(|^[./~]|^https?:|\.(?:py|js|ts|go|rs|json|txt|pem)$"
)

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
    """Return True for a value that holds a secret; the name of its variable does not count."""
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
    """Yield what matches, format by format. Looking for literal text first makes this fast."""
    lowered = _lowered(text)
    for number, anchor in _ANCHORS:
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
            after = max(after, match.end())  # also past a mismatch, which keeps the time linear
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
    """Yield, for each of the three alignments, the characters that do not depend on the bytes before and after."""
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + raw).decode()
        certain = coded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        yield certain
        yield certain.translate(_URL_SAFE)
