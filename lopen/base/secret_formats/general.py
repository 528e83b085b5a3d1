"""Formats that belong to no vendor: keys and signed tokens, and values that the text around them gives away."""

from __future__ import annotations

from lopen.base.secret_formats.shape import Format

FIXED_FORMATS = (
    Format("jwt", ("eyJ",),
           r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,4000}+\.[A-Za-z0-9_-]{10,1000}",
           "eyJhbGciOiJIUzI1NiJ9.eyJ{w40}.{b43}", bits=0),
    Format("private_key", ("-----BEGIN ",),
           r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?!['\"])"
           r"(?:[^-\"]|-(?!----)){0,20000}+(?:-----END [A-Z0-9 ]{0,40}-----)?",
           "-----BEGIN EC PRIVATE KEY-----\n{s64}\n{s60}\n-----END EC PRIVATE KEY-----", bits=0),
    Format("private_key", ("Private-Lines: ",), r"Private-Lines: [0-9]{1,3}(?:\r?\n|(?:\\r)?\\n)(?P<s>(?:[A-Za-z0-9+/=]{1,64}(?:\r?\n|(?:\\r)?\\n)){1,200})",
           "Private-Lines: 2\n{s64}\n{s24}\n", bits=0),
)  # fmt: skip

CONTEXT_FORMATS = (
    Format("authorization", ("authorization", "x-api-key", "private-token", "x-auth-token", "x-vault-token"),
           r"(?i:authorization|x-api-key|private-token|x-auth-token|x-vault-token)\\?['\"]?\s{0,3}[:=]\s{0,3}\\?['\"]?"
           r"(?i:(?:bearer|basic|token|bot)\s{1,3})?(?P<s>[\w.~+/=-]{16,2000})",
           "Authorization: Bearer {w32}", bits=3.0, any_case=True, context="random"),
    Format("cookie", ("cookie:", "set-cookie:"),
           r"(?:^|(?<=['\"])|(?<=\\n))(?i:set-)?(?i:cookie:)\s{0,3}(?P<s>[^\r\n'\"]{8,2000})",
           "Cookie: sid={w26}", bits=0, any_case=True),
    Format("url_password", ("://",), r"://[^\s:/@'\"<>]{0,100}:(?P<s>(?!\[)[^\s/@'\"<>]{3,300})@",
           "postgres://app:{w20}@db.example.org:5432/app", bits=0, context="any"),
    Format("connection_string", (";password=", ";pwd="), r"(?i:;\s{0,3}(?:password|pwd)=)(?P<s>[^;'\"\s]{6,200})",
           "Server=db;Database=app;User Id=app;Password={w20};", any_case=True, context="any"),
    Format("netrc_password", ("machine ",),
           r"machine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<s>[^\s'\"{}<>]{6,200})",
           "machine api.example.org login app password {w20}", context="any"),
    Format("docker_login", ("\"auth",), r"\"auth\\?\"\s{0,3}:\s{0,3}\\?\"(?P<s>(?:[A-Za-z0-9+/]{4}){3,100}"
           r"(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==))\\?\"",
           "{\"auths\": {\"ghcr.io\": {\"auth\": \"YXBwO{s20}7{s14}\"}}}", bits=3.0, context="random"),
    Format("curl_user", ("curl ",),
           r"curl [^\n|]{0,200}?(?:-u|--user)[ =]{0,2}['\"]?[^\s:'\"]{1,60}:(?P<s>[^\s'\"]{6,200})",
           "curl -s -u app:{w20} https://example.org", context="any"),
    Format("assigned", ("token", "secret", "passwd", "password", "passphrase", "credential", "key"),
           r"(?i:token|secret|passwd|password|passphrase|credentials?|(?:(?<=api)|(?<=api[_-])|(?<=secret)|"
           r"(?<=secret[_-])|(?<=access)|(?<=access[_-])|(?<=private)|(?<=private[_-])|(?<=signing)|(?<=signing[_-])|"
           r"(?<=encryption)|(?<=encryption[_-])|(?<=auth)|(?<=auth[_-]))key)"
           r"\\?['\"]?\s{0,3}(?::=|=>|[:=])\s{0,3}\\?['\"]?"
           r"(?P<s>(?![A-Za-z_]\w{0,60}(?:\.\w{1,60})+\()[A-Za-z0-9+/_=.~!@#$%^&*-]{12,500})",
           "api_key = {h32}", bits=3.0, any_case=True, context="random"),
)  # fmt: skip
