"""Secrets are found by name, by format and by where they stand, taken out of text, and ordinary text is left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.redaction import FORMATS, find_secrets, looks_secret_name, looks_secret_value, redact
from tests.core.example_tokens import drawn, longest_part

PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA7bq9\n-----END RSA PRIVATE KEY-----"

# Provider, and a token as its documentation describes it; most are written without a look at the table of formats.
TOKENS = {
    "AWS access key id": "AKIA{u16}",
    "AWS temporary key id": "ASIA{u16}",
    "Google API key": "AIza{b35}",
    "Google OAuth access token": "ya29.a0{b150}",
    "Google OAuth client secret": "GOCSPX-{b28}",
    "Azure storage connection string": "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={s86}==",
    "Azure AD client secret": "{w3}8Q~{b34}",
    "DigitalOcean personal token": "dop_v1_{h64}",
    "Anthropic key": "sk-ant-api03-{b93}AA",
    "OpenAI project key": "sk-proj-{b74}T3BlbkFJ{b74}",
    "OpenAI legacy key": "sk-{w19}7T3BlbkFJ{w20}",
    "OpenRouter key": "sk-or-v1-{h64}",
    "Hugging Face token": "hf_{a34}",
    "Groq key": "gsk_{w52}",
    "GitHub personal token": "ghp_{w36}",
    "GitHub fine-grained token": "github_pat_{w22}_{w59}",
    "GitLab personal token": "glpat-{b20}",
    "Atlassian API token": "ATATT3xFfGF0{b170}={h8}",
    "npm token": "npm_{w36}",
    "npm registry line": "//registry.npmjs.org/:_authToken={h8}-{h4}-{h4}-{h4}-{h12}",
    "PyPI token": "pypi-AgEIcHlwaS5vcmc{b150}",
    "crates.io token": "cio{w32}",
    "Docker Hub token": "dckr_pat_{b27}",
    "Slack bot token": "xoxb-{d12}-{d13}-{w24}",
    "Slack app token": "xapp-1-A{u10}-{d13}-{h64}",
    "Slack webhook": "https://hooks.slack.com/services/T{u8}/B{u8}/{w24}",
    "Discord bot token": "M{w23}.{w6}.{b38}",
    "Discord webhook": "https://discord.com/api/webhooks/{d18}/{b68}",
    "Telegram bot token": "{d10}:AA{b33}",
    "Twilio key": "SK{h32}",
    "SendGrid key": "SG.{b22}.{b43}",
    "Stripe secret key": "sk_live_{w24}",
    "Stripe webhook secret": "whsec_{w32}",
    "Databricks token": "dapi{h32}",
    "HashiCorp Vault token": "hvs.{b90}",
    "Database URL": "postgres://app:{w20}@db.internal:5432/app",
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9.eyJ{w60}.{b43}",
    "OpenSSH key": "-----BEGIN OPENSSH PRIVATE KEY-----\n{s70}\n{s70}\n-----END OPENSSH PRIVATE KEY-----",
    "Netrc line": "machine git.internal login bot password {w20}",
    "Docker login": '{"auths": {"ghcr.io": {"auth": "dXNlcjpw{s15}7{s16}"}}}',
    "Basic authorization": "Authorization: Basic {w19}7{w20}",
    "deepseek key": "sk-{h32}",
    "aws session token": "FwoGZXIvYXdz{s200}",
    "aws bedrock key": "bedrock-api-key-YmVkcm9jay{s80}",
    "google refresh token": "1//0{b60}",
    "azure signature": "?sv=2022-11-02&sig={w43}%3D",
    "cookie": "Cookie: sid={w26}",
    "connection string": "Server=db;Database=app;User Id=app;Password={w20};",
    "curl user": "curl -s -u app:{w20} https://example.org",
    "assigned": "api_key = {h32}",
}


@pytest.mark.parametrize("provider", TOKENS)
def test_a_documented_token_is_found_in_a_line_of_text_and_in_json(provider: str) -> None:
    for seed in range(2):
        token = drawn(TOKENS[provider], seed)
        assert looks_secret_value(token)
        cleaned = redact(f"first line\n{token}\nlast line\n")
        assert longest_part(TOKENS[provider], token) not in cleaned
        assert cleaned.startswith("first line\n")
        assert cleaned.endswith("last line\n")
        assert longest_part(TOKENS[provider], token) not in redact(
            json.dumps({"output": f"\x1b[31m\n{token}"})
        )


def test_each_format_has_a_token_here_and_a_repeated_character_is_a_placeholder() -> None:
    found = {
        s.kind
        for template in TOKENS.values()
        for seed in range(3)
        for s in find_secrets(drawn(template, seed))
    }
    assert found == {shape.kind for shape in FORMATS}
    for template in ("ghp_{w36}", "sk-ant-api03-{b93}AA", "AKIA{u16}", "hf_{w34}"):
        assert not find_secrets(template.partition("{")[0] + "0" * 36)


@pytest.mark.parametrize("before", ["\\n", "\\t", "\x1b[32m", "\x1b[m", "token%3D", "'", "=", ":", "(", "/"])
def test_a_token_is_found_after_what_may_stand_before_it(before: str) -> None:
    token = drawn("ghp_{w36}")
    assert redact(f"x{before}{token}") == f"x{before}[redacted:github_token]"


def test_letters_whose_lower_case_is_longer_do_not_shift_a_secret() -> None:
    assert redact("İİİ password=k7Qz-93mfPw2 İ") == "İİİ password=[redacted:assigned] İ"


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


ORDINARY = {
    "uuid": "request 9b2f1c34-7a55-4d1e-8c3b-2f60d7a1b9ce took 12 ms",
    "git log": "commit 1d0f6e0a3c5b7f9e2d4c6b8a0f1e3d5c7b9a2e4f\ntree 77aa88bb99cc00dd11ee22ff33aa44bb55cc66dd",
    "docker digest": drawn("FROM python:3.12@sha256:{h64}"),
    "base64 for URLs": drawn("{b4000}"),
    "package-lock.json": drawn(
        '"node_modules/token-types": {"version": "5.0.1", "integrity": "sha512-{s86}==", "license": "MIT"}'
    ),
    "poetry.lock": drawn('{file = "secretstorage-3.3.3-py3-none-any.whl", hash = "sha256:{h64}"},'),
    "go.sum": drawn("github.com/golang-jwt/jwt/v5 v5.2.1 h1:{s43}="),
    "minified script": (
        'function t(e,n){return e.token=n.key||"",e.secret=!1,n.sk_=e.pk_,r.fw_updateRequestHandlerPool(e)}'
        'var re_=/^(?:a|b)$/i,SG={a:1},xai="x",hf_="y";t.password=function(e){return e.passwordHash(n)};'
    )
    * 50,
    "source": 'token = request.headers.get("X-Token")\npassword: str = Field(min_length=12)\ncache-key-'
    + "0a" * 16,
    "call of a module": "credentials = base64.b64encode(pair)\nprivate_key = ed25519.Ed25519PrivateKey.generate()",
    "settings": "api_key = os.environ['API_KEY']\nsecret_key: ${SECRET_KEY}\nmax_tokens = 16000",
    "placeholders": (
        "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nANTHROPIC_API_KEY=sk-ant-your-key-goes-here\n"
        "aws_access_key_id = AKIAIOSFODNN7" + "EXAMPLE\nDATABASE_URL=postgres://user:password@localhost/app"
    ),
    "public key": drawn("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{s43} me@example.org"),
    "certificate": "-----BEGIN CERTIFICATE-----\n" + drawn("{s64}\n{s64}\n") + "-----END CERTIFICATE-----",
    "header as a constant": 'START = b"-----BEGIN OPENSSH PRIVATE KEY-----"',
    "addresses": "https://example.org:8443/a?b=c:d@e redis://[[username]:[password]]@host git@github.com:a/b.git",
    "usage of curl": "curl -sS -u $USER:$PASSWORD https://example.org | tar xz",
    "style sheet": ".sk-circle .sk-child:before{animation:sk-circleFadeDelay 1.2s infinite ease-in-out both}"
    * 20,
}


@pytest.mark.parametrize(
    "text",
    [
        *ORDINARY.values(),
        'token = "your-token-goes-here-123"',
        "postgres://postgres:postgres@localhost:5432/test",
        "https://${USER}:${TOKEN}@github.com/x/y",
        "the tokenizer splits a token into pieces: 1234",
        "secret = load_secret(path)",
        "key: value\nkeyboard = qwertyuiop123456",
        "checksum = 'd41d8cd98f00b204e9800998ecf8427e'",
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
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "PGPASSWORD",
        "SSH_AUTH_SOCK",
        "apiKey",
        "clientSecret",
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
        "HOME",
        "KEYBOARD",
        "TOKENIZERS_PARALLELISM",
    ],
)
def test_an_ordinary_name_is_none(name: str) -> None:
    assert not looks_secret_name(name)


@given(
    st.lists(
        st.one_of(st.text(max_size=30), st.sampled_from([drawn(each) for each in TOKENS.values()])),
        max_size=6,
    )
)
def test_redacting_twice_changes_nothing_more(pieces: list[str]) -> None:
    once = redact(" ".join(pieces))
    assert redact(once) == once


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIVATE KEY-----",
        "password=",
        "://a:b",
        "a",
    ],
)
def test_a_hostile_text_is_read_to_its_end(hostile: str) -> None:
    """A pattern that goes back and forth would take hours."""
    assert redact(hostile * (400_000 // len(hostile)))
