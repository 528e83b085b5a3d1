"""Secrets are found by name and by shape, taken out of text, and ordinary text is left alone."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.redaction import find_secrets, looks_secret_name, looks_secret_value, redact

PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA7bq9\n-----END RSA PRIVATE KEY-----"
SECRETS = {
    "anthropic_key": "sk-ant-api03-" + "aB3_" * 20,
    "openai_key": "sk-proj-" + "aB3x" * 10,
    "github_token": "ghp_" + "aB3x" * 9,
    "gitlab_token": "glpat-" + "aB3x-" * 4,
    "aws_key_id": "AKIA" + "Q2W3E4R5T6Y7U2I3",
    "google_key": "AIza" + "aB3x5" * 7,
    "slack_token": "xoxb-123456789012-abcdefGHIJ",
    "stripe_key": "sk_live_" + "aB3x" * 6,
    "npm_token": "npm_" + "aB3x" * 9,
    "huggingface_token": "hf_" + "aBcx" * 9,
    "sendgrid_key": "SG." + "aB3x" * 5 + "." + "aB3x" * 10,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "private_key": PEM,
    "age_key": "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7,
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
def test_a_published_format_is_found_anywhere_in_a_line(kind: str, secret: str) -> None:
    text = f"before {secret} after"
    assert [(s.kind, text[s.start : s.end]) for s in find_secrets(text)] == [(kind, secret)]
    assert looks_secret_value(secret)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://app:h4rd-t0-guess@db:5432/x", "h4rd-t0-guess"),
        ('{"api_key": "9f86d081884c7d659a2feaa0c55ad015"}', "9f86d081884c7d659a2feaa0c55ad015"),
        ("export DB_PASSWORD=tr0ub4dor-and-3-more", "tr0ub4dor-and-3-more"),
        ("Authorization: Bearer abcDEF123456ghiJKL7890", "abcDEF123456ghiJKL7890"),
        ("x-api-key: abcDEF123456ghiJKL7890", "abcDEF123456ghiJKL7890"),
        ("Cookie: sid=abcdef123456", "sid=abcdef123456"),
        (
            "secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEY9",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEY9",
        ),
    ],
)
def test_a_value_is_found_by_where_it_stands(text: str, secret: str) -> None:
    assert [text[s.start : s.end] for s in find_secrets(text)] == [secret]
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "token = request.headers.get('X-Token')",
        "password: str = Field(min_length=12)",
        "api_key = os.environ['API_KEY']",
        'token = "your-token-goes-here-123"',
        "postgres://postgres:postgres@localhost:5432/test",
        "https://${USER}:${TOKEN}@github.com/x/y",
        "max_tokens=16000",
        "the tokenizer splits a token into pieces: 1234",
        "secret = load_secret(path)",
        "see https://example.org/a:b and user@example.org",
        "key: value\nkeyboard = qwertyuiop123456",
        "checksum = 'd41d8cd98f00b204e9800998ecf8427e'",
        "class TokenBucket: ...",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_a_key_without_its_end_is_still_taken_out_and_a_json_line_stays_json() -> None:
    line = json.dumps({"a": PEM, "b": PEM.split("-----END")[0], "c": "kept"})
    cleaned = json.loads(redact(line))
    assert cleaned == {"a": "[redacted:private_key]", "b": "[redacted:private_key]", "c": "kept"}


def test_known_values_are_taken_out_in_every_spelling() -> None:
    known = 'pa"ss wörd'
    text = f"{known} {json.dumps(known)} pa%22ss%20w%C3%B6rd"
    assert redact(text, [known]) == '[redacted:known] "[redacted:known]" [redacted:known]'
    assert redact("a b c", ["a", ""]) == "a b c"


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "GITHUBTOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "DB_PWD",
        "PGPASSWORD",
        "SSH_AUTH_SOCK",
        "npm_config__auth",
        "SESSION_ID",
        "apiKey",
        "clientSecret",
        "MY-CREDENTIALS",
        "COOKIE_JAR",
        "SENTRY_DSN",
    ],
)
def test_a_name_that_says_secret_is_one(name: str) -> None:
    assert looks_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "LANG",
        "MONKEY",
        "KEYBOARD",
        "AUTHOR",
        "TOKENIZERS_PARALLELISM",
        "PASSIVE",
    ],
)
def test_an_ordinary_name_is_none(name: str) -> None:
    assert not looks_secret_name(name)


@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(list(SECRETS.values()))), max_size=6))
def test_redacting_twice_changes_nothing_more(pieces: list[str]) -> None:
    once = redact(" ".join(pieces))
    assert redact(once) == once


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIVATE KEY-----",
        "eyJ" + "a" * 40 + ".",
        "password=",
        "://a:b",
        "secret",
        "token:a1",
        "sk-",
        "a",
    ],
)
def test_a_hostile_text_takes_no_more_than_linear_time(hostile: str) -> None:
    text = hostile * (400_000 // len(hostile))
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 3.0
